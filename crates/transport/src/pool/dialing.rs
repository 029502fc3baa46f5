//! A connection on its way into a lane.

use std::sync::Weak;
use std::time::Duration;

use hyper::rt::Executor as _;
use kubestrata_api_types::FOREVER;
use tokio::time::Instant;

use super::Inner;
use super::dial::Connected;
use crate::error::{ConnectError, Shared};

/// A connection being opened, by a task of the pool.
pub(super) struct Dialing {
    pool: Weak<Inner>,
    watch: bool,
    done: bool,
}

impl Dialing {
    pub(super) fn new(pool: Weak<Inner>, watch: bool) -> Self {
        Self { pool, watch, done: false }
    }

    pub(super) fn finish(mut self, connected: Result<Connected, ConnectError>) {
        self.end(Some(connected));
    }

    /// `None` for a task that ends early.
    fn end(&mut self, connected: Option<Result<Connected, ConnectError>>) {
        self.done = true;
        let Some(pool) = self.pool.upgrade() else { return };
        let track = pool.track(self.watch);
        let mut lane = track.lane.lock();
        let mut look_after = false;
        match connected {
            None => {
                let error = Shared::new(pool.dialer.ended_early());
                lane.failed(error, Instant::now());
            }
            Some(Ok(Connected::Http1(sender))) => {
                look_after = lane.opened_http1(sender, Instant::now());
            }
            Some(Ok(Connected::Http2(sender))) => lane.opened_http2(sender, track.waiting() > 0),
            Some(Err(error)) => lane.failed(Shared::new(error), Instant::now()),
        }
        // Before a task is begun: a runtime that shuts down drops it at once, which may want the lane.
        drop(lane);
        if look_after {
            let after = LookingAfter { pool: self.pool.clone(), watch: self.watch };
            pool.tasks.spawner().execute(expire_idle(after, pool.timeouts.idle));
        }
        track.changed.notify_one();
    }
}

/// A task that ends early has failed: were it as if it had never begun, those who wait would begin the next at once, and do
/// nothing else where a resolver always panics.
impl Drop for Dialing {
    fn drop(&mut self) {
        if !self.done {
            self.end(None);
        }
    }
}

/// Somebody calls [`Lane::expire`](super::lane::Lane::expire). Its task may end with its runtime before the pool does.
struct LookingAfter {
    pool: Weak<Inner>,
    watch: bool,
}

impl Drop for LookingAfter {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.track(self.watch).lane.lock().left_alone();
        }
    }
}

/// Closes HTTP/1.1 connections that nobody uses any more, until there are none. A task of the pool, and ends with it.
async fn expire_idle(after: LookingAfter, idle: Duration) {
    let mut next = Instant::now() + idle.min(FOREVER);
    loop {
        tokio::time::sleep_until(next).await;
        let Some(inner) = after.pool.upgrade() else { return };
        match inner.track(after.watch).lane.lock().expire(Instant::now()) {
            Some(again) => next = again,
            None => return,
        }
    }
}
