//! The tower layer that counts and times requests, under client-go's names.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Method;
use http_body::Body;
use kubestrata_api_types::BoxFuture;
use kubestrata_telemetry::{Counter, Descriptor, Histogram, Provider};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::config::Observe;

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

const REQUEST_SIZE: Descriptor = Descriptor {
    name: "rest_client_request_size_bytes",
    help: "Size of the bodies of requests, by method and host.",
};
const RESPONSE_SIZE: Descriptor = Descriptor {
    name: "rest_client_response_size_bytes",
    help: "Size of the bodies of answers after decompression, watches excepted, by method and host.",
};
/// client-go's buckets.
const SIZE_BUCKETS: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// The code of a request that got no answer (client-go says so too).
pub(crate) const NO_ANSWER: &str = "<error>";

/// Series that are kept by hand: a server has no more codes than this, and what comes beyond is counted together.
const SERIES_MAX: usize = 256;

/// The tower layer that counts each request that passes it as `rest_client_requests_total` by code, method and host, and
/// measures what [`Observe`] says. In a [`Transport`](crate::Transport) it sees every try of a request.
///
/// It fits any service of HTTP; see the README for one in a stack of somebody else.
#[derive(Debug, Clone)]
pub struct ObserveLayer(Arc<Metrics>);

struct Metrics {
    provider: Arc<dyn Provider>,
    observe: Observe,
    host: String,
    /// Counters by method and code: a provider's lookup is not for every request.
    requests: Mutex<Vec<(Method, u16, Counter)>>,
    durations: Mutex<Vec<(Method, Histogram)>>,
    request_sizes: Mutex<Vec<(Method, Histogram)>>,
    response_sizes: Mutex<Vec<(Method, Histogram)>>,
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
        if self.observe.latency {
            let elapsed = started.elapsed().as_secs_f64();
            self.histogram(&self.durations, DURATION, method, &BUCKETS).observe(elapsed);
        }
    }

    fn histogram(
        &self,
        known: &Mutex<Vec<(Method, Histogram)>>,
        descriptor: Descriptor,
        method: &Method,
        buckets: &[f64],
    ) -> Histogram {
        let mut known = known.lock();
        if let Some((_, histogram)) = known.iter().find(|(m, _)| m == method) {
            return histogram.clone();
        }
        let labels = [("verb", method.as_str()), ("host", &*self.host)];
        let histogram = self.provider.histogram(descriptor, &labels, buckets);
        if known.len() < SERIES_MAX {
            known.push((method.clone(), histogram.clone()));
        }
        histogram
    }
}

impl ObserveLayer {
    /// Tells `provider`; `host` is the value of that label.
    pub fn new(provider: Arc<dyn Provider>, host: impl Into<String>, observe: Observe) -> Self {
        Self(Arc::new(Metrics {
            provider,
            observe,
            host: host.into(),
            requests: Mutex::default(),
            durations: Mutex::default(),
            request_sizes: Mutex::default(),
            response_sizes: Mutex::default(),
        }))
    }

    /// Where the size of an answer goes, if it is measured.
    pub(crate) fn response_sizes(&self, method: &Method) -> Option<Histogram> {
        let metrics = &self.0;
        metrics.observe.sizes.then(|| {
            metrics.histogram(&metrics.response_sizes, RESPONSE_SIZE, method, &SIZE_BUCKETS)
        })
    }
}

/// One request, counted when it is over. One that is given up, by its caller or a deadline above, is over as well: a server
/// that never answers is what a counter of errors is looked at for.
struct Told {
    metrics: Arc<Metrics>,
    method: Method,
    path: String,
    code: u16,
    started: Instant,
}

impl Told {
    fn over(mut self, code: u16) {
        self.code = code;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let Self { metrics, method, path, code, started } = self;
        metrics.record(method, *code, *started);
        tracing::debug!(%method, path, code, elapsed = ?started.elapsed(), "request");
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
pub struct ObserveService<S> {
    inner: S,
    metrics: Arc<Metrics>,
}

impl<S, B, R> Service<http::Request<B>> for ObserveService<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: Body,
    R: 'static,
{
    type Response = http::Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<Result<http::Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let metrics = Arc::clone(&self.metrics);
        let method = request.method().clone();
        if metrics.observe.sizes {
            let sizes =
                metrics.histogram(&metrics.request_sizes, REQUEST_SIZE, &method, &SIZE_BUCKETS);
            #[expect(clippy::cast_precision_loss, reason = "a body is not that large")]
            sizes.observe(request.body().size_hint().lower() as f64);
        }
        let path = request.uri().path().to_owned();
        let told = Told { metrics, method, path, code: 0, started: Instant::now() };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let result = answer.await;
            told.over(result.as_ref().map_or(0, |response| response.status().as_u16()));
            result
        })
    }
}
