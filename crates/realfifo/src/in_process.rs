//! What was taken and may not be in the consumer's store yet.

use std::collections::HashSet;

use kubestrata_api_types::{Object, ObjectKey};

use crate::{Delta, Tombstone};

/// The objects of the batch in process, for queues that compare with the consumer's store.
///
/// client-go processes such a batch under the queue's lock, so that nobody can compare meanwhile. Here the producer goes
/// on meanwhile, and the store alone would tell it too little: an object on its way there would be missed when it has to
/// be deleted, and sent once more in an older state at a resync.
#[derive(Debug)]
pub(crate) struct InProcess<T>(Vec<Taken<T>>);

#[derive(Debug)]
struct Taken<T> {
    key: ObjectKey,
    /// The last state, where one is known.
    last: Option<T>,
    /// The key will be gone.
    deleted: bool,
}

impl<T> Default for InProcess<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Object + Clone> InProcess<T> {
    /// Notes a delta that is handed to the consumer.
    pub(crate) fn note(&mut self, delta: &Delta<T>) {
        if matches!(delta, Delta::Unreadable(_)) {
            return;
        }
        let Some(key) = delta.key() else { return };
        let deleted = matches!(delta, Delta::Deleted(_));
        let last = delta.object().cloned();
        match self.0.last_mut().filter(|taken| taken.key == key) {
            Some(taken) => *taken = Taken { key, last, deleted },
            None => self.0.push(Taken { key, last, deleted }),
        }
    }

    /// All of it is in the consumer's store.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn keys(&self) -> HashSet<&ObjectKey> {
        self.0.iter().map(|taken| &taken.key).collect()
    }

    /// Whether the key will be in the consumer's store; `None` if it is not in process.
    pub(crate) fn will_have(&self, key: &ObjectKey) -> Option<bool> {
        self.0.iter().rev().find(|taken| taken.key == *key).map(|taken| !taken.deleted)
    }

    /// Tombstones of what will be in the consumer's store and must not be, in order.
    pub(crate) fn gone(&self, is_wanted: impl Fn(&ObjectKey) -> bool) -> Vec<Tombstone<T>> {
        let gone = self.0.iter().filter(|taken| !taken.deleted && !is_wanted(&taken.key));
        gone.map(|taken| Tombstone { key: taken.key.clone(), last: taken.last.clone() }).collect()
    }
}
