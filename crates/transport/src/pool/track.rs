//! Those who wait for a place, in the order in which they came.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubestrata_telemetry::Gauge;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::lane::{Bounds, Lane, Take, Version};
use super::{Http1, Http2};
use crate::error::{ConnectError, Shared};

type Found = Result<Take<Http1, Http2>, Shared<ConnectError>>;

/// A lane, and the line of those who wait for it.
///
/// Who comes while others wait goes to the end of the line. Without that, a caller that sends one request after the other
/// would take each place that it gives back again before the one who waits for it has woken up, until that one's time is
/// over.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) lane: Mutex<Lane<Http1, Http2, Shared<ConnectError>>>,
    /// Told of each place that may be free.
    pub(super) changed: Arc<Notify>,
    pub(super) streams: Gauge,
    /// Held by the first in line, who alone waits for changes; tokio's mutex is fair.
    first: tokio::sync::Mutex<()>,
    /// How many are in line. SeqCst: a look at it and at the lane must not be taken for one in the other order.
    waiting: AtomicUsize,
}

/// One in line, until dropped.
struct InLine<'a>(&'a AtomicUsize);

impl<'a> InLine<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Self(waiting)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Track {
    pub(super) fn new(bounds: Bounds, version: Option<Version>, streams: Gauge) -> Self {
        Self {
            lane: Mutex::new(Lane::new(bounds, version)),
            changed: Arc::default(),
            streams,
            first: tokio::sync::Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits until the lane has something for us, or a connection could not be opened since `seen`. Cancel-safe.
    pub(super) async fn free(&self, seen: &mut u64) -> Found {
        if self.waiting.load(Ordering::SeqCst) == 0
            && let Some(found) = self.look(seen)
        {
            return found;
        }
        let _in_line = InLine::new(&self.waiting);
        let _first = self.first.lock().await;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look at the lane: a change in between is not missed.
            changed.as_mut().enable();
            if let Some(found) = self.look(seen) {
                return found;
            }
            changed.await;
        }
    }

    fn look(&self, seen: &mut u64) -> Option<Found> {
        let mut lane = self.lane.lock();
        if let Some(failure) = lane.failure_since(*seen) {
            return Some(Err(failure));
        }
        match lane.take(Instant::now()) {
            Take::Wait => {
                *seen = lane.failures();
                None
            }
            found => Some(Ok(found)),
        }
    }
}
