//! The crashes of servers, told to every connection in the order in which they wait.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts crashes. `tokio::sync::watch` would tell of them in an order that it draws by lot, and no seed would repeat.
#[derive(Debug, Default)]
pub(super) struct Crashes {
    count: AtomicU64,
    notify: Notify,
}

impl Crashes {
    /// One more.
    pub(super) fn happen(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.notify.notify_waiters();
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until there are more than those `seen`.
    pub(super) async fn beyond(&self, seen: u64) {
        let told = self.notify.notified();
        if self.count() == seen {
            told.await;
        }
    }
}
