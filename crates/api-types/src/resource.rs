//! What kind of object a request is about.

use std::borrow::Cow;
use std::fmt;

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "Kubernetes has these two and no third")]
pub enum Scope {
    /// Objects belong to the cluster as a whole.
    Cluster,
    /// Each object belongs to one namespace.
    Namespaced,
}

/// Group, version, kind and plural name of one resource type: all that is needed to build its paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ResourceType {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// API version, as in `v1`.
    pub version: Cow<'static, str>,
    /// Kind in the singular, as in `Pod`.
    pub kind: Cow<'static, str>,
    /// Plural name as in URLs, as in `pods`.
    pub plural: Cow<'static, str>,
    /// Cluster or namespaced.
    pub scope: Scope,
}

impl ResourceType {
    /// A resource type known at compile time.
    pub const fn from_static(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        scope: Scope,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            scope,
        }
    }

    /// A resource type found at run time, from discovery or a definition.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
        scope: Scope,
    ) -> Self {
        Self {
            group: Cow::Owned(group.into()),
            version: Cow::Owned(version.into()),
            kind: Cow::Owned(kind.into()),
            plural: Cow::Owned(plural.into()),
            scope,
        }
    }

    /// `group/version`, or `version` for the core group: the `apiVersion` of its objects.
    pub fn api_version(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            Cow::Borrowed(&self.version)
        } else {
            Cow::Owned(format!("{}/{}", self.group, self.version))
        }
    }

    /// Whether an object that says `api_version` and `kind` of itself is of this type.
    pub fn matches(&self, api_version: &str, kind: &str) -> bool {
        if self.kind != kind {
            return false;
        }
        match api_version.split_once('/') {
            Some((group, version)) => self.group == group && self.version == version,
            None => self.group.is_empty() && self.version == api_version,
        }
    }

    /// Whether objects of this type live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

/// `plural.group`, or `plural` for the core group, as kubectl and `Status` messages write it.
impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}
