//! From an informer's handler, which must not wait, into a queue that may be full.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kubestrata_api_types::ObjectKey;
use kubestrata_workqueue::{AddOptions, TryAddError, WorkQueue};
use tokio::sync::Notify;

/// Adds keys to a queue; those that find it full wait in a set and follow when there is room.
///
/// Dropping them would lose deletions, of which nothing tells again. Each key is in the set once, so it holds at most
/// what the watched objects map to.
#[derive(Debug)]
pub(crate) struct Enqueue {
    queue: WorkQueue<ObjectKey>,
    /// Keys that wait for room, with their priority.
    overflow: Mutex<BTreeMap<ObjectKey, i32>>,
    overflowed: Notify,
}

impl Enqueue {
    pub(crate) fn new(queue: WorkQueue<ObjectKey>) -> Self {
        Self { queue, overflow: Mutex::default(), overflowed: Notify::new() }
    }

    /// Adds a key. Never waits. Once the queue is shutting down it does nothing.
    pub(crate) fn add(&self, key: ObjectKey, priority: i32) {
        let options = AddOptions::new().priority(priority);
        if let Err(TryAddError::Full(key)) = self.queue.try_add_with(key, options) {
            let mut overflow = self.overflow();
            let waiting = overflow.entry(key).or_insert(priority);
            *waiting = (*waiting).max(priority);
            drop(overflow);
            self.overflowed.notify_one();
        }
    }

    /// Moves what waits into the queue, until that is shut down.
    pub(crate) async fn run(&self) {
        loop {
            self.overflowed.notified().await;
            loop {
                // Taken out before it is added: a change that comes after that puts the key in again.
                let Some((key, priority)) = self.overflow().pop_first() else { break };
                let options = AddOptions::new().priority(priority);
                if self.queue.add_with(key, options).await.is_err() {
                    return;
                }
            }
        }
    }

    fn overflow(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, i32>> {
        self.overflow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
