//! Connections, and which request goes on which.

mod address;
mod body;
mod crew;
mod dial;
mod dialing;
mod frames;
mod lane;
mod meters;
mod place;
mod proxy;
mod slot;
mod track;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor as _;
use kubestrata_api_types::FOREVER;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower::Service;
use tracing::Instrument as _;

use self::dial::Dialer;
use self::dialing::Dialing;
use self::frames::Peer;
use self::lane::{Bounds, Found, PAUSE, Reuse, Version};
use self::place::{Failed, Place, complete, is_no_http};
use self::slot::Slot;
use self::track::{Look, Track};
use crate::auth::{Auth, Source};
use crate::config::{Config, Limits, Protocol, Timeouts};
use crate::error::{ConnectError, Phase, Shared, TransportError};
use crate::tasks::Tasks;
use crate::tls::{Session, TlsError};
use crate::wire::{
    Call, HttpFuture, HttpRequest, HttpResponse, Purpose, RequestBody, tell, within,
};

/// An HTTP/1.1 connection.
#[derive(Debug)]
struct Http1 {
    sender: http1::SendRequest<RequestBody>,
    session: Session,
    /// Whether it has brought an answer already.
    answered: bool,
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
    /// Whether it has brought an answer already. Relaxed: a word about the past, which orders nothing.
    answered: Arc<AtomicBool>,
}

/// How often a request that the server certainly has not looked at takes another connection before the caller hears of it.
const REPLACEMENTS_MAX: u32 = 3;

/// How many connections are opened for a request before it hears that each is closed when its turn comes.
const USELESS_MAX: u64 = 4;

/// One that was just opened is kept for as long at least: it waits for whoever wanted it to take it.
const IDLE_MIN: Duration = Duration::from_millis(100);

/// How long an HTTP/1.1 connection may take to be ready for its next request.
const TURN_MAX: Duration = Duration::from_millis(100);

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
/// Dropping the future or the body of an answer gives the request up and frees its place, in a turn of the runtime at the
/// latest. A future that is kept without being polled holds nobody up but by the place of its own request.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Inner>);

type Lines = Track<Http1, Http2, Shared<ConnectError>>;

#[derive(Debug)]
struct Inner {
    /// Those that drive connections, open them, and wait for them. They end with this.
    tasks: Tasks,
    dialer: Arc<Dialer>,
    /// What requests are given that name no server.
    server: Uri,
    timeouts: Timeouts,
    requests: Lines,
    watches: Lines,
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
        let bounds = |http1, lasting| Bounds {
            streams: streams.max(1),
            http2: http2_connections.max(1),
            http1: std::cmp::max(http1, 1),
            idle: config.timeouts.idle.max(IDLE_MIN),
            lasting,
        };
        let tasks = Tasks::default();
        Ok(Self(Arc::new(Inner {
            dialer: Arc::new(Dialer::new(config, source, tasks.spawner())?),
            tasks,
            server: config.server.clone(),
            timeouts: config.timeouts,
            requests: Track::new(
                bounds(http1_connections, false),
                version,
                meters::streams(config, "request"),
            ),
            watches: Track::new(
                bounds(http1_watches, true),
                version,
                meters::streams(config, "watch"),
            ),
        })))
    }

    /// How many connections are open: for requests, and for watches.
    pub(crate) fn open(&self) -> (usize, usize) {
        (self.0.requests.lane.lock().open(), self.0.watches.lane.lock().open())
    }

    async fn exchange(self, mut request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if request.uri().authority().is_none() {
            complete(&mut request, &self.0.server)?;
        }
        self.0.dialer.refresh().await;
        let mut attempts = Attempts::default();
        if let Some(place) = self.at_once(&request).await {
            match self.attempt(place, &request, &mut attempts).await {
                Attempt::Over(result) => return result,
                Attempt::Again => {}
            }
        }
        // Whoever has to wait does so in a task. A caller may keep this future without polling it, and would then hold the
        // place that became free for him, and the front of the line, against all the others.
        let pool = self.clone();
        let rest = async move { pool.in_line(request, attempts).await };
        self.0.tasks.outcome(rest.in_current_span()).await.unwrap_or_else(|| {
            Err(TransportError::Service("its task has ended without an answer".into()))
        })
    }

    async fn in_line(
        self,
        request: HttpRequest,
        mut attempts: Attempts,
    ) -> Result<HttpResponse, TransportError> {
        loop {
            let place = self.place(&request).await?;
            match self.attempt(place, &request, &mut attempts).await {
                Attempt::Over(result) => return result,
                Attempt::Again => {}
            }
        }
    }

    /// Sends the request on a connection.
    async fn attempt(
        &self,
        place: Place,
        request: &HttpRequest,
        attempts: &mut Attempts,
    ) -> Attempt {
        let purpose = Purpose::of(request);
        tell(request, Phase::Answer);
        let limit = purpose.answer_limit(&self.0.timeouts);
        // A clone is cheap: the body is shared.
        let failed = match within(Phase::Answer, limit, place.send(request.clone())).await {
            Err(late) => return Attempt::Over(Err(late)),
            Ok(Ok(response)) => return Attempt::Over(Ok(response)),
            Ok(Err(failed)) => failed,
        };
        let again = attempts.again(&failed, purpose);
        let error = match self.0.dialer.not_let_in(failed.error, &failed.session) {
            Ok(refused) => TransportError::Connect(Shared::new(refused)),
            Err(error) if again && !is_no_http(&*error) => {
                // A turn for the task of the connection, which may yet have to notice that it is at its end.
                tokio::task::yield_now().await;
                return Attempt::Again;
            }
            Err(error) if failed.unsent => {
                TransportError::Connect(Shared::new(self.0.dialer.no_http(error)))
            }
            Err(error) if is_no_http(&*error) => TransportError::NoHttp(error),
            Err(error) => TransportError::Broken(error),
        };
        Attempt::Over(Err(error))
    }

    /// A place that is free now, if nobody waits for one. Cancel-safe.
    async fn at_once(&self, request: &HttpRequest) -> Option<Place> {
        let watch = Purpose::of(request).is_watch();
        tell(request, Phase::Wait);
        let found = self.track(watch).at_once()?;
        within(Phase::Wait, self.0.timeouts.wait, self.take_up(found, watch)).await.ok()?
    }

    /// Waits for a place, and has connections opened as they are needed. Cancel-safe.
    async fn place(&self, request: &HttpRequest) -> Result<Place, TransportError> {
        let watch = Purpose::of(request).is_watch();
        tell(request, Phase::Wait);
        let Timeouts { wait, connect, tls, .. } = self.0.timeouts;
        let most = wait.saturating_add(connect).saturating_add(tls);
        let track = self.track(watch);
        let line = track.join();
        self.open_more(watch, request);
        let find = async {
            let first = track.first(&line).await;
            let opened = track.lane.lock().opened();
            loop {
                let changed = first.change();
                match track.look(&line) {
                    Look::Found(found) => match self.take_up(found, watch).await {
                        Some(place) => return Ok(place),
                        None => continue,
                    },
                    Look::Failed(error) => return Err(TransportError::Connect(error)),
                    // Each would have been ours, who are the first.
                    Look::Nothing if track.lane.lock().opened() - opened >= USELESS_MAX => {
                        let error =
                            self.0.dialer.no_http("connections end before they can be used");
                        return Err(TransportError::Connect(Shared::new(error)));
                    }
                    Look::Nothing => {}
                }
                self.open_more(watch, request);
                // Without a change too: what could not be opened is tried again after a pause.
                let _ = tokio::time::timeout(PAUSE, changed).await;
            }
        };
        tokio::pin!(find);
        let now = Instant::now();
        let (mut until, last) = (now + wait.min(FOREVER), now + most.min(FOREVER));
        loop {
            if let Ok(found) = tokio::time::timeout_at(until, &mut find).await {
                return found;
            }
            // A connection that is being opened has deadlines of its own, whose errors tell more.
            let dialing = track.lane.lock().dialing_until();
            match dialing.map(|dialed| dialed.min(last)) {
                Some(dialed) if dialed > until => until = dialed,
                _ => {
                    let late = TransportError::Timeout { phase: Phase::Wait, limit: wait };
                    return Err(track.failure(&line).map_or(late, TransportError::Connect));
                }
            }
        }
    }

    /// Makes a place of what the lane had. `None` if the connection has closed.
    async fn take_up(&self, found: Found<Http1, Http2>, watch: bool) -> Option<Place> {
        match found {
            Found::Http1(mut sender) => {
                let slot = Slot::new(self.clone(), watch, None);
                // Its last answer has been read to the end, so this takes no longer than a turn of its task; but for one
                // whose server answered before it had read the request, all of which is still to be sent.
                let ready = tokio::time::timeout(TURN_MAX, sender.sender.ready()).await;
                ready.ok()?.ok()?;
                Some(Place::Http1 { sender, slot })
            }
            Found::Http2(id, sender) => {
                let http2 = Some((id, Arc::clone(&sender.peer)));
                Some(Place::Http2 { sender, slot: Slot::new(self.clone(), watch, http2) })
            }
        }
    }

    /// Begins to open as many connections as those in line need, and may have.
    fn open_more(&self, watch: bool, request: &HttpRequest) {
        let Timeouts { connect, tls, .. } = self.0.timeouts;
        let track = self.track(watch);
        // As often as can be of use: on a runtime that shuts down each fails at once.
        for _ in 0..track.waiting() {
            let now = Instant::now();
            let until = now + connect.saturating_add(tls).min(FOREVER);
            if !track.lane.lock().dial(now, until, track.waiting()) {
                return;
            }
            let dialing = Dialing::new(Arc::downgrade(&self.0), watch);
            let (dialer, changed) = (Arc::clone(&self.0.dialer), Arc::clone(&track.changed));
            let progress = Call::progress(request);
            self.0.tasks.spawner().execute(async move {
                let tell = |phase| progress.iter().for_each(|progress| progress.opening(phase));
                dialing.finish(dialer.dial(&changed, tell).await);
            });
        }
    }

    fn track(&self, watch: bool) -> &Lines {
        self.0.track(watch)
    }
}

impl Inner {
    fn track(&self, watch: bool) -> &Lines {
        if watch { &self.watches } else { &self.requests }
    }
}

/// What became of sending a request once.
enum Attempt {
    Over(Result<HttpResponse, TransportError>),
    /// It takes another connection.
    Again,
}

/// How often a request has taken another connection.
#[derive(Default)]
struct Attempts {
    unsent: u32,
    stale: bool,
}

impl Attempts {
    /// Whether it may do so after this failure. Go's client has the same two reasons, and nothing above it counts either.
    fn again(&mut self, failed: &Failed, purpose: Purpose) -> bool {
        if failed.unsent {
            self.unsent += 1;
            return self.unsent <= REPLACEMENTS_MAX;
        }
        // A connection that was kept may have been closed by the server while the request was on its way. Once: what breaks
        // a second one is the request itself, and waits between further tries are the retry layer's.
        failed.reused && purpose.is_read() && !std::mem::replace(&mut self.stale, true)
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
        Box::pin(pool.exchange(request))
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
