//! Those who read the store.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{KeyRef, ObjectKey, ResourceVersion, Weight};

use crate::index::extract::Extracted;
use crate::index::postings::Postings;
use crate::query::Found;
use crate::state::State;
use crate::sync::{Mutex, RwLock};
use crate::waiters::Waiters;
use crate::{
    AtLeast, Frozen, Index, IndexProblem, NameTaken, Query, QueryError, Selected, StoreVersion,
    Stored, Usage, WaitError,
};

/// What writer and readers share.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    pub(crate) state: RwLock<State<T>>,
    /// Taken before `state` by everyone who changes it. Index functions run under it.
    pub(crate) writing: Mutex<()>,
    /// Of all objects. Beside the state, because weighing is user code and runs outside its lock.
    pub(crate) weight: Mutex<Weight>,
    pub(crate) waiters: Mutex<Waiters>,
}

impl<T> Shared<T> {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::new(State::new(Arc::from([Index::namespace()]))),
            writing: Mutex::new(()),
            weight: Mutex::new(Weight::default()),
            waiters: Mutex::new(Waiters::default()),
        }
    }

    /// Wakes those who wait for this version. To be called after the state was changed, without its lock.
    pub(crate) fn wake(&self, version: &StoreVersion, closed: bool) {
        let ready = self.waiters.lock().ready(version, closed);
        for waker in ready {
            waker.wake();
        }
    }
}

impl<T: Stored> Shared<T> {
    /// Accounts for objects that came, by their weight, and objects that went.
    pub(crate) fn weigh<'a>(&self, came: Weight, went: impl Iterator<Item = &'a T>) {
        let went: Weight = went.map(T::weight).sum();
        let mut weight = self.weight.lock();
        *weight += came;
        *weight -= went;
    }
}

/// Reads a store. A clone is another reader of the same store.
///
/// Reads are synchronous, see the state of one instant, and give clones of the items.
pub struct Reader<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Reader<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.shared.state.read().table.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How far the store has followed its source.
    pub fn version(&self) -> StoreVersion {
        self.shared.state.read().version.clone()
    }

    /// Whether the writer is gone, so that the store will not change any more.
    pub fn is_closed(&self) -> bool {
        self.shared.state.read().closed
    }

    /// All objects at this instant, shared with the store.
    pub fn freeze(&self) -> Frozen<T> {
        self.shared.state.read().freeze()
    }

    /// Whether the store has reached `want` by now; asks, does not wait (KEP-5647).
    ///
    /// An unset version and `"0"` are reached as soon as the store was filled once.
    ///
    /// # Errors
    ///
    /// [`WaitError::Stale`] if not, [`WaitError::NotComparable`] if that cannot be told.
    pub fn check_at_least(&self, want: &ResourceVersion) -> Result<StoreVersion, WaitError> {
        let version = self.version();
        if version.reached(version.epoch, want)? {
            Ok(version)
        } else {
            Err(WaitError::Stale { have: version.version, want: want.clone() })
        }
    }

    /// Waits until the store has reached `want` in the present epoch, however long that takes.
    ///
    /// # Errors
    ///
    /// The future gives [`WaitError::Rewound`], [`WaitError::NotComparable`] or [`WaitError::Closed`].
    pub fn at_least(&self, want: ResourceVersion) -> AtLeast<T> {
        self.at_least_in(self.version().epoch, want)
    }

    /// The same for a version that was learnt in an earlier epoch: if that has passed, the answer is `Rewound` at once.
    pub fn at_least_in(&self, epoch: u64, want: ResourceVersion) -> AtLeast<T> {
        AtLeast::new(Arc::clone(&self.shared), epoch, want)
    }

    /// Waits for `want` for at most `timeout`. Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`WaitError::Stale`] when the time is over, and those of [`at_least`](Self::at_least).
    pub async fn wait_at_least(
        &self,
        want: ResourceVersion,
        timeout: Duration,
    ) -> Result<StoreVersion, WaitError> {
        match tokio::time::timeout(timeout, self.at_least(want.clone())).await {
            Ok(reached) => reached,
            Err(_) => Err(WaitError::Stale { have: self.version().version, want }),
        }
    }

    /// Names of all indexes, the built-in one over namespaces first.
    pub fn indexes(&self) -> Vec<Arc<str>> {
        let indexes = Arc::clone(&self.shared.state.read().indexes);
        indexes.iter().map(|index| Arc::clone(index.name())).collect()
    }

    /// All values that some object has in an index, sorted.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoIndex`]
    pub fn index_values(&self, name: &str) -> Result<Vec<String>, QueryError> {
        let state = self.shared.state.read();
        let postings = state.index(name);
        let postings = postings.ok_or_else(|| QueryError::NoIndex { name: name.to_owned() })?;
        let mut values: Vec<String> = postings.texts().map(str::to_owned).collect();
        drop(state);
        values.sort_unstable();
        Ok(values)
    }

    /// Bytes and counts: of objects, keys and each index.
    pub fn usage(&self) -> Usage {
        let weight = *self.shared.weight.lock();
        let state = self.shared.state.read();
        let indexes = state.indexes.iter().zip(&state.postings);
        Usage {
            objects: state.table.len(),
            heads: weight.head,
            bodies: weight.body,
            keys: state.key_bytes(),
            indexes: indexes.map(|(index, postings)| postings.usage(index.name())).collect(),
        }
    }
}

impl<T: Stored> Reader<T> {
    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<T> {
        self.shared.state.read().get(key.borrowed()).cloned()
    }

    /// One object by the parts of its key.
    pub fn get_by_name(&self, namespace: Option<&str>, name: &str) -> Option<T> {
        self.shared.state.read().get(KeyRef::new(namespace, name)).cloned()
    }

    /// All objects, in no particular order.
    pub fn list(&self) -> Vec<T> {
        self.freeze().iter().cloned().collect()
    }

    /// The objects of a namespace, in no particular order.
    pub fn list_in(&self, namespace: &str) -> Vec<T> {
        let query = Query::all().in_namespace(namespace);
        // A query by namespace alone names no index that could be missing.
        self.select(&query).map(|selected| selected.objects).unwrap_or_default()
    }

    /// The objects that have `value` in the index `name`, in no particular order.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoIndex`]
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<T>, QueryError> {
        Ok(self.select(&Query::all().index(name, value))?.objects)
    }

    /// The objects that a query selects.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if the query names a missing index or is more than indexes can answer.
    pub fn select(&self, query: &Query) -> Result<Selected<T>, QueryError> {
        Ok(self.find(query)?.select(query))
    }

    /// Shows each object that a query selects, without cloning them, until `visit` breaks.
    ///
    /// # Errors
    ///
    /// As [`select`](Self::select).
    pub fn for_each(
        &self,
        query: &Query,
        mut visit: impl FnMut(&T) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        self.find(query)?.visit(query, &mut visit);
        Ok(())
    }

    fn find(&self, query: &Query) -> Result<Found<T>, QueryError> {
        self.shared.state.read().find_query(query)
    }

    /// Adds an index over the objects there are and will be. Adding the same index again does nothing.
    ///
    /// Takes a moment for each stored object, in which readers go on and the writer waits.
    /// To be called from no index function.
    ///
    /// # Errors
    ///
    /// [`NameTaken`] if a different index has the name. Two indexes by function are the same if one is a clone of the other.
    pub fn add_index(&self, index: Index<T>) -> Result<Vec<IndexProblem>, NameTaken> {
        let _writing = self.shared.writing.lock();
        let (indexes, frozen) = {
            let state = self.shared.state.read();
            (Arc::clone(&state.indexes), state.freeze())
        };
        if let Some(other) = indexes.iter().find(|other| other.name() == index.name()) {
            return if other.is_same(&index) {
                Ok(Vec::new())
            } else {
                Err(NameTaken { name: Arc::clone(index.name()) })
            };
        }
        let objects = frozen.iter();
        let (values, problems) = Extracted::of(std::slice::from_ref(&index), objects);
        let mut postings = Postings::default();
        for (number, (slot, _)) in frozen.chunks.numbered().enumerate() {
            postings.set(slot, values.get(number, 0));
        }
        // Let go before the writer's next change, which else would copy what it touches.
        drop(frozen);
        let indexes = indexes.iter().cloned().chain([index]).collect();
        let mut state = self.shared.state.write();
        state.indexes = indexes;
        state.postings.push(postings);
        Ok(problems)
    }

    /// Removes an index. Returns whether it was there. The built-in one over namespaces stays.
    pub fn remove_index(&self, name: &str) -> bool {
        let _writing = self.shared.writing.lock();
        let indexes = Arc::clone(&self.shared.state.read().indexes);
        let Some(at) =
            indexes.iter().position(|index| **index.name() == *name).filter(|at| *at > 0)
        else {
            return false;
        };
        let left = indexes.iter().enumerate().filter(|(other, _)| *other != at);
        let left = left.map(|(_, index)| index.clone()).collect();
        let mut state = self.shared.state.write();
        state.indexes = left;
        let removed = state.postings.remove(at);
        drop(state);
        // Freed after the lock is.
        drop(removed);
        true
    }

    #[cfg(all(test, not(kubestrata_loom)))]
    pub(crate) fn check(&self) {
        self.shared.state.read().check();
        let weight: Weight = self.list().iter().map(T::weight).sum();
        assert_eq!(*self.shared.weight.lock(), weight);
    }
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
