//! Those who wait for a place, in the order in which they came.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubestrata_telemetry::Gauge;
use parking_lot::Mutex;
use tokio::sync::futures::Notified;
use tokio::sync::{MutexGuard, Notify};
use tokio::time::Instant;

use super::lane::{Bounds, Found, Lane, Reuse, Version};

/// A lane, and the line of those who wait for it.
///
/// Who comes while others wait goes to the end of the line. Without that, a caller that sends one request after the other
/// would take each place that it gives back again before the one who waits for it has woken up, until that one's time is
/// over.
#[derive(Debug)]
pub(super) struct Track<H1, H2, E> {
    pub(super) lane: Mutex<Lane<H1, H2, E>>,
    /// Told of each place that may be free.
    pub(super) changed: Arc<Notify>,
    pub(super) streams: Gauge,
    /// Held by the first in line, who alone waits for changes; tokio's mutex is fair.
    first: tokio::sync::Mutex<()>,
    /// How many are in line. SeqCst: a look at it and at the lane must not be taken for one in the other order.
    waiting: AtomicUsize,
}

/// One in line, until dropped.
pub(super) struct Line<'a> {
    waiting: &'a AtomicUsize,
    /// How many connections could not be opened before it came.
    seen: u64,
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The first in line, until dropped.
pub(super) struct First<'a> {
    changed: &'a Notify,
    _turn: MutexGuard<'a, ()>,
}

impl First<'_> {
    /// The next change from now on: one that happens before this is polled is not missed.
    pub(super) fn change(&self) -> Pin<Box<Notified<'_>>> {
        let mut changed = Box::pin(self.changed.notified());
        changed.as_mut().enable();
        changed
    }
}

/// What there is for the first in line.
pub(super) enum Look<H1, H2, E> {
    Found(Found<H1, H2>),
    /// A connection could not be opened since it came, and there was no other to hope for.
    Failed(E),
    Nothing,
}

impl<H1: Reuse, H2: Reuse + Clone, E: Clone> Track<H1, H2, E> {
    pub(super) fn new(bounds: Bounds, version: Option<Version>, streams: Gauge) -> Self {
        Self {
            lane: Mutex::new(Lane::new(bounds, version)),
            changed: Arc::default(),
            streams,
            first: tokio::sync::Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// What is free now, if nobody waits for it.
    pub(super) fn at_once(&self) -> Option<Found<H1, H2>> {
        if self.waiting() > 0 {
            return None;
        }
        self.lane.lock().take(Instant::now())
    }

    /// How many are in line.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Goes to the end of the line.
    pub(super) fn join(&self) -> Line<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Line { waiting: &self.waiting, seen: self.lane.lock().failures() }
    }

    /// Waits to become the first of those in line. Cancel-safe: who gives up leaves the line.
    pub(super) async fn first(&self, _: &Line<'_>) -> First<'_> {
        First { changed: &self.changed, _turn: self.first.lock().await }
    }

    /// What there is for one who came then.
    pub(super) fn look(&self, line: &Line<'_>) -> Look<H1, H2, E> {
        let mut lane = self.lane.lock();
        if let Some(found) = lane.take(Instant::now()) {
            return Look::Found(found);
        }
        lane.hopeless_since(line.seen).map_or(Look::Nothing, Look::Failed)
    }

    /// Why no further connection could be opened since one came who has waited in vain.
    pub(super) fn failure(&self, line: &Line<'_>) -> Option<E> {
        self.lane.lock().failure_since(line.seen)
    }
}
