//! The tower layer that sends no more requests than it may.

mod bucket;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Method;
use kubestrata_api_types::BoxFuture;
use kubestrata_telemetry::{Descriptor, Histogram, Provider};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};

use self::bucket::Bucket;
use crate::config::RateLimit;
use crate::error::Phase;
use crate::wire::{Purpose, tell};

const DURATION: Descriptor = Descriptor {
    name: "rest_client_rate_limiter_duration_seconds",
    help: "Time that requests wait for their turn under the client-side rate limit, by method and host.",
};
/// client-go's buckets.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Methods whose series are kept: HTTP has nine, and what somebody makes up is measured without being kept.
const SERIES_MAX: usize = 16;

/// A wait that is worth a line in the log (client-go `longThrottleLatency`).
const LONG: Duration = Duration::from_millis(50);

/// The tower layer that lets requests through as [`RateLimit`] says, in the order in which they come. Watches pass at once.
///
/// Everything that one layer and its clones make shares one limit. It fits any service of HTTP whose error can be made of a
/// [`RateLimited`], as a boxed error can. Below a [`RetryLayer`](crate::RetryLayer), each try waits for its own turn.
///
/// # Cancel-safety
///
/// A request that is dropped while it waits leaves the line, and its turn is the next one's.
#[derive(Debug, Clone)]
pub struct RateLimitLayer(Arc<Limiter>);

/// The client-side rate limit has no turn for a request in time. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client-side rate limit had no turn for it within {limit:?}")]
#[non_exhaustive]
pub struct RateLimited {
    /// How long it waited ([`RateLimit::wait`]).
    pub limit: Duration,
}

struct Limiter {
    limit: RateLimit,
    /// Held by whoever is first in line; tokio's mutex is fair, so it is the line.
    bucket: tokio::sync::Mutex<Bucket>,
    measured: Option<Measured>,
}

/// Where waits are measured.
struct Measured {
    provider: Arc<dyn Provider>,
    host: String,
    known: Mutex<Vec<(Method, Histogram)>>,
}

impl RateLimitLayer {
    /// Limits by this; the bucket is full at first.
    pub fn new(limit: RateLimit) -> Self {
        Self::with(limit, None)
    }

    /// The same, which measures waits as `rest_client_rate_limiter_duration_seconds` by verb and host; `host` is the value
    /// of that label.
    pub fn measured(
        limit: RateLimit,
        provider: Arc<dyn Provider>,
        host: impl Into<String>,
    ) -> Self {
        Self::with(limit, Some(Measured { provider, host: host.into(), known: Mutex::default() }))
    }

    fn with(limit: RateLimit, measured: Option<Measured>) -> Self {
        let bucket = tokio::sync::Mutex::new(Bucket::new(limit.qps, limit.burst));
        Self(Arc::new(Limiter { limit, bucket, measured }))
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Limiter {
    /// Waits for a turn and takes it. Cancel-safe: it is taken at the end of the wait, or not at all.
    async fn turn(&self) -> Result<(), RateLimited> {
        let limit = self.limit.wait;
        let turn = async {
            let mut bucket = self.bucket.lock().await;
            let now = Instant::now();
            let at = bucket.next(now);
            if at > now {
                tokio::time::sleep_until(at).await;
            }
            bucket.take(at);
        };
        tokio::time::timeout(limit, turn).await.map_err(|_| RateLimited { limit })
    }

    fn waited(&self, method: &Method, elapsed: Duration) {
        if elapsed > LONG {
            tracing::debug!(%method, ?elapsed, "waited under the client-side rate limit");
        }
        let Some(measured) = &self.measured else { return };
        let mut known = measured.known.lock();
        if let Some((_, histogram)) = known.iter().find(|(of, _)| of == method) {
            histogram.observe(elapsed.as_secs_f64());
            return;
        }
        let labels = [("verb", method.as_str()), ("host", &*measured.host)];
        let histogram = measured.provider.histogram(DURATION, &labels, &BUCKETS);
        histogram.observe(elapsed.as_secs_f64());
        if known.len() < SERIES_MAX {
            known.push((method.clone(), histogram));
        }
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimitService<S>;

    fn layer(&self, inner: S) -> RateLimitService<S> {
        RateLimitService { inner, limiter: Arc::clone(&self.0) }
    }
}

/// See [`RateLimitLayer`].
#[derive(Debug, Clone)]
pub struct RateLimitService<S> {
    inner: S,
    limiter: Arc<Limiter>,
}

impl<S, B> Service<http::Request<B>> for RateLimitService<S>
where
    S: Service<http::Request<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: From<RateLimited> + Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let limiter = Arc::clone(&self.limiter);
        Box::pin(async move {
            // client-go does not limit them either: a watch is one request for hours of answers, and one that comes late
            // is stale.
            if !Purpose::of(&request).is_watch() {
                tell(&request, Phase::Turn);
                let started = Instant::now();
                let turn = limiter.turn().await;
                limiter.waited(request.method(), started.elapsed());
                turn?;
            }
            inner.call(request).await
        })
    }
}
