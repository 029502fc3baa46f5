//! Connections, and which request goes on which.

mod address;
mod body;
mod crew;
mod dial;
mod frames;
mod lane;
mod meters;
mod place;
mod proxy;
mod track;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::client::conn::{http1, http2};
use kubestrata_api_types::FOREVER;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower::Service;

use self::dial::{Connected, Dialer};
use self::frames::Peer;
use self::lane::{Bounds, Lane, Reuse, Take, Version};
use self::place::{Failed, Place, complete};
use self::track::Track;
use crate::auth::{Auth, Source};
use crate::config::{Config, Limits, Protocol, Timeouts};
use crate::error::{ConnectError, Phase, Shared, TransportError};
use crate::tls::{Session, TlsError};
use crate::wire::{HttpFuture, HttpRequest, HttpResponse, Purpose, RequestBody, tell, within};

/// An HTTP/1.1 connection.
#[derive(Debug)]
struct Http1 {
    sender: http1::SendRequest<RequestBody>,
    session: Session,
    /// Dropped with the rest, it ends the task of the connection.
    _in_use: oneshot::Sender<Infallible>,
}

/// An HTTP/2 connection. A clone is another handle to it.
#[derive(Debug, Clone)]
struct Http2 {
    sender: http2::SendRequest<RequestBody>,
    /// What the server allows at the moment.
    peer: Arc<Peer>,
    session: Session,
}

/// How often a request that was certainly not sent, or a read on a connection that the server had closed meanwhile,
/// takes another connection before the caller hears of it.
const REPLACEMENTS_MAX: u32 = 3;

/// The connections to one server: some for requests and some for watches, so that neither waits for the other. What a
/// [`Transport`](crate::Transport) has at its bottom, as a plain service of HTTP for any other stack.
///
/// A clone shares them. When the last clone and the last answer are dropped, all connections close.
///
/// - Of the configuration, what concerns connections is used: server, TLS, proxy, resolver, protocol, limits, deadlines up
///   to the head of an answer, and metrics. Credentials, retries, whom to act as and the deadline of the whole are other
///   layers' ([`AuthLayer`](crate::AuthLayer), [`RetryLayer`](crate::RetryLayer)); the certificate of a plugin is only a
///   `Transport`'s.
/// - Whatever its authority, a request goes to the server of the configuration; one with a path alone is given the rest.
///   The path of the server's URL is not put before it.
/// - A GET with `watch=true` in its query is a watch.
///
/// # Cancel-safety
///
/// Dropping the future or the body of an answer gives the request up and frees its place.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dialer: Dialer,
    /// What requests are given that name no server.
    server: Uri,
    timeouts: Timeouts,
    requests: Track,
    watches: Track,
}

impl Pool {
    /// Connections to the server of `config`. None is opened yet.
    ///
    /// # Errors
    ///
    /// The configuration has a host that TLS cannot name.
    pub fn connect(config: &Config) -> Result<Self, TransportError> {
        let nobody = Source::new(Auth::none(), &config.timeouts, &config.metrics);
        Self::new(config, Arc::new(nobody))
            .map_err(|error| TransportError::Connect(Shared::new(ConnectError::Tls(error))))
    }

    pub(crate) fn new(config: &Config, source: Arc<Source>) -> Result<Self, TlsError> {
        let version = match (config.protocol, config.is_tls()) {
            (Protocol::Http1, _) | (Protocol::Auto, false) => Some(Version::Http1),
            (Protocol::Http2, _) => Some(Version::Http2),
            (Protocol::Auto, true) => None,
        };
        let Limits { streams, http2_connections, http1_connections, http1_watches, .. } =
            config.limits;
        let bounds = |http1| Bounds {
            streams: streams.max(1),
            http2: http2_connections.max(1),
            http1: std::cmp::max(http1, 1),
            idle: config.timeouts.idle,
        };
        Ok(Self(Arc::new(Inner {
            dialer: Dialer::new(config, source)?,
            server: config.server.clone(),
            timeouts: config.timeouts,
            requests: Track::new(
                bounds(http1_connections),
                version,
                meters::streams(config, "request"),
            ),
            watches: Track::new(bounds(http1_watches), version, meters::streams(config, "watch")),
        })))
    }

    /// How many connections are open: for requests, and for watches.
    pub(crate) fn open(&self) -> (usize, usize) {
        (self.0.requests.lane.lock().open(), self.0.watches.lane.lock().open())
    }

    async fn exchange(&self, mut request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if request.uri().authority().is_none() {
            complete(&mut request, &self.0.server)?;
        }
        let purpose = Purpose::of(&request);
        self.0.dialer.refresh().await;
        let mut replacements = 0;
        loop {
            let place = self.place(&request).await?;
            tell(&request, Phase::Answer);
            let limit = purpose.answer_limit(&self.0.timeouts);
            // A clone is cheap: the body is shared.
            let sent = place.send(request.clone());
            match within(Phase::Answer, limit, sent).await? {
                Ok(response) => return Ok(response),
                Err(Failed { error, unsent, reused, session }) => {
                    let error = match self.0.dialer.not_let_in(error, &session) {
                        Ok(refused) => return Err(TransportError::Connect(Shared::new(refused))),
                        Err(error) => error,
                    };
                    let replace = unsent || (reused && purpose.is_read());
                    if !replace || replacements == REPLACEMENTS_MAX {
                        return Err(TransportError::Broken(error));
                    }
                    replacements += 1;
                    // A turn for the task of the connection, which may yet have to notice that it is at its end.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// A place on a connection, which is opened if there is none. Cancel-safe.
    async fn place(&self, request: &HttpRequest) -> Result<Place, TransportError> {
        let limit = self.0.timeouts.wait;
        let watch = Purpose::of(request).is_watch();
        tell(request, Phase::Wait);
        let track = self.track(watch);
        let mut seen = track.lane.lock().failures();
        loop {
            let take = within(Phase::Wait, limit, track.free(&mut seen)).await?;
            match take.map_err(TransportError::Connect)? {
                Take::Http1(mut sender) => {
                    let place = Slot::new(self.clone(), watch, None);
                    // Its last answer has been read to the end, so this takes no longer than a turn of its task.
                    if within(Phase::Wait, limit, sender.sender.ready()).await?.is_ok() {
                        return Ok(Place::Http1 { sender, slot: place, reused: true });
                    }
                }
                Take::Http2(id, sender) => {
                    return Ok(Place::Http2 {
                        sender,
                        slot: Slot::new(self.clone(), watch, Some(id)),
                    });
                }
                Take::Dial => return self.dial(watch, request).await,
                Take::Wait => {}
            }
        }
    }

    async fn dial(&self, watch: bool, request: &HttpRequest) -> Result<Place, TransportError> {
        let dialing = Dialing { pool: self.clone(), watch, done: false };
        // Boxed: it is large, rare, and would make every request as large.
        let changed = &self.track(watch).changed;
        match Box::pin(self.0.dialer.dial(changed, |phase| tell(request, phase))).await {
            Ok(Connected::Http1(sender)) => {
                if dialing.finish(|lane| lane.opened_http1()) {
                    let pool = Arc::downgrade(&self.0);
                    self.0.dialer.spawn(expire_idle(pool, watch, self.0.timeouts.idle));
                }
                let slot = Slot::new(self.clone(), watch, None);
                Ok(Place::Http1 { sender, slot, reused: false })
            }
            Ok(Connected::Http2(sender)) => {
                let id = dialing.finish(|lane| lane.opened_http2(sender.clone()));
                Ok(Place::Http2 { sender, slot: Slot::new(self.clone(), watch, Some(id)) })
            }
            Err(error) => {
                let error = Shared::new(error);
                dialing.finish(|lane| lane.failed(error.clone()));
                Err(TransportError::Connect(error))
            }
        }
    }

    fn track(&self, watch: bool) -> &Track {
        if watch { &self.0.watches } else { &self.0.requests }
    }
}

/// Closes HTTP/1.1 connections that nobody uses any more, until there are none. A task of the pool, and ends with it.
async fn expire_idle(pool: Weak<Inner>, watch: bool, idle: Duration) {
    let mut next = Instant::now() + idle.min(FOREVER);
    loop {
        tokio::time::sleep_until(next).await;
        let Some(inner) = pool.upgrade() else { return };
        let track = if watch { &inner.watches } else { &inner.requests };
        match track.lane.lock().expire(Instant::now()) {
            Some(again) => next = again,
            None => return,
        }
    }
}

/// A connection being opened. Dropped in between, it makes room for the next.
struct Dialing {
    pool: Pool,
    watch: bool,
    done: bool,
}

impl Dialing {
    fn finish<R>(
        mut self,
        f: impl FnOnce(&mut Lane<Http1, Http2, Shared<ConnectError>>) -> R,
    ) -> R {
        self.done = true;
        let track = self.pool.track(self.watch);
        let result = f(&mut track.lane.lock());
        track.changed.notify_waiters();
        result
    }
}

impl Drop for Dialing {
    fn drop(&mut self) {
        if !self.done {
            let track = self.pool.track(self.watch);
            track.lane.lock().abandoned();
            track.changed.notify_waiters();
        }
    }
}

/// Our share of a connection, given back when dropped.
#[derive(Debug)]
struct Slot {
    pool: Pool,
    watch: bool,
    /// The HTTP/2 connection; `None` for one of HTTP/1.1, which is ours alone.
    id: Option<u64>,
    /// The HTTP/1.1 connection, once it can be used again.
    reusable: Option<Http1>,
}

impl Slot {
    fn new(pool: Pool, watch: bool, id: Option<u64>) -> Self {
        pool.track(watch).streams.add(1.0);
        Self { pool, watch, id, reusable: None }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let track = self.pool.track(self.watch);
        track.streams.add(-1.0);
        {
            let mut lane = track.lane.lock();
            match (self.id, self.reusable.take()) {
                (Some(id), _) => lane.released_http2(id),
                (None, Some(sender)) => lane.released_http1(sender, Instant::now()),
                (None, None) => lane.closed_http1(),
            }
        }
        // One place for one who waits, the one who has waited longest. If he does not want it any more, the next is told.
        track.changed.notify_one();
    }
}

impl Service<HttpRequest> for Pool {
    type Response = HttpResponse;
    type Error = TransportError;
    type Future = HttpFuture;

    /// Always ready: a request waits for its connection in its own future, where it has a deadline.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest) -> HttpFuture {
        let pool = self.clone();
        Box::pin(async move { pool.exchange(request).await })
    }
}

impl Reuse for Http1 {
    /// One that shows an old certificate ends as one that is closed: with what is under way on it.
    fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.session.is_outdated()
    }
}

impl Reuse for Http2 {
    fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.peer.is_gone() || self.session.is_outdated()
    }

    fn streams_max(&self) -> usize {
        self.peer.streams_max()
    }
}
