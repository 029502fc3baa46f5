//! Which connection a request takes: the decisions, without any connection.

use std::time::Duration;

use kubestrata_api_types::FOREVER;
use tokio::time::Instant;

/// How long after a dial was begun that is not done another is: it may hang, where a new one would not.
pub(super) const LATE: Duration = Duration::from_secs(1);

/// How many connections are opened at a time because those before are late.
const DIALS_MAX: usize = 4;

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
    /// Whether who has a place keeps it for long, so that it is of no use to wait for one.
    pub(super) lasting: bool,
}

/// How long after a failure no further connection is tried beside those that are open. A server that refuses the sixth
/// connection will do so again, and five have places that come free.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A connection with room for one more request.
#[derive(Debug)]
pub(super) enum Found<H1, H2> {
    /// Nobody else uses it.
    Http1(H1),
    /// Others may use it too.
    Http2(u64, H2),
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
    /// Connections being opened, each by when that was begun, and when the last of them is open, or has failed.
    dialing: Vec<Instant>,
    dialing_until: Option<Instant>,
    /// How many connections were opened, and how many could not be.
    opened: u64,
    failures: u64,
    failure: Option<(E, Instant)>,
    /// The number of the last failure that left no hope.
    hopeless: u64,
    next_id: u64,
}

#[derive(Debug)]
struct Multiplexed<H2> {
    id: u64,
    sender: H2,
    streams: usize,
}

impl<H2: Reuse> Multiplexed<H2> {
    fn has_room(&self, most: usize) -> bool {
        self.streams < most.min(self.sender.streams_max())
    }
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
            dialing: Vec::new(),
            dialing_until: None,
            opened: 0,
            failures: 0,
            hopeless: 0,
            failure: None,
            next_id: 0,
        }
    }

    /// Connections that are open.
    pub(super) fn open(&self) -> usize {
        self.http2.len() + self.http1
    }

    /// How many connections were opened so far.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// How often opening a connection has failed so far.
    pub(super) fn failures(&self) -> u64 {
        self.failures
    }

    /// Why there is no connection, if one could not be opened since `seen` and there was no hope then. Who waited for it
    /// shares its error: else each would try in turn, and the last would hear of a dead server after as many deadlines.
    pub(super) fn hopeless_since(&self, seen: u64) -> Option<E> {
        self.failure_since(seen).filter(|_| self.hopeless > seen)
    }

    /// Why a connection could not be opened since `seen`.
    pub(super) fn failure_since(&self, seen: u64) -> Option<E> {
        let failure = self.failure.as_ref().filter(|_| self.failures > seen);
        failure.map(|(error, _)| error.clone())
    }

    /// Whether there may soon be a place on a connection that is open.
    fn comes_free(&self) -> bool {
        self.open() > 0 && !self.bounds.lasting
    }

    /// A connection for one more request, which takes room on it that must be given back.
    pub(super) fn take(&mut self, now: Instant) -> Option<Found<H1, H2>> {
        self.forget_closed(now);
        let most = self.bounds.streams;
        // The fullest that has room: so that others run empty and can be closed.
        let free = self.http2.iter_mut().filter(|connection| connection.has_room(most));
        if let Some(connection) = free.max_by_key(|connection| connection.streams) {
            connection.streams += 1;
            return Some(Found::Http2(connection.id, connection.sender.clone()));
        }
        // The last used: so that the others grow old and are closed.
        self.idle.pop().map(|(sender, _)| Found::Http1(sender))
    }

    /// Whether another connection is to be opened, as so many wait for one: then it counts as being opened, which takes no
    /// longer than until then.
    pub(super) fn dial(&mut self, now: Instant, until: Instant, waiting: usize) -> bool {
        self.forget_closed(now);
        let failed = self.failure.as_ref().map(|(_, at)| *at);
        let others = self.comes_free() || !self.dialing.is_empty();
        if others && failed.is_some_and(|at| now.saturating_duration_since(at) < PAUSE) {
            return false;
        }
        let dialing = self.dialing.len();
        let last = self.dialing.last();
        let late = last.is_some_and(|since| now.saturating_duration_since(*since) >= LATE)
            && dialing < DIALS_MAX;
        let needed = match self.version {
            Some(Version::Http1) => {
                let coming = self.idle.len() + dialing;
                (coming < waiting || late)
                    && waiting > 0
                    && self.http1 + dialing < self.bounds.http1
            }
            // One at a time, if it comes in time: it will have room for many.
            _ => {
                let most = self.bounds.streams;
                let full = !self.http2.iter().any(|connection| connection.has_room(most));
                // Without those that take no requests any more, as one that is to be shut down may say by its settings.
                let taking = self.http2.iter().filter(|open| open.sender.streams_max() > 0);
                let free = dialing == 0 || late;
                full && waiting > 0 && free && taking.count() + dialing < self.bounds.http2
            }
        };
        if needed {
            self.dialing.push(now);
            self.dialing_until = self.dialing_until.max(Some(until));
        }
        needed
    }

    /// When the last connection that is being opened will be open, or have failed.
    pub(super) fn dialing_until(&self) -> Option<Instant> {
        self.dialing_until.filter(|_| !self.dialing.is_empty())
    }

    fn forget_closed(&mut self, now: Instant) {
        // One that takes no requests, and has none of ours, is of no use either.
        self.http2.retain(|Multiplexed { sender, streams, .. }| {
            !sender.is_closed() && (*streams > 0 || sender.streams_max() > 0)
        });
        let (before, limit) = (self.idle.len(), self.bounds.idle);
        self.idle.retain(|(sender, since)| {
            !sender.is_closed() && now.saturating_duration_since(*since) < limit
        });
        self.http1 -= before - self.idle.len();
    }

    /// Whoever called [`Lane::expire`] does so no more.
    pub(super) fn left_alone(&mut self) {
        self.looked_after = false;
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

    /// One of those being opened is not any more: the oldest, most likely, and it matters little. When it was begun.
    fn dialed(&mut self) -> Instant {
        self.dialing.remove(0)
    }

    /// A connection was opened. Whether somebody has to call [`Lane::expire`] from now on.
    pub(super) fn opened_http1(&mut self, sender: H1, now: Instant) -> bool {
        self.dialed();
        self.opened += 1;
        self.failure = None;
        self.version = Some(Version::Http1);
        self.http1 += 1;
        self.idle.push((sender, now));
        !std::mem::replace(&mut self.looked_after, true)
    }

    /// A connection was opened. If it is not wanted any more, and there is another, it is let go.
    pub(super) fn opened_http2(&mut self, sender: H2, wanted: bool) {
        self.dialed();
        self.opened += 1;
        self.failure = None;
        self.version = Some(Version::Http2);
        let id = self.next_id;
        self.next_id += 1;
        if wanted || self.http2.is_empty() {
            self.http2.push(Multiplexed { id, sender, streams: 0 });
        }
    }

    /// A connection could not be opened.
    pub(super) fn failed(&mut self, error: E, now: Instant) {
        let since = self.dialed();
        self.failures += 1;
        self.failure = Some((error, now));
        // One failure says nothing of the others; but those that were begun because it was late are no better.
        let others = self.dialing.iter().any(|other| other.duration_since(since) < LATE);
        if !self.comes_free() && !others {
            self.hopeless = self.failures;
        }
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
