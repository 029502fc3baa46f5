//! Tasks that wait for the store to reach a version.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use kubestrata_api_types::ResourceVersion;

use crate::reader::Shared;
use crate::{StoreVersion, WaitError};

/// Who waits for what. As many entries as there are unfinished [`AtLeast`] futures.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    next: u64,
    /// In order of arrival, which is the order in which they are woken: a run replays.
    waiting: BTreeMap<u64, Waiter>,
}

#[derive(Debug)]
struct Waiter {
    epoch: u64,
    want: ResourceVersion,
    waker: Waker,
}

impl Waiters {
    /// Takes out those whose wait is over.
    pub(crate) fn ready(&mut self, version: &StoreVersion, closed: bool) -> Vec<Waker> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let over =
            |waiter: &Waiter| closed || version.reached(waiter.epoch, &waiter.want) != Ok(false);
        let ready: Vec<u64> =
            self.waiting.iter().filter(|(_, waiter)| over(waiter)).map(|(id, _)| *id).collect();
        ready.iter().filter_map(|id| Some(self.waiting.remove(id)?.waker)).collect()
    }

    fn register(&mut self, id: Option<u64>, waiter: Waiter) -> u64 {
        let id = id.unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        self.waiting.insert(id, waiter);
        id
    }
}

/// Waits until the store has reached a version, however long that takes. See [`Reader::at_least`].
///
/// Cancel-safe: dropping it ends the wait.
///
/// [`Reader::at_least`]: crate::Reader::at_least
#[must_use = "a future does nothing unless it is polled"]
pub struct AtLeast<T> {
    shared: Arc<Shared<T>>,
    epoch: u64,
    want: ResourceVersion,
    id: Option<u64>,
}

impl<T> AtLeast<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>, epoch: u64, want: ResourceVersion) -> Self {
        Self { shared, epoch, want, id: None }
    }

    fn check(&self) -> Poll<Result<StoreVersion, WaitError>> {
        let state = self.shared.state.read();
        match state.version.reached(self.epoch, &self.want) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(true) => Poll::Ready(Ok(state.version.clone())),
            Ok(false) if state.closed => Poll::Ready(Err(WaitError::Closed)),
            Ok(false) => Poll::Pending,
        }
    }
}

impl<T> Future for AtLeast<T> {
    type Output = Result<StoreVersion, WaitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let checked = self.check();
        if checked.is_ready() {
            return checked;
        }
        let waiter =
            Waiter { epoch: self.epoch, want: self.want.clone(), waker: context.waker().clone() };
        let id = self.shared.waiters.lock().register(self.id, waiter);
        self.id = Some(id);
        // Again, after registering: the writer changes the state first and looks for waiters then, so one of the two
        // sees the other.
        self.check()
    }
}

impl<T> Drop for AtLeast<T> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.shared.waiters.lock().waiting.remove(&id);
        }
    }
}

impl<T> fmt::Debug for AtLeast<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AtLeast({}, epoch {})", self.want, self.epoch)
    }
}
