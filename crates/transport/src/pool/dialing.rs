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
        match connected {
            None => lane.failed(Shared::new(pool.dialer.ended_early())),
            Some(Ok(Connected::Http1(sender))) => {
                if lane.opened_http1(sender, Instant::now()) {
                    let idle = pool.timeouts.idle;
                    pool.tasks.spawner().execute(expire_idle(self.pool.clone(), self.watch, idle));
                }
            }
            Some(Ok(Connected::Http2(sender))) => lane.opened_http2(sender, track.waiting() > 0),
            Some(Err(error)) => lane.failed(Shared::new(error)),
        }
        drop(lane);
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

/// Closes HTTP/1.1 connections that nobody uses any more, until there are none. A task of the pool, and ends with it.
async fn expire_idle(pool: Weak<Inner>, watch: bool, idle: Duration) {
    let mut next = Instant::now() + idle.min(FOREVER);
    loop {
        tokio::time::sleep_until(next).await;
        let Some(inner) = pool.upgrade() else { return };
        match inner.track(watch).lane.lock().expire(Instant::now()) {
            Some(again) => next = again,
            None => return,
        }
    }
}
