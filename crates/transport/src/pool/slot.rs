//! The share of one request in a connection.

use std::sync::Arc;

use tokio::time::Instant;

use super::frames::Peer;
use super::{Http1, Pool};

/// Our share of a connection, given back when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    pool: Pool,
    watch: bool,
    /// The HTTP/2 connection; `None` for one of HTTP/1.1, which is ours alone.
    http2: Option<(u64, Arc<Peer>)>,
    /// The HTTP/1.1 connection, once it can be used again.
    reusable: Option<Http1>,
    /// The answer was read to its end.
    over: bool,
}

impl Slot {
    pub(super) fn new(pool: Pool, watch: bool, http2: Option<(u64, Arc<Peer>)>) -> Self {
        pool.track(watch).streams.add(1.0);
        Self { pool, watch, http2, reusable: None, over: false }
    }

    /// The answer was read to its end; an HTTP/1.1 connection can be used again.
    pub(super) fn over(mut self, reusable: Option<Http1>) {
        (self.over, self.reusable) = (true, reusable);
    }

    /// Whether the request was given up on a connection that was silent for as long as the answer to a ping may take: it may
    /// be dead, and before a ping has told, every further request would wait on it too. A watch is often given up in silence.
    fn is_suspect(&self, peer: &Peer) -> bool {
        !self.over && !self.watch && peer.silence() >= self.pool.0.timeouts.ping_answer
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let track = self.pool.track(self.watch);
        track.streams.add(-1.0);
        if let Some((_, peer)) = &self.http2
            && self.is_suspect(peer)
        {
            tracing::debug!("nothing was heard on a connection; new requests take another");
            peer.leave();
        }
        {
            let mut lane = track.lane.lock();
            match (&self.http2, self.reusable.take()) {
                (Some((id, _)), _) => lane.released_http2(*id),
                (None, Some(sender)) => lane.released_http1(sender, Instant::now()),
                (None, None) => lane.closed_http1(),
            }
        }
        // One place for one who waits, the one who has waited longest. If he does not want it any more, the next is told.
        track.changed.notify_one();
    }
}
