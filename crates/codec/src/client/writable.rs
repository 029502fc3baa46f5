//! What can be written by the typed methods.

use kubestrata_api_types::{Accept, Kind, Object, ResourceType, Undecodable};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ClientError, Write};
use crate::{Dynamic, Encoded, Tracked, UnknownFields};

/// What the typed methods write and read back: every [`Kind`] with serde, and [`Dynamic`].
///
/// Its functions take no `self`, so that they never stand among an object's own methods.
pub trait Writable: Object + Serialize + Sized {
    /// In which formats the answer to a write is taken.
    const ACCEPT: Accept;

    /// The type of the object.
    fn resource_of(object: &Self) -> &ResourceType;

    /// Decodes an object of the same Rust type.
    ///
    /// # Errors
    ///
    /// [`Undecodable`] if the bytes do not fit.
    fn read(encoded: &Encoded) -> Result<Tracked<Self>, Undecodable>;

    /// What an update would remove.
    fn unknown_fields(object: &Tracked<Self>) -> Option<UnknownFields>;
}

impl<K: Kind + Serialize + DeserializeOwned> Writable for K {
    const ACCEPT: Accept = Accept::Auto;

    fn resource_of(_: &Self) -> &ResourceType {
        K::resource()
    }

    fn read(encoded: &Encoded) -> Result<Tracked<Self>, Undecodable> {
        Tracked::decode(encoded)
    }

    fn unknown_fields(object: &Tracked<Self>) -> Option<UnknownFields> {
        object.unknown_fields_as::<K>()
    }
}

impl Writable for Dynamic {
    const ACCEPT: Accept = Accept::Whole;

    fn resource_of(object: &Self) -> &ResourceType {
        &object.resource
    }

    fn read(encoded: &Encoded) -> Result<Tracked<Self>, Undecodable> {
        Self::decode(encoded)
    }

    fn unknown_fields(object: &Tracked<Self>) -> Option<UnknownFields> {
        object.unknown_fields_as::<Value>()
    }
}

/// Refuses to replace an object by a value that never held all of it.
pub(super) fn check<T: Writable>(object: &Tracked<T>, write: Write) -> Result<(), ClientError> {
    if write == Write::Create || !object.is_partial() {
        return Ok(());
    }
    let Some(mut unknown) = T::unknown_fields(object) else { return Ok(()) };
    if write == Write::Status {
        // The server takes the rest from its own copy.
        unknown.paths.retain(|path| {
            let first = path.split(['.', '[']).next().unwrap_or_default();
            matches!(first, "status" | "metadata")
        });
        if unknown.paths.is_empty() && !unknown.cut {
            return Ok(());
        }
    }
    Err(unknown.into())
}
