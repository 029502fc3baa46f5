//! What can be switched on, off or over.

use std::time::Duration;

/// When a request is tried again (client-go `rest/with_retry.go`).
///
/// An answer 429 or 5xx is retried only if it has `Retry-After`: the server then says that it did nothing. A broken
/// connection is retried for reads, and for writes only when the request cannot have arrived.
///
/// Two answers are left to the caller at once, where client-go would ask ten times more. What refuses a watch: whoever
/// watches has to come back anyway, in his own time, and knows other ways, as a reflector does; the server takes 3 s for
/// each refusal because its cache lags, so that he would hear of it three quarters of a minute late (k/k#139766). And a
/// 504 to a read, by which the server says, after as long a wait, that it has not got the version asked for
/// (`ResourceVersionTooLarge`): to ask for another is better than to repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Retry {
    /// Retries after the first try. Default 10 (client-go). 0 for none.
    pub times: u32,
    /// No retry starts later than this after the first try, nor after the end of
    /// [`Timeouts::request`](crate::Timeouts::request). Default 2 min.
    pub total: Duration,
    /// The longest `Retry-After` that is obeyed; a longer one is left to the caller. Default 60 s.
    pub wait: Duration,
    /// The wait after a broken connection. Default 1 s (client-go).
    pub broken: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { times: 10, total: seconds(120), wait: seconds(60), broken: seconds(1) }
    }
}

impl Retry {
    /// Never.
    pub fn never() -> Self {
        Self { times: 0, ..Self::default() }
    }
}

/// How many requests are sent in a time (client-go `flowcontrol.NewTokenBucketRateLimiter`): `burst` at once, and `qps` per
/// second from then on. Retries count as requests do; watches are let through, as by client-go.
///
/// Clones of a [`Transport`](crate::Transport) share one limit.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct RateLimit {
    /// Requests per second on average. Default 5 (client-go). Zero or less: no more than the burst, ever.
    pub qps: f64,
    /// Requests at once after a pause. Default 10 (client-go). At least 1.
    pub burst: u32,
    /// The longest wait for a turn; a request whose turn would come later is refused at once (Go's `rate.Limiter` with a
    /// deadline does so too). Default 30 s; client-go waits as long as its caller does.
    pub wait: Duration,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { qps: 5.0, burst: 10, wait: Duration::from_secs(30) }
    }
}

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/2 where a TLS server offers it; HTTP/1.1 else, and without TLS.
    #[default]
    Auto,
    /// HTTP/1.1 only, which [`Config::protocol_from_env`](crate::Config::protocol_from_env) takes where `DISABLE_HTTP2` says
    /// so.
    Http1,
    /// HTTP/2 only; without TLS with prior knowledge, which kube-apiserver does not serve.
    Http2,
}

/// Distributions that are measured on request, under client-go's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Observe {
    /// `rest_client_request_duration_seconds`: from a request to the head of its answer, by verb and host.
    pub latency: bool,
    /// `rest_client_request_size_bytes` and `rest_client_response_size_bytes`, by verb and host: of bodies, answers after
    /// decompression, watches excepted, which have no end to measure.
    pub sizes: bool,
    /// `rest_client_rate_limiter_duration_seconds`: the wait for a turn under [`RateLimit`], by verb and host.
    pub rate_limiter: bool,
    /// `rest_client_dns_resolution_duration_seconds`: the time until a name has addresses, by host.
    pub resolver: bool,
}

/// Whether lists and streaming lists may come compressed by gzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compression {
    /// For servers on other hosts: on loopback it costs more time than it saves.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
