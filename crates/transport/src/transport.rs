//! The service of typed requests.

mod in_process;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use kubestrata_api_types::{ApiRequest, ApiResponse, BoxError, BoxFuture, Operation};
use kubestrata_codec::Encoded;
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, Service, ServiceExt as _};
use tracing::Instrument as _;

use self::in_process::InProcess;
use crate::answer;
use crate::auth::{AuthLayer, Source};
use crate::config::{Compression, Config};
use crate::error::{ConnectError, Phase, Shared, TransportError};
use crate::limit::RateLimitLayer;
use crate::observe::ObserveLayer;
use crate::pool::Pool;
use crate::request;
use crate::retry::RetryLayer;
use crate::wire::{Call, HttpRequest, HttpResponse, Progress, Purpose, RequestBody};

/// The way to one API server: a `tower::Service<ApiRequest, Response = ApiResponse<Encoded>>`.
///
/// A clone is cheap and shares connections and credentials. It is always ready; how much goes on at a time is bounded
/// where connections are ([`Limits`](crate::Limits)), and every wait has a deadline ([`Timeouts`](crate::Timeouts)).
///
/// Errors are boxed, with a `Status` in the chain of sources where the server refused, and a [`TransportError`] where
/// there was no usable answer; `kubestrata_api_types::cause_ref` finds them.
///
/// Futures and streams are cancel-safe: dropping one gives up the request, or closes the watch.
///
/// Connections, and what several calls wait for, run as tasks of the runtime of the call that needed them first. Used from
/// several runtimes, each of them has to go on: one that stands still holds up the calls of the others, to their deadlines.
/// A file that hangs holds a thread for blocking work, for which a runtime that is dropped waits unless it is told not to
/// (`shutdown_timeout`).
///
/// # Panics
///
/// Futures and streams, where they are polled outside of a tokio runtime with time and IO.
#[derive(Clone)]
pub struct Transport(Arc<Inner>);

struct Inner {
    wire: BoxCloneSyncService<HttpRequest, HttpResponse, TransportError>,
    config: Config,
    /// Whether gzip is asked for where that can help.
    compressed: bool,
    pool: Option<Pool>,
    observe: ObserveLayer,
}

/// How many connections are open for new requests. Those on which only what is under way goes on to its end, because the
/// server said farewell or a certificate has changed, are not among them; `rest_client_open_connections` counts them too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connections {
    /// For requests.
    pub requests: usize,
    /// For watches.
    pub watches: usize,
}

impl Transport {
    /// The way to the server of `config`, over connections of its own. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the configuration has a host that TLS cannot name, or a credential that no header can hold.
    pub fn connect(config: Config) -> Result<Self, TransportError> {
        let source = source(&config);
        let pool = Pool::new(&config, Arc::clone(&source))
            .map_err(|error| TransportError::Connect(Shared::new(ConnectError::Tls(error))))?;
        let compressed = config.asks_for_gzip();
        let bottom = BoxCloneSyncService::new(pool.clone());
        Self::stack(bottom, Some(pool), source, compressed, config)
    }

    /// The same layers over any service of HTTP, as an API server in the same process.
    ///
    /// Of `config`, what concerns connections is not used; deadlines, retries, credentials and the base of URLs are.
    /// [`Config::in_process`] fits most.
    ///
    /// # Errors
    ///
    /// [`TransportError`] if the configuration has a credential that no header can hold.
    pub fn over<S, B>(service: S, config: Config) -> Result<Self, TransportError>
    where
        S: Service<http::Request<RequestBody>, Response = http::Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = InProcess::new(service, config.timeouts);
        let compressed = config.compression == Compression::Always;
        let (bottom, source) = (BoxCloneSyncService::new(service), source(&config));
        Self::stack(bottom, None, source, compressed, config)
    }

    fn stack(
        bottom: BoxCloneSyncService<HttpRequest, HttpResponse, TransportError>,
        pool: Option<Pool>,
        source: Arc<Source>,
        compressed: bool,
        config: Config,
    ) -> Result<Self, TransportError> {
        let auth = AuthLayer::over(source, config.impersonate.as_ref(), &config.user_agent)?;
        let host = config.server.authority().map(ToString::to_string).unwrap_or_default();
        let metrics = &config.metrics;
        let observe = ObserveLayer::new(Arc::clone(metrics), &*host, config.observe);
        let retry = RetryLayer::new(config.retry).counted(Arc::clone(metrics), &*host);
        let tries = auth.layer(observe.layer(bottom));
        let wire = match config.rate_limit {
            None => BoxCloneSyncService::new(retry.layer(tries)),
            Some(limit) => {
                let limit = if config.observe.rate_limiter {
                    RateLimitLayer::measured(limit, Arc::clone(metrics), &*host)
                } else {
                    RateLimitLayer::new(limit)
                };
                BoxCloneSyncService::new(retry.layer(limit.layer(tries)))
            }
        };
        Ok(Self(Arc::new(Inner { wire, config, compressed, pool, observe })))
    }

    /// What the transport was made from.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// How many connections are open; none over a service in the same process.
    pub fn connections(&self) -> Connections {
        let (requests, watches) = self.0.pool.as_ref().map_or((0, 0), Pool::open);
        Connections { requests, watches }
    }

    /// The body of a plain GET, for discovery, health checks and logs: `/version`, `/readyz?verbose`. Warnings in its answer are
    /// told to nobody: they are about resources, and a hook asks of which.
    ///
    /// # Errors
    ///
    /// As for typed requests; [`TransportError::TooLarge`] for a body above [`Limits::body_bytes`](crate::Limits).
    pub async fn raw_get(&self, path: &str) -> Result<Bytes, BoxError> {
        let config = &self.0.config;
        let limit = config.timeouts.request;
        let call = Call::new(Purpose::Read, limit);
        let progress = call.progress.clone();
        in_time(limit, &progress.clone(), call.until, async move {
            let request = request::raw_get(path, &config.server, call)?;
            let response = self.0.wire.clone().oneshot(request).await?;
            progress.at(Phase::Body);
            let response = answer::check(response, config).await?;
            let body = answer::Chunks::plain(response, &config.timeouts)?;
            body.collect(config.limits.body_bytes).await
        })
        .await
    }

    async fn exchange(self, request: ApiRequest) -> Result<ApiResponse<Encoded>, BoxError> {
        let Inner { wire, config, compressed, observe, .. } = &*self.0;
        let list = matches!(request.operation, Operation::List(_));
        let limit = if list { config.timeouts.list } else { config.timeouts.request };
        let call = Call::new(request::purpose(&request), limit);
        let (until, progress) = (call.until, call.progress.clone());
        in_time(limit, &progress.clone(), until, async move {
            let http = request::to_http(&request, config, *compressed, call)?;
            let sizes = observe.response_sizes(http.method());
            let response = wire.clone().oneshot(http).await?;
            progress.at(Phase::Body);
            answer::read(&request, response, config, sizes, until).await
        })
        .await
    }
}

/// Runs one request within the deadline of the whole, and tells what it was waiting for if that passes. Cancel-safe: what
/// is under way is dropped, which gives back its place on a connection.
async fn in_time<T>(
    limit: Duration,
    progress: &Progress,
    until: Instant,
    exchange: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    match tokio::time::timeout_at(until, exchange).await {
        Ok(result) => result,
        Err(_) => Err(TransportError::Deadline { phase: progress.phase(), limit }.into()),
    }
}

fn source(config: &Config) -> Arc<Source> {
    Arc::new(Source::new(config.auth.clone(), &config.timeouts, &config.metrics))
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("config", &self.0.config).finish_non_exhaustive()
    }
}

impl Service<ApiRequest> for Transport {
    type Response = ApiResponse<Encoded>;
    type Error = BoxError;
    type Future = BoxFuture<Result<ApiResponse<Encoded>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        // Names, and never a body: a span is where logs get their words from.
        let span = tracing::debug_span!(
            "request",
            verb = %request.verb(),
            resource = %request.collection.resource,
            namespace = request.collection.namespace.as_deref(),
            name = request.name(),
            subresource = request.subresource.as_deref(),
        );
        Box::pin(self.clone().exchange(request).instrument(span))
    }
}
