//! The name of one object within one kind.

mod borrowed;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use self::borrowed::KeyRef;

/// Namespace and name of an object, within one resource type of one server.
///
/// Held as one shared string, `namespace/name` or `name` for a cluster-scoped object, in the form of client-go's
/// `MetaNamespaceKeyFunc`. A clone is a reference count; the ordering is the byte order of that string.
/// Note that kube-apiserver lists in this order too, so `a-b/x` comes before `a/x`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// A key from its parts. An empty namespace means none.
    ///
    /// The parts are taken as they are: the server has validated the names that come from it.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        KeyRef::new(namespace, name).to_key()
    }

    /// The key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self::new(Some(namespace), name)
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self::new(None, name)
    }

    /// The namespace, if there is one.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// The same key, borrowed in its parts.
    pub fn borrowed(&self) -> KeyRef<'_> {
        match self.0.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() => KeyRef::new(Some(namespace), name),
            _ => KeyRef::new(None, &self.0),
        }
    }

    /// `namespace/name`, or `name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The text is no `namespace/name` and no `name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no object key: want \"name\" or \"namespace/name\"")]
#[non_exhaustive]
pub struct ObjectKeyError {
    /// What was to be parsed.
    pub text: String,
}

impl FromStr for ObjectKey {
    type Err = ObjectKeyError;

    /// Parses `namespace/name` or `name`; empty parts and a second `/` are errors, as in client-go's
    /// `SplitMetaNamespaceKey`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('/');
        let valid = match (parts.next(), parts.next(), parts.next()) {
            (Some(name), None, _) => !name.is_empty(),
            (Some(namespace), Some(name), None) => !namespace.is_empty() && !name.is_empty(),
            _ => false,
        };
        if valid {
            Ok(Self(Arc::from(text)))
        } else {
            Err(ObjectKeyError { text: text.to_owned() })
        }
    }
}
