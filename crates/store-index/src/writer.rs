//! The one who changes the store.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{ObjectKey, ResourceVersion, Weight};

use crate::index::extract::Extracted;
use crate::reader::Shared;
use crate::state::State;
use crate::{Batch, Change, Reader, Replaced, Stored};

/// A new, empty store.
pub fn store<T: Stored>() -> (Writer<T>, Reader<T>) {
    let shared = Arc::new(Shared::new());
    (Writer { shared: Arc::clone(&shared) }, Reader::new(shared))
}

/// Changes a store. There is one for each store; readers see each call's effect as a whole.
///
/// Dropping it leaves the objects to the readers and ends their waits with [`WaitError::Closed`].
///
/// [`WaitError::Closed`]: crate::WaitError::Closed
pub struct Writer<T: Stored> {
    shared: Arc<Shared<T>>,
}

impl<T: Stored> Writer<T> {
    /// A reader of this store.
    pub fn reader(&self) -> Reader<T> {
        Reader::new(Arc::clone(&self.shared))
    }

    /// Stores one object; the store's version advances to the object's. Returns the object that was there.
    pub fn upsert(&mut self, object: T) -> Batch<T> {
        self.apply(vec![Change::Upsert(object)])
    }

    /// Removes one object. `version` is that of the deletion, unset if it is not known. Returns the object that was there.
    pub fn delete(&mut self, key: ObjectKey, version: ResourceVersion) -> Batch<T> {
        self.apply(vec![Change::Delete { key, version }])
    }

    /// Advances the store's version: nothing else has changed up to it.
    pub fn bookmark(&mut self, version: ResourceVersion) {
        self.apply(vec![Change::Bookmark(version)]);
    }

    /// Makes many changes under one lock. Readers see all of them or none.
    ///
    /// An object that an index cannot handle is stored all the same and told in [`Batch::problems`].
    pub fn apply(&mut self, changes: Vec<Change<T>>) -> Batch<T> {
        let shared = &*self.shared;
        // Held from reading the list of indexes to writing, so that no index is added between.
        let writing = shared.writing.lock();
        let indexes = Arc::clone(&shared.state.read().indexes);
        let mut change = Weight::default();
        let objects = changes.iter().filter_map(|change| match change {
            Change::Upsert(object) => Some(object),
            Change::Delete { .. } | Change::Bookmark(_) => None,
        });
        let objects = objects.inspect(|object| change += object.weight());
        let (values, problems) = Extracted::of(&indexes, objects);
        let versions: Vec<ResourceVersion> = changes.iter().map(version_of).collect();

        let mut previous = Vec::with_capacity(changes.len());
        let mut numbers = 0..;
        let mut state = shared.state.write();
        for (change, version) in changes.into_iter().zip(versions) {
            previous.push(match change {
                Change::Upsert(object) => {
                    numbers.next().and_then(|number| state.upsert(object, (&values, number)))
                }
                Change::Delete { key, .. } => state.remove(key.borrowed()),
                Change::Bookmark(_) => None,
            });
            state.version.advance(&version);
        }
        let version = state.version.clone();
        drop(state);
        shared.weigh(change, previous.iter().flatten());
        drop(writing);
        shared.wake(&version, false);
        Batch { previous, problems }
    }

    /// Makes the store hold exactly `objects`, the state of the source at `version`. Of several with one key the last stays.
    ///
    /// The new state is built beside the old one, which readers go on reading; they are locked out for a swap of pointers.
    /// Where an object has the uid and version of the stored one, that one stays, so that a relist does not double the
    /// memory of what has not changed. A `version` below the store's begins a new epoch.
    pub fn replace(&mut self, objects: Vec<T>, version: ResourceVersion) -> Replaced<T> {
        let shared = &*self.shared;
        let writing = shared.writing.lock();
        let indexes = Arc::clone(&shared.state.read().indexes);
        let (values, problems) = Extracted::of(&indexes, &objects);

        let mut next = State::new(indexes);
        next.reserve(objects.len());
        let mut previous = Vec::with_capacity(objects.len());
        let mut weight = Weight::default();
        for (number, object) in objects.into_iter().enumerate() {
            // One short lock for each object: no reader waits for user code or for the whole.
            let old = shared.state.read().get(object.key_ref()).cloned();
            let object = match &old {
                Some(old) if is_unchanged(old, &object) => old.clone(),
                _ => object,
            };
            weight += object.weight();
            if let Some(double) = next.upsert(object, (&values, number)) {
                weight -= double.weight();
            }
            previous.push(old);
        }

        let mut state = shared.state.write();
        next.version = state.version.clone();
        let rewound = next.version.reset(&version);
        let version = next.version.clone();
        let last = std::mem::replace(&mut *state, next);
        drop(state);
        *shared.weight.lock() = weight;
        let removed = {
            let state = shared.state.read();
            let gone = last.table.share();
            gone.iter().filter(|object| state.find(object.key_ref()).is_none()).cloned().collect()
        };
        drop(writing);
        shared.wake(&version, false);
        Replaced { previous, removed, rewound, problems }
    }
}

fn version_of<T: Stored>(change: &Change<T>) -> ResourceVersion {
    match change {
        Change::Upsert(object) => object.resource_version(),
        Change::Delete { version, .. } | Change::Bookmark(version) => version.clone(),
    }
}

/// The same object in the same version.
fn is_unchanged<T: Stored>(old: &T, new: &T) -> bool {
    let version = new.resource_version();
    !version.is_unset() && old.resource_version() == version && old.uid() == new.uid()
}

impl<T: Stored> Drop for Writer<T> {
    fn drop(&mut self) {
        let version = {
            let mut state = self.shared.state.write();
            state.closed = true;
            state.version.clone()
        };
        self.shared.wake(&version, true);
    }
}

impl<T: Stored> fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}
