//! Values that know whether they hold all of the object they came from.

use std::fmt;
use std::ops::{Deref, DerefMut};

use kubestrata_api_types::{
    FieldPath, Object, ObjectKey, OwnerRef, ResourceVersion, Timestamp, Undecodable, View,
    ViewError,
};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

use crate::limits::Limits;
use crate::{Encoded, decode};

/// A `K` that was read from a server, with the knowledge of whether it holds all that the server sent.
///
/// It is used like a `K`: it derefs to one, also to be changed. A server that is newer than `K`, or than the schema of
/// the built-in kinds, sends fields that have no place in `K`; a `K` of one's own may have left out fields on purpose; a
/// cache may have cut some out. An update replaces the whole object, so with such a value it would remove them.
/// [`Client::update`](crate::Client::update) therefore takes this type, and refuses a value that lacks something, while
/// patch and apply, which touch nothing but what they name, take anything.
///
/// A value of one's own making, from [`Tracked::new`], lacks nothing.
///
/// Reading costs little more for it, and no allocation: a decode counts what has no place, and only an object that lacks
/// something keeps its bytes, from which the fields are named when somebody asks.
#[derive(Clone)]
pub struct Tracked<K> {
    object: K,
    lack: Option<Lack>,
}

/// What a value lacks.
#[derive(Clone)]
enum Lack {
    /// Something that is in these bytes, or was cut out of them.
    Bytes(Encoded),
    /// Nobody knows what.
    Anything,
}

/// An update with a value would remove fields of the object, because the value never held them. Nothing was sent.
///
/// Patch what is to change, or use [`Dynamic`](crate::Dynamic), which holds all that JSON can say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an update of {key} would remove {}", what(paths, *cut))]
#[non_exhaustive]
pub struct UnknownFields {
    /// The object.
    pub key: ObjectKey,
    /// Paths of fields that the type or the schema does not know, at most 16; a field that the schema does not know ends
    /// the path as `#` and its number on the wire. Names only, never contents.
    pub paths: Vec<String>,
    /// Further fields were taken out on the way: pruned as the object arrived, or by a transform, or nothing but metadata
    /// was asked for.
    pub cut: bool,
}

fn what(paths: &[String], cut: bool) -> String {
    let mut text = paths.join(", ");
    if cut {
        text.push_str(if paths.is_empty() { "" } else { ", and " });
        text.push_str("what was cut out of it as it was read");
    }
    text
}

impl<K> Tracked<K> {
    /// A value of one's own making: what it does not hold is not meant to be.
    pub fn new(object: K) -> Self {
        Self { object, lack: None }
    }

    /// Decodes an object to be changed and sent back.
    ///
    /// # Errors
    ///
    /// As [`Encoded::decode`].
    pub fn decode(encoded: &Encoded) -> Result<Self, Undecodable>
    where
        K: DeserializeOwned,
    {
        let (object, lost) = decode::object(encoded, &Limits::DEFAULT)?;
        Ok(Self::of(object, lost, encoded))
    }

    pub(crate) fn of(object: K, lost: usize, encoded: &Encoded) -> Self {
        let lacks = lost > 0 || !encoded.is_whole();
        Self { object, lack: lacks.then(|| Lack::Bytes(encoded.clone())) }
    }

    /// The same value, no longer whole: for whoever takes fields out of it on purpose, as a cache's transform does.
    #[must_use]
    pub fn into_partial(self) -> Self {
        Self { object: self.object, lack: self.lack.or(Some(Lack::Anything)) }
    }

    /// Whether the object has fields that the value lacks.
    ///
    /// In JSON that is every field but null that the type passes over; in protobuf also every field that the schema does
    /// not know. `apiVersion`, `kind` and `metadata.managedFields` do not count: an update without them changes nothing.
    /// Not seen is what serde buffers before a type chooses from it: unknown fields beside `flatten`ed structs and in
    /// untagged and internally tagged enums.
    pub fn is_partial(&self) -> bool {
        self.lack.is_some()
    }

    /// The value alone. What is known of its completeness goes.
    pub fn into_inner(self) -> K {
        self.object
    }

    /// As [`Tracked::unknown_fields`], where the value was decoded as a `D`.
    pub(crate) fn unknown_fields_as<D: DeserializeOwned>(&self) -> Option<UnknownFields>
    where
        K: Object,
    {
        let (paths, cut) = match self.lack.as_ref()? {
            Lack::Anything => (Vec::new(), true),
            Lack::Bytes(encoded) => (decode::lost_fields::<D>(encoded), !encoded.is_whole()),
        };
        Some(UnknownFields { key: self.object.key(), paths, cut })
    }
}

impl<K: Object + DeserializeOwned> Tracked<K> {
    /// What an update with the value would remove, if anything. This decodes the object once more.
    pub fn unknown_fields(&self) -> Option<UnknownFields> {
        self.unknown_fields_as::<K>()
    }
}

impl<K> Deref for Tracked<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K> DerefMut for Tracked<K> {
    fn deref_mut(&mut self) -> &mut K {
        &mut self.object
    }
}

impl<K> AsRef<K> for Tracked<K> {
    fn as_ref(&self) -> &K {
        &self.object
    }
}

/// Equal if the values are, however they were read.
impl<K: PartialEq> PartialEq for Tracked<K> {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl<K: PartialEq> PartialEq<K> for Tracked<K> {
    fn eq(&self, other: &K) -> bool {
        self.object == *other
    }
}

/// As the value.
impl<K: fmt::Debug> fmt::Debug for Tracked<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

/// As the value.
impl<K: Serialize> Serialize for Tracked<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

impl<K: Object> Object for Tracked<K> {
    fn name(&self) -> &str {
        self.object.name()
    }

    fn namespace(&self) -> Option<&str> {
        self.object.namespace()
    }

    fn uid(&self) -> Option<&str> {
        self.object.uid()
    }

    fn resource_version(&self) -> ResourceVersion {
        self.object.resource_version()
    }

    fn generation(&self) -> Option<i64> {
        self.object.generation()
    }

    fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.object.deletion_timestamp()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.object.label(key)
    }

    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        self.object.for_each_label(f);
    }

    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        self.object.for_each_owner(f);
    }

    fn key(&self) -> ObjectKey {
        self.object.key()
    }
}

impl<K: View> View for Tracked<K> {
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        self.object.field(path, out)
    }
}
