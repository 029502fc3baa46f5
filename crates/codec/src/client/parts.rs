//! What the typed methods take and give.

use kubestrata_api_types::{
    ApiRequest, ApiResponse, BoxError, ListMeta, PatchKind, Status, Undecodable, Unreadable,
};
use serde::Serialize;
use tower::Service;

use super::ClientError;
use crate::Encoded;

/// A list that was read to its end.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "plain parts of an answer")]
pub struct List<K> {
    /// The objects that decode.
    pub items: Vec<K>,
    /// The objects that do not.
    pub undecodable: Vec<Undecodable>,
    /// The objects whose head cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// Metadata of the last page.
    pub meta: ListMeta,
}

/// What a delete gave.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "the API answers in one of these two ways")]
pub enum Deletion {
    /// The object is gone.
    Gone(Box<Status>),
    /// The object goes once its finalizers or grace period allow: its state now, or its last state.
    Pending(Encoded),
}

/// The service that [`Client`](super::Client) is implemented for, as one bound.
pub trait EncodedService:
    Service<ApiRequest, Response = ApiResponse<Encoded>, Error: Into<BoxError> + Send, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> EncodedService for S where
    S: Service<
            ApiRequest,
            Response = ApiResponse<Encoded>,
            Error: Into<BoxError> + Send,
            Future: Send,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// How [`Client::write`](super::Client::write) writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these ways")]
pub enum Write {
    /// A new object.
    Create,
    /// All but the status.
    Update,
    /// The status alone.
    Status,
}

/// A patch, encoded; an error of the encoding comes out where it is sent.
#[derive(Debug)]
pub struct Patch {
    pub(super) kind: PatchKind,
    pub(super) body: Result<bytes::Bytes, ClientError>,
}

impl Patch {
    /// A patch from a value that serializes to JSON.
    pub fn new(kind: PatchKind, patch: &impl Serialize) -> Self {
        let body = serde_json::to_vec(patch)
            .map(Into::into)
            .map_err(|error| ClientError::Encode(crate::EncodeError::Serialize(error)));
        Self { kind, body }
    }
}

impl List<Encoded> {
    pub(super) fn decode<K>(self, decode: impl Fn(&Encoded) -> Result<K, Undecodable>) -> List<K> {
        let mut items = Vec::with_capacity(self.items.len());
        let mut undecodable = self.undecodable;
        for item in &self.items {
            match decode(item) {
                Ok(item) => items.push(item),
                Err(error) => undecodable.push(error),
            }
        }
        List { items, undecodable, unreadable: self.unreadable, meta: self.meta }
    }
}
