//! Decoded objects that flow and are stored like encoded ones.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{
    FieldPath, Object, ObjectKey, OwnerRef, ResourceVersion, Timestamp, Undecodable, View,
    ViewError, Weight,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Encoded, Tracked, view};

/// An object as a shared Rust value, or, if it does not decode, as the reason and its encoded form.
///
/// A clone is a reference count. An object that does not decode is stored and passed on like any other: it costs the
/// one read that wants it decoded, never the stream.
pub struct Decoded<K>(Arc<Inner<K>>);

struct Inner<K> {
    /// Built once: `K` would make a new one at each call.
    key: ObjectKey,
    weight: Weight,
    state: State<K>,
}

enum State<K> {
    Whole(Arc<Tracked<K>>),
    Broken { encoded: Encoded, error: Undecodable },
}

impl<K: Object> Decoded<K> {
    /// An object that is a Rust value already.
    pub fn new(object: Tracked<K>) -> Self {
        let key = object.key();
        let weight = Weight { head: key.as_str().len(), body: size_of::<K>() };
        Self(Arc::new(Inner { key, weight, state: State::Whole(Arc::new(object)) }))
    }

    /// Decodes an object. One that does not decode is kept with the reason.
    pub fn decode(encoded: &Encoded) -> Self
    where
        K: DeserializeOwned,
    {
        let state = match Tracked::decode(encoded) {
            Ok(object) => State::Whole(Arc::new(object)),
            Err(error) => State::Broken { encoded: encoded.clone(), error },
        };
        let key = encoded.key();
        let weight = Weight {
            head: key.as_str().len(),
            body: size_of::<K>().saturating_add(encoded.bytes().len()),
        };
        Self(Arc::new(Inner { key, weight, state }))
    }
}

impl<K> Decoded<K> {
    /// The object.
    ///
    /// # Errors
    ///
    /// Why it does not decode.
    pub fn object(&self) -> Result<&Arc<Tracked<K>>, &Undecodable> {
        match &self.0.state {
            State::Whole(object) => Ok(object),
            State::Broken { error, .. } => Err(error),
        }
    }

    /// What [`Weigh`](kubestrata_api_types::Weigh) tells.
    pub(crate) fn estimate(&self) -> Weight {
        self.0.weight
    }

    /// Whether the value lacks fields of the object, so that an update with it would remove them; see
    /// [`Tracked::is_partial`].
    pub fn is_partial(&self) -> bool {
        matches!(&self.0.state, State::Whole(object) if object.is_partial())
    }
}

/// What can give a shared `K`: the two item types.
pub trait Item<K>: Object + View + Clone {
    /// The object. [`Encoded`] decodes it at each call; [`Decoded`] shares what it holds.
    ///
    /// # Errors
    ///
    /// [`Undecodable`] if the bytes do not fit `K`.
    fn get(&self) -> Result<Arc<Tracked<K>>, Undecodable>;
}

impl<K: DeserializeOwned> Item<K> for Encoded {
    fn get(&self) -> Result<Arc<Tracked<K>>, Undecodable> {
        Tracked::decode(self).map(Arc::new)
    }
}

impl<K: Object + Serialize> Item<K> for Decoded<K> {
    fn get(&self) -> Result<Arc<Tracked<K>>, Undecodable> {
        self.object().cloned().map_err(Clone::clone)
    }
}

impl<K> Clone for Decoded<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Calls a method of the object or of the encoded form.
macro_rules! delegate {
    ($self:ident, $object:ident => $call:expr) => {
        match &$self.0.state {
            State::Whole($object) => $call,
            State::Broken { encoded: $object, .. } => $call,
        }
    };
}

impl<K: Object> Object for Decoded<K> {
    fn name(&self) -> &str {
        self.0.key.name()
    }

    fn namespace(&self) -> Option<&str> {
        self.0.key.namespace()
    }

    fn uid(&self) -> Option<&str> {
        delegate!(self, object => object.uid())
    }

    fn resource_version(&self) -> ResourceVersion {
        delegate!(self, object => object.resource_version())
    }

    fn generation(&self) -> Option<i64> {
        delegate!(self, object => object.generation())
    }

    fn deletion_timestamp(&self) -> Option<Timestamp> {
        delegate!(self, object => object.deletion_timestamp())
    }

    fn label(&self, key: &str) -> Option<&str> {
        delegate!(self, object => object.label(key))
    }

    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        delegate!(self, object => object.for_each_label(f));
    }

    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        delegate!(self, object => object.for_each_owner(f));
    }

    fn key(&self) -> ObjectKey {
        self.0.key.clone()
    }
}

/// Picks the path while the object serializes; an object that does not decode is read from its bytes.
impl<K: Object + Serialize> View for Decoded<K> {
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        match &self.0.state {
            State::Whole(object) => view::serialize::pick(&***object, path.segments(), out)
                .map_err(|error| ViewError::new(path, error.to_string())),
            State::Broken { encoded, .. } => encoded.field(path, out),
        }
    }
}

/// Shows identity, never the contents.
impl<K> fmt::Debug for Decoded<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.state {
            State::Whole(_) => write!(f, "Decoded({})", self.0.key),
            State::Broken { error, .. } => write!(f, "Undecodable({error})"),
        }
    }
}
