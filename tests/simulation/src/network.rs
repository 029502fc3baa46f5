//! The network between the clients and the server: it refuses, delays, breaks, repeats and loses.

mod connection;
mod crashes;
mod faults;
mod frames;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body_util::StreamBody;
use kubestrata_api_types::{BoxError, BoxFuture, Status, reason};
use kubestrata_apiserver::Server;
use kubestrata_testkit::FakeWorld;
use kubestrata_transport::RequestBody;
use tokio::time::{Instant, sleep};
use tower::{Service, ServiceExt as _};

use self::connection::{Chunks, Connection};
use self::crashes::Crashes;
pub(crate) use self::faults::Rates;
use crate::log::note;
use crate::sim::Sim;

/// The network and the server behind it, which can be exchanged while clients hold on to the network.
pub(crate) struct Network {
    sim: Arc<Sim>,
    world: FakeWorld,
    state: Mutex<State>,
    crashes: Crashes,
}

struct State {
    server: Server,
    rates: Rates,
    /// Nobody answers before this.
    down_until: Instant,
    requests: u64,
}

impl Network {
    /// A network without faults in front of `server`.
    pub(crate) fn new(sim: Arc<Sim>, world: FakeWorld, server: Server) -> Arc<Self> {
        let state =
            State { server, rates: Rates::default(), down_until: Instant::now(), requests: 0 };
        Arc::new(Self { sim, world, state: Mutex::new(state), crashes: Crashes::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server that runs now.
    pub(crate) fn server(&self) -> Server {
        self.lock().server.clone()
    }

    /// How often things go wrong from now on. What has gone wrong stays so: a silent connection stays silent.
    pub(crate) fn set_rates(&self, rates: Rates) {
        let mut state = self.lock();
        state.rates = rates;
        if !state.rates.any() {
            state.down_until = Instant::now();
        }
    }

    /// How often things go wrong now.
    pub(crate) fn rates(&self) -> Rates {
        self.lock().rates
    }

    /// Puts another server in the place of the one that crashes now, and starts it after `down`.
    pub(crate) fn crash(&self, next: Server, down: Duration) {
        let mut state = self.lock();
        state.server = next;
        state.down_until = Instant::now() + down;
        drop(state);
        self.crashes.happen();
    }

    fn chance(&self, percent: u64, what: &'static str) -> bool {
        let happens = percent > 0 && self.world.chance(percent);
        if happens {
            self.sim.log.count(what);
        }
        happens
    }

    async fn exchange(
        self: Arc<Self>,
        client: usize,
        request: Request<RequestBody>,
    ) -> Result<Response<Chunks>, BoxError> {
        let (number, down) = {
            let mut state = self.lock();
            state.requests += 1;
            (state.requests, Instant::now() < state.down_until)
        };
        let target = request.uri().path_and_query().map_or("", |target| target.as_str());
        note!(self.sim.log, "#{number} client {client} {target}");
        let query = Query::of(&request);
        if let Some(refusal) = self.refuse(number, down, &query).await {
            note!(self.sim.log, "#{number} refused: {refusal:?}");
            return refusal.answer().await;
        }
        // From here on the request is with this server, and is lost with it.
        let crashes = self.crashes.count();
        let (server, rates) = {
            let state = self.lock();
            (state.server.clone(), state.rates)
        };
        // kube-apiserver lets a watch begin in the future, and a client whose server was put back would wait there until
        // others have used up the revisions that it knows. Nothing tells it, so the simulation does.
        let revision = server.revision().await?;
        let future = query.is_watch && !query.is_initial && query.version > revision;
        if future && self.world.chance(50) {
            note!(self.sim.log, "#{number} refused: from the future");
            return Refusal::Expired.answer().await;
        }
        let answer = server.oneshot(request).await?;
        let (mut head, body) = answer.into_parts();
        // What is repeated or cut has another length.
        head.headers.remove(http::header::CONTENT_LENGTH);
        let watch = (query.is_watch && head.status.is_success()).then(|| frames::format(&head));
        let connection = Connection::new(self, number, body, watch, crashes).doomed(rates, future);
        let chunks = stream::unfold(connection, Connection::next);
        Ok(Response::from_parts(head, StreamBody::new(Box::pin(chunks))))
    }

    /// Whether the request is lost on its way, and how.
    async fn refuse(&self, number: u64, down: bool, query: &Query) -> Option<Refusal> {
        if down {
            self.sim.log.count("server is down");
            return Some(if self.world.chance(20) { Refusal::Silence } else { Refusal::Refused });
        }
        let rates = self.rates();
        if self.chance(rates.delay, "delayed request") {
            let delay = self.world.below(3000);
            note!(self.sim.log, "#{number} takes {delay} ms");
            sleep(Duration::from_millis(delay)).await;
        }
        if self.chance(rates.refuse, "refused connection") {
            return Some(Refusal::Refused);
        }
        if self.chance(rates.reset, "reset before the answer") {
            return Some(Refusal::Reset);
        }
        if self.chance(rates.silence, "no answer") {
            return Some(Refusal::Silence);
        }
        if self.chance(rates.throttle, "429") {
            let after = self.world.chance(50).then(|| 1 + self.world.below(5));
            self.sim.log.count(if after.is_some() { "429 with Retry-After" } else { "bare 429" });
            return Some(Refusal::Throttled(after));
        }
        if self.chance(rates.internal, "500") {
            return Some(Refusal::Internal);
        }
        // Nothing has expired for one who asks for whatever is there.
        let expires = query.version > 0 || query.is_continued;
        if expires && self.chance(rates.expire, "410 as status") {
            return Some(Refusal::Expired);
        }
        None
    }
}

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Refused,
    Reset,
    Silence,
    Throttled(Option<u64>),
    Internal,
    Expired,
}

impl Refusal {
    async fn answer(self) -> Result<Response<Chunks>, BoxError> {
        let status = match self {
            Self::Refused => return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
            Self::Reset => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
            // Only a deadline of the client's own ends this.
            Self::Silence => return std::future::pending().await,
            Self::Throttled(_) => throttled(),
            Self::Internal => internal(),
            Self::Expired => expired(),
        };
        let mut answer = connection::whole(frames::status_json(&status));
        *answer.status_mut() = StatusCode::from_u16(status.code).unwrap_or_default();
        let headers = answer.headers_mut();
        headers.insert("content-type", "application/json".parse()?);
        if let Self::Throttled(Some(after)) = self {
            headers.insert("retry-after", after.into());
        }
        Ok(answer)
    }
}

fn throttled() -> Status {
    Status::failure(429, reason::TOO_MANY_REQUESTS, "the network says: later")
}

fn internal() -> Status {
    Status::failure(500, reason::INTERNAL_ERROR, "the network says: broken")
}

fn expired() -> Status {
    Status::failure(410, reason::EXPIRED, "the network says: too old resource version")
}

/// What a request asks for, as far as faults depend on it.
struct Query {
    is_watch: bool,
    is_initial: bool,
    is_continued: bool,
    version: u64,
}

impl Query {
    fn of(request: &Request<RequestBody>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let value = |name: &str| {
            query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)
        };
        let is = |name: &str| value(name).is_some_and(|(_, value)| value == "true" || value == "1");
        let version = value("resourceVersion").and_then(|(_, value)| value.parse().ok());
        Self {
            is_watch: is("watch"),
            is_initial: is("sendInitialEvents"),
            is_continued: value("continue").is_some(),
            version: version.unwrap_or_default(),
        }
    }
}

/// One client's end of the network: a service of HTTP.
#[derive(Clone)]
pub(crate) struct Wire {
    network: Arc<Network>,
    client: usize,
}

impl Wire {
    /// The end of client number `client`.
    pub(crate) fn new(network: Arc<Network>, client: usize) -> Self {
        Self { network, client }
    }
}

impl Service<Request<RequestBody>> for Wire {
    type Response = Response<Chunks>;
    type Error = BoxError;
    type Future = BoxFuture<Result<Response<Chunks>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(Arc::clone(&self.network).exchange(self.client, request))
    }
}
