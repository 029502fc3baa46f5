//! From a path to what it names.

use crate::query::decode;

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/api`
    Api,
    /// `/apis`
    Apis,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    GroupVersion(String, String),
    /// A collection or an object.
    Resource(Target),
    /// Nothing.
    Unknown,
}

/// A collection, an object, or a subresource of an object.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The deprecated prefix `watch/`.
    pub(crate) watch: bool,
}

impl Route {
    pub(crate) fn parse(path: &str) -> Self {
        let segments: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| decode(part, false))
            .collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments[..] {
            ["version"] => Self::Version,
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["api"] => Self::Api,
            ["apis"] => Self::Apis,
            ["apis", group] => Self::Group(group.to_owned()),
            ["api", version] => Self::GroupVersion(String::new(), version.to_owned()),
            ["apis", group, version] => Self::GroupVersion(group.to_owned(), version.to_owned()),
            ["api", version, ref rest @ ..] => Self::resource("", version, rest),
            ["apis", group, version, ref rest @ ..] => Self::resource(group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Self {
        let mut target =
            Target { group: group.to_owned(), version: version.to_owned(), ..Target::default() };
        let rest = match rest {
            ["watch", rest @ ..] => {
                target.watch = true;
                rest
            }
            rest => rest,
        };
        let owned = |text: &str| Some(text.to_owned());
        let (plural, name, subresource) = match *rest {
            // Subresources of a namespace look like a resource in it.
            ["namespaces", name, sub @ ("status" | "finalize")] => {
                ("namespaces", owned(name), owned(sub))
            }
            ["namespaces", namespace, plural, ref rest @ ..] => {
                target.namespace = owned(namespace);
                match *rest {
                    [] => (plural, None, None),
                    [name] => (plural, owned(name), None),
                    [name, sub] => (plural, owned(name), owned(sub)),
                    _ => return Self::Unknown,
                }
            }
            [plural] => (plural, None, None),
            [plural, name] => (plural, owned(name), None),
            [plural, name, sub] => (plural, owned(name), owned(sub)),
            _ => return Self::Unknown,
        };
        target.plural = plural.to_owned();
        target.name = name;
        target.subresource = subresource;
        Self::Resource(target)
    }
}
