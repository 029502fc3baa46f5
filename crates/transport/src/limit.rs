//! The tower layer that sends no more requests than it may.

mod bucket;
mod line;

#[cfg(test)]
mod tests;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Method;
use kubestrata_api_types::BoxFuture;
use kubestrata_telemetry::{Descriptor, Histogram, Provider};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};

use self::bucket::Bucket;
use self::line::{Line, Turn};
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
/// A request that is dropped before its turn leaves the line, and all behind it move up; one that is dropped after its turn has
/// come has used it. One that is kept without being polled has its turn and holds up no other; it is sent when it is polled
/// again, beside the one whose turn is then.
#[derive(Debug, Clone)]
pub struct RateLimitLayer(Arc<Limiter>);

/// The client-side rate limit has no turn for a request in time, which is known at once. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client-side rate limit had no turn for it within {limit:?}")]
#[non_exhaustive]
pub struct RateLimited {
    /// The longest wait ([`RateLimit::wait`]).
    pub limit: Duration,
}

struct Limiter {
    limit: RateLimit,
    line: Mutex<Line>,
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
        let line = Mutex::new(Line::new(Bucket::new(limit.qps, limit.burst)));
        Self(Arc::new(Limiter { limit, line, measured }))
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Limiter {
    /// Takes a turn and waits for it. Cancel-safe: it is given back if it has not come.
    async fn turn(&self) -> Result<(), RateLimited> {
        let limit = self.limit.wait;
        let number = match self.line.lock().enter(Instant::now(), limit) {
            Turn::Now => return Ok(()),
            Turn::TooLate => return Err(RateLimited { limit }),
            Turn::Later(number) => number,
        };
        let place = Place { limiter: self, number };
        let mut sleep = pin!(None::<tokio::time::Sleep>);
        std::future::poll_fn(|cx| {
            let at = self.line.lock().at(place.number, cx.waker());
            let Some(at) = at else { return Poll::Ready(()) };
            match sleep.as_mut().as_pin_mut() {
                Some(sleep) if sleep.deadline() == at => {}
                _ => sleep.set(Some(tokio::time::sleep_until(at))),
            }
            let sleep = sleep.as_mut().as_pin_mut();
            sleep.expect("it was set above").poll(cx)
        })
        .await;
        Ok(())
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

/// In line; out of it when dropped.
struct Place<'a> {
    limiter: &'a Limiter,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let woken = self.limiter.line.lock().leave(self.number, Instant::now());
        woken.into_iter().for_each(Waker::wake);
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
