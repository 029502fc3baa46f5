//! A key that is not held.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::ObjectKey;

/// Namespace and name of an object, borrowed from wherever they are: an [`ObjectKey`] without its allocation.
///
/// Equality, order, hash and text are those of the key that it stands for; the hash is not that of [`ObjectKey`] itself,
/// so a map has keys of one of the two.
#[derive(Clone, Copy)]
pub struct KeyRef<'a> {
    /// Empty for none.
    namespace: &'a [u8],
    name: &'a [u8],
}

impl<'a> KeyRef<'a> {
    /// A key from its parts. An empty namespace means none.
    pub fn new(namespace: Option<&'a str>, name: &'a str) -> Self {
        Self::from_bytes(namespace.unwrap_or_default().as_bytes(), name.as_bytes())
    }

    /// A key from texts that were checked to be UTF-8 before, so that comparing keys does not check them again: objects
    /// that are kept as bytes are compared several times for each event. An empty namespace means none.
    ///
    /// What is not UTF-8 can be compared, but makes every method panic that gives a text.
    pub fn from_bytes(namespace: &'a [u8], name: &'a [u8]) -> Self {
        Self { namespace, name }
    }

    /// The namespace, if there is one.
    ///
    /// # Panics
    ///
    /// As [`KeyRef::from_bytes`] says.
    pub fn namespace(&self) -> Option<&'a str> {
        (!self.namespace.is_empty()).then(|| text(self.namespace))
    }

    /// The object's name.
    ///
    /// # Panics
    ///
    /// As [`KeyRef::from_bytes`] says.
    pub fn name(&self) -> &'a str {
        text(self.name)
    }

    /// Whether the name is empty, so that this is nobody's key.
    pub fn is_nameless(&self) -> bool {
        self.name.is_empty()
    }

    /// The key, to be kept. One allocation.
    ///
    /// # Panics
    ///
    /// As [`KeyRef::from_bytes`] says.
    pub fn to_key(&self) -> ObjectKey {
        let mut joined = SmallVec::<[u8; 128]>::new();
        for part in [self.namespace, self.slash(), self.name] {
            joined.extend_from_slice(part);
        }
        ObjectKey(Arc::from(text(&joined)))
    }

    /// The slash between the parts, if there are two.
    fn slash(&self) -> &'static [u8] {
        if self.namespace.is_empty() { b"" } else { b"/" }
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.namespace.iter().chain(self.slash()).chain(self.name).copied()
    }

    fn len(&self) -> usize {
        self.namespace.len() + self.slash().len() + self.name.len()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("whoever made the key has checked its parts")
}

impl PartialEq for KeyRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        if self.namespace.len() == other.namespace.len() {
            return self.name == other.name && self.namespace == other.namespace;
        }
        // No server lets a name have a slash, but an object may come from anywhere.
        self.len() == other.len() && self.bytes().eq(other.bytes())
    }
}

impl Eq for KeyRef<'_> {}

impl PartialOrd for KeyRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            return self.name.cmp(other.name);
        }
        self.bytes().cmp(other.bytes())
    }
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Split where the text is split first: equal texts must have equal hashes, wherever their slashes come from.
        let first = if self.namespace.is_empty() { self.name } else { self.namespace };
        if first.contains(&b'/') {
            let joined: Vec<u8> = self.bytes().collect();
            let mut parts = joined.splitn(2, |byte| *byte == b'/');
            parts.next().unwrap_or_default().hash(state);
            parts.next().unwrap_or_default().hash(state);
            return;
        }
        self.namespace.hash(state);
        self.name.hash(state);
    }
}

impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = self.namespace() {
            write!(f, "{namespace}/")?;
        }
        f.write_str(self.name())
    }
}

impl fmt::Debug for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
