//! Which connection a request takes: the decisions, without any connection.

use std::time::Duration;

use kubestrata_api_types::FOREVER;
use tokio::time::Instant;

/// What a lane must know of a connection.
pub(super) trait Reuse {
    /// Whether nothing more can be sent on it.
    fn is_closed(&self) -> bool;

    /// How many requests at a time the server takes on it.
    fn streams_max(&self) -> usize {
        1
    }
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// The limits of one lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Requests at a time on an HTTP/2 connection.
    pub(super) streams: usize,
    /// HTTP/2 connections.
    pub(super) http2: usize,
    /// HTTP/1.1 connections, idle ones included.
    pub(super) http1: usize,
    /// How long an HTTP/1.1 connection is kept without use.
    pub(super) idle: Duration,
}

/// What a request is to do.
#[derive(Debug)]
pub(super) enum Take<H1, H2> {
    /// Use this connection, which nobody else uses.
    Http1(H1),
    /// Use this connection, beside others.
    Http2(u64, H2),
    /// Open a connection, and say how that went.
    Dial,
    /// Look again after a change.
    Wait,
}

/// The connections of one lane. `E` is why a connection could not be opened.
#[derive(Debug)]
pub(super) struct Lane<H1, H2, E> {
    bounds: Bounds,
    /// What the server speaks; unknown until the first connection is open.
    version: Option<Version>,
    http2: Vec<Multiplexed<H2>>,
    idle: Vec<(H1, Instant)>,
    /// HTTP/1.1 connections, idle or in use.
    http1: usize,
    /// Whether somebody calls [`Lane::expire`] when that is due.
    looked_after: bool,
    /// Connections being opened.
    dialing: usize,
    failures: u64,
    failure: Option<E>,
    next_id: u64,
}

#[derive(Debug)]
struct Multiplexed<H2> {
    id: u64,
    sender: H2,
    streams: usize,
}

impl<H1: Reuse, H2: Reuse + Clone, E: Clone> Lane<H1, H2, E> {
    pub(super) fn new(bounds: Bounds, version: Option<Version>) -> Self {
        Self {
            bounds,
            version,
            http2: Vec::new(),
            idle: Vec::new(),
            http1: 0,
            looked_after: false,
            dialing: 0,
            failures: 0,
            failure: None,
            next_id: 0,
        }
    }

    /// Connections that are open.
    pub(super) fn open(&self) -> usize {
        self.http2.len() + self.http1
    }

    /// How often opening a connection has failed so far.
    pub(super) fn failures(&self) -> u64 {
        self.failures
    }

    /// The last failure, if there was one since `seen`. Who waited for a connection that could not be opened shares its
    /// error: else each would try in turn, and the last would hear of a dead server after as many deadlines.
    pub(super) fn failure_since(&self, seen: u64) -> Option<E> {
        self.failure.clone().filter(|_| self.failures > seen)
    }

    /// What a request does now. `Http1`, `Http2` and `Dial` take room that must be given back.
    pub(super) fn take(&mut self, now: Instant) -> Take<H1, H2> {
        self.forget_closed(now);
        let most = self.bounds.streams;
        // The fullest that has room: so that others run empty and can be closed.
        let free = self.http2.iter_mut().filter(|c| c.streams < most.min(c.sender.streams_max()));
        if let Some(connection) = free.max_by_key(|connection| connection.streams) {
            connection.streams += 1;
            return Take::Http2(connection.id, connection.sender.clone());
        }
        // The last used: so that the others grow old and are closed.
        if let Some((sender, _)) = self.idle.pop() {
            return Take::Http1(sender);
        }
        let room = match self.version {
            Some(Version::Http1) => self.http1 + self.dialing < self.bounds.http1,
            // One at a time: it will have room for many.
            _ => self.dialing == 0 && self.http2.len() < self.bounds.http2,
        };
        if !room {
            return Take::Wait;
        }
        self.dialing += 1;
        Take::Dial
    }

    fn forget_closed(&mut self, now: Instant) {
        self.http2.retain(|connection| !connection.sender.is_closed());
        let (before, limit) = (self.idle.len(), self.bounds.idle);
        self.idle.retain(|(sender, since)| {
            !sender.is_closed() && now.saturating_duration_since(*since) < limit
        });
        self.http1 -= before - self.idle.len();
    }

    /// Lets idle connections go that were not used for too long. When to do so again; `None` once there is no connection
    /// that could become idle.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.forget_closed(now);
        self.looked_after = self.http1 > 0;
        let limit = self.bounds.idle.min(FOREVER);
        // The first in the list has been idle for longest.
        let oldest = self.idle.first().map_or(now, |(_, since)| *since);
        self.looked_after.then(|| oldest + limit)
    }

    /// A connection was opened; one request is on it. Whether somebody has to call [`Lane::expire`] from now on.
    pub(super) fn opened_http1(&mut self) -> bool {
        self.dialing -= 1;
        self.version = Some(Version::Http1);
        self.http1 += 1;
        !std::mem::replace(&mut self.looked_after, true)
    }

    /// A connection was opened; one request is on it. Gives its number.
    pub(super) fn opened_http2(&mut self, sender: H2) -> u64 {
        self.dialing -= 1;
        self.version = Some(Version::Http2);
        let id = self.next_id;
        self.next_id += 1;
        self.http2.push(Multiplexed { id, sender, streams: 1 });
        id
    }

    /// A connection could not be opened.
    pub(super) fn failed(&mut self, error: E) {
        self.dialing -= 1;
        self.failures += 1;
        self.failure = Some(error);
    }

    /// Whoever opened a connection gave up.
    pub(super) fn abandoned(&mut self) {
        self.dialing -= 1;
    }

    /// A request on an HTTP/2 connection is over.
    pub(super) fn released_http2(&mut self, id: u64) {
        self.http2.retain(|connection| !connection.sender.is_closed());
        let Some(at) = self.http2.iter().position(|connection| connection.id == id) else {
            return;
        };
        self.http2[at].streams -= 1;
        // One connection is kept for the next request, not more.
        if self.http2[at].streams == 0 && self.http2.len() > 1 {
            self.http2.swap_remove(at);
        }
    }

    /// A request on an HTTP/1.1 connection is over, and another can follow.
    pub(super) fn released_http1(&mut self, sender: H1, now: Instant) {
        self.idle.push((sender, now));
    }

    /// A request on an HTTP/1.1 connection is over, and the connection too.
    pub(super) fn closed_http1(&mut self) {
        self.http1 -= 1;
    }
}
