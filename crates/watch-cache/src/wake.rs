//! A wake-up for all who wait, in the order in which they began to.
//!
//! `tokio::sync::watch` wakes in an order that it draws by lot, and a run that a seed is to repeat must not depend on it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts the changes of a state, and wakes those who have not seen the newest.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    changes: AtomicU64,
    closed: AtomicBool,
    notify: Notify,
}

impl Wake {
    /// The state has changed.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// There will be no more to see.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.changed();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// How many changes there were: to be taken before the state is read.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Waits until there are other changes than those `seen`.
    ///
    /// Cancel-safe.
    pub(crate) async fn beyond(&self, seen: u64) {
        // Made before the count is read: a future of `Notify` is told of all that comes after it was made.
        let told = self.notify.notified();
        if self.changes() == seen {
            told.await;
        }
    }
}
