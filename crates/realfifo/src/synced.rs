//! The latch that says "the first state has been processed".

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// Tells whether the first state has been processed (client-go `HasSynced`). Never false again once true.
///
/// A clone is a reference count.
#[derive(Clone)]
pub struct Synced(Arc<Latch>);

struct Latch {
    /// Written with Release by `Synced::set` under the lock, read with Acquire by everyone, mostly without it:
    /// user code asks here, and must never meet a lock of the queue (ingress-nginx#768).
    set: AtomicBool,
    waiters: Mutex<Waiters>,
}

/// Who waits, by number of the waiting future.
#[derive(Default)]
struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    next: u64,
}

impl Synced {
    pub(crate) fn new(set: bool) -> Self {
        let waiters = Mutex::new(Waiters::default());
        Self(Arc::new(Latch { set: AtomicBool::new(set), waiters }))
    }

    /// Whether it has. Takes no lock, so that handlers may ask.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::Acquire)
    }

    /// Waits until it has; for ever, if the queue closes before.
    ///
    /// Cancel-safe.
    pub async fn wait(&self) {
        Wait { latch: &self.0, number: None }.await;
    }

    /// Sets the latch and wakes everyone, once.
    pub(crate) fn set(&self) {
        let wakers = {
            let mut waiters = self.0.waiters.lock();
            self.0.set.store(true, Ordering::Release);
            mem::take(&mut waiters.wakers)
        };
        for waker in wakers.into_values() {
            waker.wake();
        }
    }
}

impl fmt::Debug for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Synced").field(&self.is_set()).finish()
    }
}

struct Wait<'a> {
    latch: &'a Latch,
    number: Option<u64>,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiters = self.latch.waiters.lock();
        // Asked under the lock: `set` stores under it too, so no wake-up falls between.
        if self.latch.set.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        let number = self.number.unwrap_or(waiters.next);
        if self.number.is_none() {
            waiters.next += 1;
        }
        waiters.wakers.insert(number, cx.waker().clone());
        drop(waiters);
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.latch.waiters.lock().wakers.remove(&number);
        }
    }
}
