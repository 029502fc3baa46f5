//! Objects, the map from keys to them, and their indexes: pure transitions, no lock.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use kubestrata_api_types::{KeyRef, Object};

use crate::index::extract::Extracted;
use crate::index::postings::Postings;
use crate::index::{Index, NAMESPACE};
use crate::table::Table;
use crate::{Frozen, StoreVersion};

/// Everything that a reader sees.
#[derive(Debug)]
pub(crate) struct State<T> {
    pub(crate) table: Table<T>,
    hasher: DefaultHashBuilder,
    keys: HashTable<u32>,
    /// What is indexed; shared so that the writer can compute values outside the lock.
    pub(crate) indexes: Arc<[Index<T>]>,
    /// One for each of `indexes`.
    pub(crate) postings: Vec<Postings>,
    pub(crate) version: StoreVersion,
    /// The writer is gone.
    pub(crate) closed: bool,
}

impl<T> State<T> {
    /// An empty state with these indexes.
    pub(crate) fn new(indexes: Arc<[Index<T>]>) -> Self {
        Self {
            table: Table::new(),
            hasher: DefaultHashBuilder::default(),
            keys: HashTable::new(),
            postings: indexes.iter().map(|_| Postings::default()).collect(),
            indexes,
            version: StoreVersion::default(),
            closed: false,
        }
    }

    pub(crate) fn freeze(&self) -> Frozen<T> {
        Frozen { chunks: self.table.share(), len: self.table.len(), version: self.version.clone() }
    }

    pub(crate) fn index(&self, name: &str) -> Option<&Postings> {
        let at = self.indexes.iter().position(|index| **index.name() == *name)?;
        self.postings.get(at)
    }

    pub(crate) fn namespaces(&self) -> &Postings {
        debug_assert_eq!(**self.indexes[0].name(), *NAMESPACE);
        &self.postings[0]
    }

    /// Bytes of slots and of the map of keys.
    pub(crate) fn key_bytes(&self) -> usize {
        self.table.bytes() + self.keys.allocation_size()
    }
}

impl<T: Object> State<T> {
    /// The slot of a key. The table has no keys: the objects have them.
    pub(crate) fn find(&self, key: KeyRef<'_>) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let is_it = |slot: &u32| self.table.get(*slot).is_some_and(|o| o.key_ref() == key);
        self.keys.find(hash, is_it).copied()
    }

    pub(crate) fn get(&self, key: KeyRef<'_>) -> Option<&T> {
        self.table.get(self.find(key)?)
    }
}

impl<T: Object + Clone> State<T> {
    /// Makes room for `objects` more.
    pub(crate) fn reserve(&mut self, objects: usize) {
        let (hasher, table) = (&self.hasher, &self.table);
        self.keys.reserve(objects, |slot| hash_of(hasher, table, *slot));
    }

    /// Stores an object, with its values, number `object` of `values`. Returns the one that was there.
    pub(crate) fn upsert(&mut self, object: T, values: (&Extracted, usize)) -> Option<T> {
        let hash = self.hasher.hash_one(object.key_ref());
        let table = &self.table;
        let is_it = |slot: &u32| table.get(*slot).is_some_and(|o| o.key_ref() == object.key_ref());
        let (slot, previous) = match self.keys.find(hash, is_it) {
            Some(&slot) => (slot, self.table.exchange(slot, object)),
            None => {
                let slot = self.table.insert(object);
                let (hasher, table) = (&self.hasher, &self.table);
                self.keys.insert_unique(hash, slot, |slot| hash_of(hasher, table, *slot));
                (slot, None)
            }
        };
        for (index, postings) in self.postings.iter_mut().enumerate() {
            postings.set(slot, values.0.get(values.1, index));
        }
        previous
    }

    /// Removes an object and returns it.
    pub(crate) fn remove(&mut self, key: KeyRef<'_>) -> Option<T> {
        let hash = self.hasher.hash_one(key);
        let table = &self.table;
        let is_it = |slot: &u32| table.get(*slot).is_some_and(|o| o.key_ref() == key);
        let (slot, _) = self.keys.find_entry(hash, is_it).ok()?.remove();
        for postings in &mut self.postings {
            postings.clear(slot);
        }
        self.table.remove(slot)
    }

    #[cfg(all(test, not(kubestrata_loom)))]
    pub(crate) fn check(&self) {
        self.postings.iter().for_each(Postings::check);
        assert_eq!(self.table.len(), self.keys.len());
        assert_eq!(self.table.len(), self.table.share().iter().count());
        for (slot, entry) in self.table.share().numbered() {
            assert_eq!(self.find(entry.key_ref()), Some(slot));
        }
    }
}

fn hash_of<T: Object>(hasher: &DefaultHashBuilder, table: &Table<T>, slot: u32) -> u64 {
    let key = table.get(slot).map(Object::key_ref);
    hasher.hash_one(key.expect("each numbered slot has its object"))
}
