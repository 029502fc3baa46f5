//! One change in the queue, and a batch of them.

use kubestrata_api_types::{KeyRef, Object, ObjectKey, ResourceVersion, Snapshot, Unreadable};

/// One change, as a consumer gets it (client-go `Delta`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a consumer that misses a variant loses changes: a new one must break it"
)]
pub enum Delta<T> {
    /// The object was added. Its key may be known already: then it is an update.
    Added(T),
    /// The object was changed. Its key may be unknown: then it is an add.
    Updated(T),
    /// The object is gone. Its key may be unknown: the consumer tells its handlers all the same.
    Deleted(Deleted<T>),
    /// One object of a new state; only of queues that take a state apart (those with known objects).
    Replaced(T),
    /// The object as the consumer knows it, once more; only of queues with known objects.
    Sync(T),
    /// The state is now exactly this (client-go `ReplacedAll`, of an atomic queue).
    ReplacedAll(Snapshot<T>),
    /// All objects as the consumer knows them, once more (client-go `SyncAll`, of an atomic queue).
    SyncAll,
    /// No change; the consumer's state is the one of this version.
    Bookmark(ResourceVersion),
    /// An object that cannot be used. It costs itself alone.
    Unreadable(Unreadable),
}

impl<T: Object> Delta<T> {
    /// The key of the one object that the delta is about, where it is about one.
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Added(object)
            | Self::Updated(object)
            | Self::Replaced(object)
            | Self::Sync(object) => Some(object.key()),
            Self::Deleted(deleted) => Some(deleted.key()),
            Self::Unreadable(unreadable) => unreadable.key.clone(),
            Self::ReplacedAll(_) | Self::SyncAll | Self::Bookmark(_) => None,
        }
    }

    /// The same key, borrowed.
    pub fn key_ref(&self) -> Option<KeyRef<'_>> {
        match self {
            Self::Added(object)
            | Self::Updated(object)
            | Self::Replaced(object)
            | Self::Sync(object)
            | Self::Deleted(Deleted::Observed(object)) => Some(object.key_ref()),
            Self::Deleted(Deleted::Missed(tombstone)) => Some(tombstone.key.borrowed()),
            Self::Unreadable(unreadable) => unreadable.key.as_ref().map(ObjectKey::borrowed),
            Self::ReplacedAll(_) | Self::SyncAll | Self::Bookmark(_) => None,
        }
    }

    /// The object's state that the delta carries, if it carries one; of a deletion the last that is known.
    pub fn object(&self) -> Option<&T> {
        match self {
            Self::Added(object)
            | Self::Updated(object)
            | Self::Replaced(object)
            | Self::Sync(object) => Some(object),
            Self::Deleted(deleted) => deleted.last(),
            Self::ReplacedAll(_) | Self::SyncAll | Self::Bookmark(_) | Self::Unreadable(_) => None,
        }
    }

    /// An object that no key can stand for.
    pub(crate) fn nameless(object: &T) -> Self {
        Self::Unreadable(nameless(object))
    }

    /// Moves objects without a name to those that cannot be read: one must not cost the others (odf-operator PR 895 shows
    /// how it can).
    pub(crate) fn set_nameless_apart(snapshot: &mut Snapshot<T>) {
        let Snapshot { items, unreadable, .. } = snapshot;
        items.retain(|object| {
            let usable = !object.key_ref().is_nameless();
            if !usable {
                unreadable.push(nameless(object));
            }
            usable
        });
    }

    /// Whether the delta may share a batch with others; one that is about everything may not.
    pub fn is_batchable(&self) -> bool {
        !matches!(self, Self::ReplacedAll(_) | Self::SyncAll | Self::Bookmark(_))
    }
}

fn nameless<T: Object>(object: &T) -> Unreadable {
    Unreadable {
        key: None,
        resource_version: object.resource_version(),
        problem: "the object has no name".to_owned(),
    }
}

/// How a deletion became known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "handlers must decide for each")]
pub enum Deleted<T> {
    /// By its event: the last state, with the version of the deletion.
    Observed(T),
    /// By absence from a new state.
    Missed(Tombstone<T>),
}

impl<T: Object> Deleted<T> {
    /// The key of the deleted object.
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Observed(object) => object.key(),
            Self::Missed(tombstone) => tombstone.key.clone(),
        }
    }

    /// The last state that is known.
    pub fn last(&self) -> Option<&T> {
        match self {
            Self::Observed(object) => Some(object),
            Self::Missed(tombstone) => tombstone.last.as_ref(),
        }
    }
}

/// A deletion that nobody saw: the object's final state is unknown (client-go `DeletedFinalStateUnknown`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by every queue and consumer")]
pub struct Tombstone<T> {
    /// The key of the object.
    pub key: ObjectKey,
    /// Its last known state, which may be older than its final one; `None` if nothing is known.
    pub last: Option<T>,
}

/// Deltas to be processed together, never none. Each key occurs at most once, or all of them are of one key: the former
/// from a [`RealFifo`](crate::RealFifo), the latter from a [`DeltaFifo`](crate::DeltaFifo).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by every queue")]
pub struct Batch<T> {
    /// The deltas, oldest first.
    pub deltas: Vec<Delta<T>>,
    /// Whether the consumer had not yet processed its first state when this batch was taken
    /// (client-go `isInInitialList`).
    pub initial: bool,
}
