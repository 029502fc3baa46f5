//! The state as it is gathered, object by object.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::mem;

use hashbrown::{DefaultHashBuilder, HashTable};
use kubestrata_api_types::{KeyRef, Object, ObjectKey, ResourceVersion, Snapshot, Unreadable};

use crate::{Config, ReflectorError};

/// Tells how many bytes an object holds.
pub(crate) type Weigher<T> = fn(&T) -> usize;

/// Objects by key, in order of first arrival.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    items: Vec<T>,
    hasher: DefaultHashBuilder,
    /// Where each object is in `items`. Their keys are in the objects, and nowhere else.
    index: HashTable<u32>,
    /// Those that became readable or went away leave a hole.
    unreadable: Vec<Option<Unreadable>>,
    /// Where they are, by key where that is known.
    unread: HashMap<ObjectKey, usize>,
    holes: usize,
    weigh: Weigher<T>,
    /// The weight of all items.
    bytes: u64,
}

impl<T: Object> Gather<T> {
    pub(crate) fn new(weigh: Weigher<T>) -> Self {
        Self {
            items: Vec::new(),
            hasher: DefaultHashBuilder::default(),
            index: HashTable::new(),
            unreadable: Vec::new(),
            unread: HashMap::new(),
            holes: 0,
            weigh,
            bytes: 0,
        }
    }

    /// Objects gathered, those that cannot be read included.
    pub(crate) fn len(&self) -> usize {
        self.items.len() + self.unreadable.len() - self.holes
    }

    /// The error to give up with, if there is more than the configuration allows.
    pub(crate) fn excess(&self, config: &Config) -> Option<ReflectorError> {
        let (items, bytes) = (self.len(), self.bytes);
        (items > config.state_items || bytes > config.state_bytes)
            .then_some(ReflectorError::StateTooLarge { items, bytes })
    }

    /// Adds or replaces an object; says whether its key is new.
    pub(crate) fn put(&mut self, object: T) -> bool {
        self.forget_unreadable(object.key_ref());
        self.bytes = self.bytes.saturating_add(self.weight(&object));
        match self.find(object.key_ref()) {
            Some(at) => {
                let old = mem::replace(&mut self.items[at as usize], object);
                self.bytes = self.bytes.saturating_sub(self.weight(&old));
                false
            }
            None => {
                let hash = self.hasher.hash_one(object.key_ref());
                let at = place(self.items.len());
                self.items.push(object);
                let (hasher, items) = (&self.hasher, &self.items);
                let hash_of = |at: &u32| hasher.hash_one(items[*at as usize].key_ref());
                self.index.insert_unique(hash, at, hash_of);
                true
            }
        }
    }

    fn find(&self, key: KeyRef<'_>) -> Option<u32> {
        let is_it = |at: &u32| self.items[*at as usize].key_ref() == key;
        self.index.find(self.hasher.hash_one(key), is_it).copied()
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, object: &T) {
        let key = object.key_ref();
        self.forget_unreadable(key);
        let items = &self.items;
        let is_it = |at: &u32| items[*at as usize].key_ref() == key;
        let Ok(entry) = self.index.find_entry(self.hasher.hash_one(key), is_it) else { return };
        let (at, _) = entry.remove();
        let last = place(self.items.len() - 1);
        if at != last {
            // The last object takes the place of the one that goes.
            let hash = self.hasher.hash_one(self.items[last as usize].key_ref());
            if let Some(moved) = self.index.find_mut(hash, |other| *other == last) {
                *moved = at;
            }
        }
        let old = self.items.swap_remove(at as usize);
        self.bytes = self.bytes.saturating_sub(self.weight(&old));
    }

    /// Notes an object that cannot be read; an older state of it stays.
    pub(crate) fn note(&mut self, unreadable: Unreadable) {
        if let Some(key) = &unreadable.key {
            self.forget_unreadable(key.borrowed());
            self.unread.insert(key.clone(), self.unreadable.len());
        }
        self.unreadable.push(Some(unreadable));
    }

    fn forget_unreadable(&mut self, key: KeyRef<'_>) {
        // Most states have none, and then no key is looked up.
        if !self.unread.is_empty()
            && let Some(at) = self.unread.remove(&key.to_key())
        {
            self.unreadable[at] = None;
            self.holes += 1;
        }
    }

    /// The state, leaving nothing.
    pub(crate) fn take(&mut self, resource_version: ResourceVersion) -> Snapshot<T> {
        // The index goes too: it is as large as the collection, and the next list may be days away.
        let Self { mut items, unreadable, .. } = mem::replace(self, Self::new(self.weigh));
        items.shrink_to_fit();
        let unreadable = unreadable.into_iter().flatten().collect();
        Snapshot { items, unreadable, resource_version }
    }

    fn weight(&self, object: &T) -> u64 {
        u64::try_from((self.weigh)(object)).unwrap_or(u64::MAX)
    }
}

fn place(at: usize) -> u32 {
    u32::try_from(at).expect("a state has fewer than 2^32 objects")
}
