//! What flows from a watch to a store.

use crate::{ObjectKey, ResourceVersion};

/// One event of a watch.
///
/// A stream of them is `Result<Event<T>, BoxError>`; `Err` means that the stream is broken and ends, and holds a
/// [`Status`](crate::Status) where the server sent an ERROR event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a consumer that misses a variant loses events: a new one must break it"
)]
pub enum Event<T> {
    /// The object is new, or part of the initial state, or has come into the selector.
    Added(T),
    /// The object changed.
    Modified(T),
    /// The object is gone, or has left the selector: its last state, with the version of the deletion.
    Deleted(T),
    /// No change; all events up to this version have been sent.
    Bookmark(Bookmark),
    /// An event whose head could not be read. It costs this object alone; the stream goes on.
    Unreadable(Unreadable),
}

impl<T> Event<T> {
    /// The object of an Added, Modified or Deleted event.
    pub fn object(&self) -> Option<&T> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark(_) | Self::Unreadable(_) => None,
        }
    }

    /// The same event of another item type.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Event<U> {
        match self {
            Self::Added(object) => Event::Added(f(object)),
            Self::Modified(object) => Event::Modified(f(object)),
            Self::Deleted(object) => Event::Deleted(f(object)),
            Self::Bookmark(bookmark) => Event::Bookmark(bookmark),
            Self::Unreadable(unreadable) => Event::Unreadable(unreadable),
        }
    }
}

/// A BOOKMARK event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by every producer of events, tests included")]
pub struct Bookmark {
    /// All events up to this version have been sent on the stream.
    pub resource_version: ResourceVersion,
    /// KEP-3157: the initial state of a streaming list is complete (annotation `k8s.io/initial-events-end`).
    pub initial_events_end: bool,
}

/// The whole state of a collection at one version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by every producer of events, tests included")]
pub struct Snapshot<T> {
    /// All objects; each key at most once.
    pub items: Vec<T>,
    /// Objects that are there but whose head could not be read.
    pub unreadable: Vec<Unreadable>,
    /// The version of the state.
    pub resource_version: ResourceVersion,
}

/// What a reflector gives its consumer, who makes its state follow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a consumer that misses a variant loses events: a new one must break it"
)]
pub enum Update<T> {
    /// The state is now exactly this.
    Replace(Snapshot<T>),
    /// The state changes by this event.
    Event(Event<T>),
}

/// An event or list item whose head (its metadata) could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("object {} cannot be read: {problem}", key.as_ref().map_or("of unknown name", ObjectKey::as_str))]
#[expect(clippy::exhaustive_structs, reason = "made by every decoder, tests included")]
pub struct Unreadable {
    /// The object's key, where that much could be read.
    pub key: Option<ObjectKey>,
    /// Its version, where that much could be read.
    pub resource_version: ResourceVersion,
    /// What is wrong, with path and offset, without contents.
    pub problem: String,
}

/// An object whose body does not decode into the Rust type that was asked for.
///
/// It names the object and the place, never the contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("object {key} does not decode at {path:?}, byte {offset}: {problem}")]
#[expect(clippy::exhaustive_structs, reason = "made by every decoder, tests included")]
pub struct Undecodable {
    /// The object's key.
    pub key: ObjectKey,
    /// Path of the field that does not fit, as far as it is known.
    pub path: String,
    /// Offset in the object's bytes, as far as it is known.
    pub offset: usize,
    /// What is wrong, without contents.
    pub problem: String,
}
