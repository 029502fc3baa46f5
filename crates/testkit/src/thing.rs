//! A tiny object with a text form.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use kubestrata_api_types::{
    Collection, Event, FieldPath, Kind, Object, ObjectKey, OwnerRef, ResourceType, ResourceVersion,
    Scope, Segment, Timestamp, Unreadable, Update, View, ViewError, Weigh, Weight,
};

/// The resource type of [`Thing`].
pub const THINGS: ResourceType =
    ResourceType::from_static("test.kubestrata.dev", "v1", "Thing", "things", Scope::Namespaced);

/// All things, in all namespaces.
pub fn things() -> Collection {
    Collection::new(THINGS)
}

/// A test object, written `[namespace/]name@version[#uid][{key=value,…}]`.
///
/// A key that starts with a lower-case letter is a label; `.path=value` sets the field at `path`.
/// The UID is the name with `uid-` before it, unless `#` gives another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thing {
    /// `metadata.namespace`
    pub namespace: Option<String>,
    /// `metadata.name`
    pub name: String,
    /// `metadata.resourceVersion`
    pub resource_version: ResourceVersion,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// Other fields, by path, as in `spec.nodeName`.
    pub fields: BTreeMap<String, String>,
}

impl Thing {
    /// A thing without namespace, labels and fields.
    pub fn new(name: &str, resource_version: impl Into<ResourceVersion>) -> Self {
        Self {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            resource_version: resource_version.into(),
            ..Self::default()
        }
    }

    /// The same thing with a label.
    #[must_use]
    pub fn labelled(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The same thing in a namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        self
    }

    /// Parses a thing whose version may be missing: then it is `version`.
    ///
    /// # Errors
    ///
    /// [`ThingError`] if the text has another form.
    pub fn parse(text: &str, version: &ResourceVersion) -> Result<Self, ThingError> {
        let error = || ThingError { text: text.to_owned() };
        let (head, braces) = match text.split_once('{') {
            Some((head, rest)) => (head, Some(rest.strip_suffix('}').ok_or_else(error)?)),
            None => (text, None),
        };
        let (head, uid) = match head.split_once('#') {
            Some((head, uid)) => (head, Some(uid)),
            None => (head, None),
        };
        let (key, version) = match head.split_once('@') {
            Some((key, version)) => (key, ResourceVersion::new(version)),
            None => (head, version.clone()),
        };
        let key: ObjectKey = key.parse().map_err(|_| error())?;
        let mut thing = Self::new(key.name(), version);
        thing.namespace = key.namespace().map(str::to_owned);
        if let Some(uid) = uid {
            thing.uid = uid.to_owned();
        }
        for pair in braces.into_iter().flat_map(|braces| braces.split(',')) {
            let (key, value) = pair.split_once('=').ok_or_else(error)?;
            match key.strip_prefix('.') {
                Some(path) => thing.fields.insert(path.to_owned(), value.to_owned()),
                None => thing.labels.insert(key.to_owned(), value.to_owned()),
            };
        }
        Ok(thing)
    }
}

/// The text is no [`Thing`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no thing: want [namespace/]name@version[#uid][{{key=value,…}}]")]
pub struct ThingError {
    /// What was to be parsed.
    pub text: String,
}

impl FromStr for Thing {
    type Err = ThingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, &ResourceVersion::UNSET)
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.resource_version)?;
        if self.uid.strip_prefix("uid-") != Some(&self.name) {
            write!(f, "#{}", self.uid)?;
        }
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let fields = self.fields.iter().map(|(key, value)| format!(".{key}={value}"));
        let pairs: Vec<_> = labels.chain(fields).collect();
        if !pairs.is_empty() {
            write!(f, "{{{}}}", pairs.join(","))?;
        }
        Ok(())
    }
}

impl Object for Thing {
    fn name(&self) -> &str {
        &self.name
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn uid(&self) -> Option<&str> {
        Some(&self.uid)
    }

    fn resource_version(&self) -> ResourceVersion {
        self.resource_version.clone()
    }

    fn generation(&self) -> Option<i64> {
        self.fields.get("metadata.generation").and_then(|text| text.parse().ok())
    }

    fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.fields.get("metadata.deletionTimestamp").and_then(|text| text.parse().ok())
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        for (key, value) in &self.labels {
            f(key, value);
        }
    }

    /// The field `owner`, written `Kind:name`, is the one owner: a controller of the group of things.
    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        if let Some((kind, name)) = self.fields.get("owner").and_then(|text| text.split_once(':')) {
            f(OwnerRef::new("test.kubestrata.dev/v1", kind, name, &format!("uid-{name}"), true));
        }
    }
}

impl Kind for Thing {
    fn resource() -> &'static ResourceType {
        static RESOURCE: ResourceType = THINGS;
        &RESOURCE
    }
}

impl View for Thing {
    /// Knows the metadata that a thing has, and its fields by their whole path.
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        let names: Vec<_> = path
            .segments()
            .iter()
            .map(|segment| match segment {
                Segment::Field(name) => &**name,
                _ => "*",
            })
            .collect();
        let value = match names[..] {
            ["metadata", "name"] => Some(self.name.as_str()),
            ["metadata", "namespace"] => self.namespace.as_deref(),
            ["metadata", "uid"] => Some(self.uid.as_str()),
            ["metadata", "labels", key] => self.label(key),
            _ => self.fields.get(&names.join(".")).map(String::as_str),
        };
        if let Some(value) = value {
            out(value);
        }
        Ok(())
    }
}

impl Weigh for Thing {
    /// The text of names and versions is the head, that of labels and fields the body.
    fn weight(&self) -> Weight {
        let pairs = |map: &BTreeMap<String, String>| -> usize {
            map.iter().map(|(key, value)| key.len() + value.len()).sum()
        };
        Weight {
            head: self.name.len() + self.uid.len() + self.namespace.as_deref().map_or(0, str::len),
            body: pairs(&self.labels) + pairs(&self.fields),
        }
    }
}

/// An event as scripts write it: `+a@5`, `~a@6`, `-a@7`, `bookmark@8`, `end@9`, `?a@5`.
pub fn show_event<T: fmt::Display>(event: &Event<T>) -> String {
    match event {
        Event::Added(object) => format!("+{object}"),
        Event::Modified(object) => format!("~{object}"),
        Event::Deleted(object) => format!("-{object}"),
        Event::Bookmark(bookmark) => {
            let word = if bookmark.initial_events_end { "end" } else { "bookmark" };
            format!("{word}@{}", bookmark.resource_version)
        }
        Event::Unreadable(unreadable) => show_unreadable(unreadable),
    }
}

/// An update on one line: an event as [`show_event`], a state as `replace@9: a@3 b@7 ?c@4`.
pub fn show_update<T: fmt::Display>(update: &Update<T>) -> String {
    match update {
        Update::Event(event) => show_event(event),
        Update::Replace(snapshot) => {
            let mut line = format!("replace@{}:", snapshot.resource_version);
            for item in &snapshot.items {
                line.push_str(&format!(" {item}"));
            }
            for unreadable in &snapshot.unreadable {
                line.push_str(&format!(" {}", show_unreadable(unreadable)));
            }
            line
        }
    }
}

fn show_unreadable(unreadable: &Unreadable) -> String {
    let key = unreadable.key.as_ref().map_or("", ObjectKey::as_str);
    format!("?{key}@{}", unreadable.resource_version)
}
