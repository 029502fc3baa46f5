//! The state as it is gathered, object by object.

use std::collections::HashMap;
use std::mem;

use kubestrata_api_types::{Object, ObjectKey, ResourceVersion, Snapshot, Unreadable};

use crate::{Config, ReflectorError};

/// Tells how many bytes an object holds.
pub(crate) type Weigher<T> = fn(&T) -> usize;

/// Objects by key, in order of first arrival.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    items: Vec<T>,
    index: HashMap<ObjectKey, usize>,
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
            index: HashMap::new(),
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
        let key = object.key();
        self.forget_unreadable(&key);
        self.bytes = self.bytes.saturating_add(self.weight(&object));
        match self.index.get(&key) {
            Some(&at) => {
                let old = mem::replace(&mut self.items[at], object);
                self.bytes = self.bytes.saturating_sub(self.weight(&old));
                false
            }
            None => {
                self.index.insert(key, self.items.len());
                self.items.push(object);
                true
            }
        }
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, object: &T) {
        let key = object.key();
        self.forget_unreadable(&key);
        let Some(at) = self.index.remove(&key) else { return };
        let old = self.items.swap_remove(at);
        self.bytes = self.bytes.saturating_sub(self.weight(&old));
        if let Some(moved) = self.items.get(at) {
            self.index.insert(moved.key(), at);
        }
    }

    /// Notes an object that cannot be read; an older state of it stays.
    pub(crate) fn note(&mut self, unreadable: Unreadable) {
        if let Some(key) = &unreadable.key {
            self.forget_unreadable(key);
            self.unread.insert(key.clone(), self.unreadable.len());
        }
        self.unreadable.push(Some(unreadable));
    }

    fn forget_unreadable(&mut self, key: &ObjectKey) {
        // Most states have none, and then no key is looked up.
        if !self.unread.is_empty()
            && let Some(at) = self.unread.remove(key)
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
