//! The tower layer that counts and times requests, under client-go's names.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Method;
use kubestrata_telemetry::{Counter, Descriptor, Histogram, Provider};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::error::TransportError;
use crate::wire::{HttpFuture, HttpRequest, HttpResponse};

const REQUESTS: Descriptor = Descriptor {
    name: "rest_client_requests_total",
    help: "Number of HTTP requests, by status code, method and host.",
};
const DURATION: Descriptor = Descriptor {
    name: "rest_client_request_duration_seconds",
    help: "Time from a request to the head of its answer, by method and host.",
};
/// client-go's buckets.
const BUCKETS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 60.0];

/// The code of a request that got no answer (client-go says so too).
const NO_ANSWER: &str = "<error>";

/// Series that are kept by hand: a server has no more codes than this, and what comes beyond is counted together.
const SERIES_MAX: usize = 256;

/// Observes every try of a request. One per transport.
#[derive(Debug, Clone)]
pub(crate) struct ObserveLayer(Arc<Metrics>);

struct Metrics {
    provider: Arc<dyn Provider>,
    host: String,
    /// Counters by method and code: a provider's lookup is not for every request.
    requests: Mutex<Vec<(Method, u16, Counter)>>,
    durations: Mutex<Vec<(Method, Histogram)>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Metrics {
    /// `code` is 0 for no answer.
    fn record(&self, method: &Method, code: u16, started: Instant) {
        let mut requests = self.requests.lock();
        let known = requests.iter().find(|(m, c, _)| m == method && *c == code);
        if let Some((_, _, counter)) = known {
            counter.increment();
        } else {
            let text = if code == 0 { NO_ANSWER.to_owned() } else { code.to_string() };
            let labels = [("code", &*text), ("method", method.as_str()), ("host", &*self.host)];
            let counter = self.provider.counter(REQUESTS, &labels);
            counter.increment();
            if requests.len() < SERIES_MAX {
                requests.push((method.clone(), code, counter));
            }
        }
        drop(requests);
        let mut durations = self.durations.lock();
        let elapsed = started.elapsed().as_secs_f64();
        if let Some((_, histogram)) = durations.iter().find(|(m, _)| m == method) {
            histogram.observe(elapsed);
        } else {
            let labels = [("verb", method.as_str()), ("host", &*self.host)];
            let histogram = self.provider.histogram(DURATION, &labels, &BUCKETS);
            histogram.observe(elapsed);
            durations.push((method.clone(), histogram));
        }
    }
}

impl ObserveLayer {
    pub(crate) fn new(provider: Arc<dyn Provider>, host: String) -> Self {
        let (requests, durations) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Metrics { provider, host, requests, durations }))
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = ObserveService<S>;

    fn layer(&self, inner: S) -> ObserveService<S> {
        ObserveService { inner, metrics: Arc::clone(&self.0) }
    }
}

/// See [`ObserveLayer`].
#[derive(Debug, Clone)]
pub(crate) struct ObserveService<S> {
    inner: S,
    metrics: Arc<Metrics>,
}

impl<S> Service<HttpRequest> for ObserveService<S>
where
    S: Service<HttpRequest, Response = HttpResponse, Error = TransportError>,
    S::Future: Send + 'static,
{
    type Response = HttpResponse;
    type Error = TransportError;
    type Future = HttpFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: HttpRequest) -> HttpFuture {
        let metrics = Arc::clone(&self.metrics);
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let (started, answer) = (Instant::now(), self.inner.call(request));
        Box::pin(async move {
            let result = answer.await;
            let code = result.as_ref().map_or(0, |response| response.status().as_u16());
            metrics.record(&method, code, started);
            tracing::debug!(%method, path, code, elapsed = ?started.elapsed(), "request");
            result
        })
    }
}
