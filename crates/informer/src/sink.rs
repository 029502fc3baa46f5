//! The seam between an informer and whatever keeps its objects.

use std::sync::Arc;

use kubestrata_api_types::{Object, ObjectKey, ResourceVersion, Weigh};
use kubestrata_realfifo::KnownObjects;
use kubestrata_store_index::{
    Change, Frozen, IndexProblem, Reader, StoreVersion, Stored, Usage, Writer,
};

/// What an informer can follow. Implemented for everything that fits; a clone should be cheap, as handlers are told of
/// clones.
pub trait Item: Object + Weigh + Clone {}

impl<T: Object + Weigh + Clone> Item for T {}

/// Where an informer puts its objects: the writing side, of which there is one.
///
/// The indexed store of `kubestrata-store-index` is one; give another of your own to
/// [`Informer::with_store`](crate::Informer::with_store).
/// Its methods are called from the informer's task, one at a time; they must not block, nor call the informer.
pub trait Store<T>: Send + 'static {
    /// What [`Informer::reader`](crate::Informer::reader) gives: the reading side.
    type Reader: StoreReader<T> + Clone;

    /// A reader of this store.
    fn reader(&self) -> Self::Reader;

    /// Makes many changes, in order; one key may occur twice. Readers should see all of them or none.
    fn apply(&mut self, changes: Vec<Change<T>>) -> Applied<T>;

    /// Makes the store hold exactly `objects`, the state of the source at `version`. Readers should see all of it or nothing.
    /// A `version` below the store's says that the source went back to an older state.
    fn replace(&mut self, objects: Vec<T>, version: ResourceVersion) -> Replaced<T>;
}

/// The reading side of a [`Store`], as far as an informer needs it. All methods answer from memory.
pub trait StoreReader<T>: Send + Sync + 'static {
    /// One object.
    fn get(&self, key: &ObjectKey) -> Option<T>;

    /// All objects at this instant, which later changes do not touch: for handlers that come late, and for resyncs.
    fn freeze(&self) -> Arc<dyn Objects<T>>;

    /// Number of objects.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How far the store has followed its source.
    fn version(&self) -> StoreVersion;

    /// What the store costs, for metrics.
    fn usage(&self) -> Usage;
}

/// Some objects.
pub trait Objects<T>: Send + Sync {
    /// How many.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each of them, in no particular order.
    fn iter(&self) -> Box<dyn Iterator<Item = &T> + Send + '_>;
}

/// What [`Store::apply`] did.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by every store")]
pub struct Applied<T> {
    /// For each change, in order, the object that was there before it.
    pub previous: Vec<Option<T>>,
    /// Objects that are stored but could not be put into some index.
    pub problems: Vec<IndexProblem>,
}

/// What [`Store::replace`] did.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by every store")]
pub struct Replaced<T> {
    /// For each new object, in order, the one that was stored under its key before.
    pub previous: Vec<Option<T>>,
    /// Objects that were stored before and are not among the new ones.
    pub removed: Vec<T>,
    /// Objects that are stored but could not be put into some index.
    pub problems: Vec<IndexProblem>,
}

impl<T: Stored> Store<T> for Writer<T> {
    type Reader = Reader<T>;

    fn reader(&self) -> Reader<T> {
        Self::reader(self)
    }

    fn apply(&mut self, changes: Vec<Change<T>>) -> Applied<T> {
        let batch = Self::apply(self, changes);
        Applied { previous: batch.previous, problems: batch.problems }
    }

    fn replace(&mut self, objects: Vec<T>, version: ResourceVersion) -> Replaced<T> {
        let replaced = Self::replace(self, objects, version);
        Replaced {
            previous: replaced.previous,
            removed: replaced.removed,
            problems: replaced.problems,
        }
    }
}

impl<T: Stored> StoreReader<T> for Reader<T> {
    fn get(&self, key: &ObjectKey) -> Option<T> {
        Self::get(self, key)
    }

    fn freeze(&self) -> Arc<dyn Objects<T>> {
        Arc::new(Self::freeze(self))
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn version(&self) -> StoreVersion {
        Self::version(self)
    }

    fn usage(&self) -> Usage {
        Self::usage(self)
    }
}

impl<T: Send + Sync> Objects<T> for Frozen<T> {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &T> + Send + '_> {
        Box::new(Self::iter(self))
    }
}

impl<T: Send + Sync> Objects<T> for Vec<T> {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &T> + Send + '_> {
        Box::new(self.as_slice().iter())
    }
}

/// The writing side without the type of its reader, which the pump does not need.
pub(crate) trait AnyStore<T>: Send {
    fn apply(&mut self, changes: Vec<Change<T>>) -> Applied<T>;
    fn replace(&mut self, objects: Vec<T>, version: ResourceVersion) -> Replaced<T>;
}

impl<T, S: Store<T>> AnyStore<T> for S {
    fn apply(&mut self, changes: Vec<Change<T>>) -> Applied<T> {
        Store::apply(self, changes)
    }

    fn replace(&mut self, objects: Vec<T>, version: ResourceVersion) -> Replaced<T> {
        Store::replace(self, objects, version)
    }
}

/// The store, as queues ask it that compare with it. They are locked then; a store never calls its queue.
pub(crate) struct Known<T>(pub(crate) Arc<dyn StoreReader<T>>);

impl<T: Item> KnownObjects<T> for Known<T> {
    fn for_each_key(&self, f: &mut dyn FnMut(&ObjectKey)) {
        for object in self.0.freeze().iter() {
            f(&object.key());
        }
    }

    fn get(&self, key: &ObjectKey) -> Option<T> {
        self.0.get(key)
    }
}
