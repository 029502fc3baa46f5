#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! What flows through the layers is any `T:`[`Object`], never the user's own Rust type.
//! The rejected way, a type parameter `K` from the transport to the handlers, compiles every layer once for each kind,
//! makes dynamic and metadata-only watches special cases, and forces a decode of objects that nobody reads.

mod key;
mod resource;
mod version;

mod field_path;
mod meta;
mod object;
mod partial;
mod weigh;

mod event;
mod request;
mod response;
mod status;

mod field_selector;
mod label_selector;
mod shard;

mod list_watch;
mod world;

#[cfg(feature = "k8s-openapi")]
mod k8s;

#[cfg(test)]
mod tests;

pub use self::event::{Bookmark, Event, Snapshot, Undecodable, Unreadable, Update};
pub use self::field_path::{FieldPath, FieldPathError, Segment};
pub use self::field_selector::{FieldSelector, FieldSelectorError, FieldTerm};
#[cfg(feature = "k8s-openapi")]
#[doc(hidden)]
pub use self::k8s::TopLevelScope;
pub use self::key::{KeyRef, ObjectKey, ObjectKeyError};
pub use self::label_selector::{LabelSelector, LabelSelectorError, Operator, Requirement};
pub use self::list_watch::{BoxError, BoxFuture, ListWatch, cause_ref};
pub use self::meta::{ObjectMeta, OwnerReference};
pub use self::object::{Kind, Meta, Object, OwnerRef, View, ViewError};
pub use self::partial::PartialObjectMetadata;
pub use self::request::{
    Accept, ApiRequest, Collection, DeleteOptions, FieldValidation, Format, GetOptions,
    ListOptions, Operation, PatchKind, Payload, Preconditions, Propagation, Representation, Verb,
    VersionMatch, WatchOptions, WriteOptions,
};
pub use self::resource::{ResourceType, Scope};
pub use self::response::{
    Answer, ApiResponse, ListMeta, ListPart, ListStream, UnexpectedAnswer, WatchStream,
};
pub use self::shard::{ShardField, ShardSelector, ShardSelectorError};
pub use self::status::{Status, StatusCause, StatusDetails, reason};
pub use self::version::{NotComparable, ResourceVersion};
pub use self::weigh::{Weigh, Weight};
pub use self::world::{FOREVER, SystemWorld, Tick, World};

/// The time type of the whole stack: jiff's, as in k8s-openapi.
pub use jiff::Timestamp;
