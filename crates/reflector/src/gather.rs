//! The state as it is gathered, object by object.

use std::collections::HashMap;
use std::mem;

use kubestrata_api_types::{Object, ObjectKey, ResourceVersion, Snapshot, Unreadable};

/// Objects by key, in order of first arrival.
///
/// It holds as much as the collection does, and no bound of its own: what follows it, the store, holds the same.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    items: Vec<T>,
    index: HashMap<ObjectKey, usize>,
    unreadable: Vec<Unreadable>,
}

impl<T> Default for Gather<T> {
    fn default() -> Self {
        Self { items: Vec::new(), index: HashMap::new(), unreadable: Vec::new() }
    }
}

impl<T: Object> Gather<T> {
    /// Adds or replaces an object; says whether its key is new.
    pub(crate) fn put(&mut self, object: T) -> bool {
        let key = object.key();
        if !self.unreadable.is_empty() {
            self.unreadable.retain(|unreadable| unreadable.key.as_ref() != Some(&key));
        }
        match self.index.get(&key) {
            Some(&at) => {
                self.items[at] = object;
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
        self.unreadable.retain(|unreadable| unreadable.key.as_ref() != Some(&key));
        let Some(at) = self.index.remove(&key) else { return };
        self.items.swap_remove(at);
        if let Some(moved) = self.items.get(at) {
            self.index.insert(moved.key(), at);
        }
    }

    /// Notes an object that cannot be read; an older state of it stays.
    pub(crate) fn note(&mut self, unreadable: Unreadable) {
        if unreadable.key.is_some() {
            self.unreadable.retain(|known| known.key != unreadable.key);
        }
        self.unreadable.push(unreadable);
    }

    /// The state, leaving nothing.
    pub(crate) fn take(&mut self, resource_version: ResourceVersion) -> Snapshot<T> {
        // The index goes too: it is as large as the collection, and the next list may be days away.
        let Self { mut items, unreadable, .. } = mem::take(self);
        items.shrink_to_fit();
        Snapshot { items, unreadable, resource_version }
    }
}
