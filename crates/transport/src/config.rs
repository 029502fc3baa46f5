//! Everything that can be set, with its default.

mod infer;
mod proxy;
mod warnings;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use kubestrata_telemetry::{Noop, Provider};

pub use self::infer::{ConfigError, InCluster, InClusterError};
pub(crate) use self::proxy::{Credentials, ProxyScheme};
pub use self::proxy::{NoProxy, Proxy, ProxyVariableError};
pub use self::warnings::WarningHook;
use crate::auth::{Auth, Impersonation};
use crate::tls::Tls;

/// Where the server is, who we are, and all limits.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Base of all URLs: scheme `http` or `https`, host, port, perhaps a path.
    pub server: Uri,
    /// How the server is verified, and our client certificate.
    pub tls: Tls,
    /// Credentials that go with every request.
    pub auth: Auth,
    /// Whom to act as.
    pub impersonate: Option<Impersonation>,
    /// The namespace of the kubeconfig's context or of the pod we run in: a default for programs, not used by the
    /// transport itself. Default: `default`.
    pub namespace: String,
    /// `User-Agent`, which servers log and count by.
    pub user_agent: String,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Sizes and counts.
    pub limits: Limits,
    /// When a request is tried again.
    pub retry: Retry,
    /// Whether compressed answers are asked for.
    pub compression: Compression,
    /// A proxy to go through. Default none; [`Config::infer`] and its like take that of the environment where the kubeconfig
    /// has none.
    pub proxy: Option<Proxy>,
    /// Which version of HTTP is spoken.
    pub protocol: Protocol,
    /// What is known of the server and wished of it. Default: its version is unknown, and it sends whole objects. Set
    /// `server_minor` from `/version` to get dynamic objects of built-in kinds as protobuf from a server that is no newer
    /// than the schema.
    pub negotiation: kubestrata_codec::Negotiation,
    /// Bounds of the decoders of lists and watches.
    pub decoding: kubestrata_codec::Limits,
    /// Where metrics go: `rest_client_requests_total`, `rest_client_open_connections`, `rest_client_open_streams`, and what
    /// `observe` adds. Default: nowhere.
    pub metrics: Arc<dyn Provider>,
    /// Which distributions are measured. Default: none, as each costs a dozen series per verb.
    pub observe: Observe,
    /// Who hears of warnings of the server. Default: nobody, beside the caller of the request.
    pub warnings: WarningHook,
}

impl Config {
    /// A server without credentials, verified by the platform's certificates if it is `https`.
    ///
    /// # Errors
    ///
    /// The text is no URL with scheme `http` or `https` and a host.
    pub fn new(server: &str) -> Result<Self, ServerUrlError> {
        let uri: Uri = server.trim().parse().map_err(|_| ServerUrlError::Malformed)?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(ServerUrlError::Scheme);
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(ServerUrlError::Credentials);
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(ServerUrlError::Malformed);
        }
        Ok(Self {
            server: uri,
            tls: Tls::default(),
            auth: Auth::none(),
            impersonate: None,
            namespace: "default".to_owned(),
            user_agent: concat!("kubestrata/", env!("CARGO_PKG_VERSION")).to_owned(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            retry: Retry::default(),
            compression: Compression::default(),
            proxy: None,
            protocol: Protocol::default(),
            negotiation: kubestrata_codec::Negotiation::default(),
            decoding: kubestrata_codec::Limits::default(),
            metrics: Arc::new(Noop),
            observe: Observe::default(),
            warnings: WarningHook::default(),
        })
    }

    /// The same with these credentials.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// The same with this TLS.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = tls;
        self
    }

    /// The same with these deadlines.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The same with these limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// For a service in the same process: no address, no TLS, no credentials, no compression.
    pub fn in_process() -> Self {
        let mut config =
            Self::new("http://in-process").expect("a constant that is a URL with a host");
        config.compression = Compression::Never;
        config
    }

    /// Whether compressed lists are worth asking for.
    pub(crate) fn asks_for_gzip(&self) -> bool {
        match self.compression {
            Compression::Always => true,
            Compression::Never => false,
            Compression::Auto => !self.endpoint().is_loopback(),
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.server.scheme() == Some(&Scheme::HTTPS)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        let host = self.server.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.server.port_u16().unwrap_or_else(|| if self.is_tls() { 443 } else { 80 });
        Endpoint { host: Arc::from(host), port }
    }
}

/// Host and port to connect to.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
}

impl Endpoint {
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        &*self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The text is no URL of a server or proxy. The message never quotes it: it could hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerUrlError {
    /// Not a URL, or one without a host.
    #[error("want a scheme, a host and perhaps a port, as in https://host:6443")]
    Malformed,
    /// Neither `http` nor `https`.
    #[error("the scheme must be http or https")]
    Scheme,
    /// A proxy that is spoken to in none of the ways that are known.
    #[error("a proxy must have scheme http, https or socks5")]
    ProxyScheme,
    /// Credentials that SOCKS5 cannot carry.
    #[error("user and password of a SOCKS5 proxy must have 1 to 255 bytes")]
    ProxyCredentials,
    /// A user name or password in the URL.
    #[error("credentials do not belong into the URL")]
    Credentials,
}

/// Deadlines. Every wait on the network has one, each for one phase, so that an error tells which phase hung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Timeouts {
    /// For a free place on a connection, when all are busy. Default 30 s.
    pub wait: Duration,
    /// For resolving the name and opening a TCP connection. Default 30 s (client-go's dialer).
    pub connect: Duration,
    /// For the TLS handshake. Default 10 s (client-go).
    pub tls: Duration,
    /// From sending a request to the head of its answer, watches excepted. Default 60 s: kube-apiserver gives itself
    /// as much (`--request-timeout`).
    pub answer: Duration,
    /// The same for a watch, whose head comes before any event. Default 30 s.
    pub watch_answer: Duration,
    /// Between two pieces of a body, watches excepted. Default 30 s.
    pub body: Duration,
    /// How long after the end that a watch asked for (`WatchOptions::timeout`) the server may take to close it.
    /// Default 30 s.
    pub watch_margin: Duration,
    /// How long a watch that asked for no end may live. Default 1 h 1 min: kube-apiserver closes watches after 30 to
    /// 60 minutes.
    pub watch_life: Duration,
    /// HTTP/2: how long a connection may be silent before it is pinged. Default 30 s (Go: `ReadIdleTimeout`).
    pub ping_interval: Duration,
    /// HTTP/2: how long the answer to a ping may take before the connection is given up. Default 15 s (Go: `PingTimeout`).
    pub ping_answer: Duration,
    /// How long what was read from files of tokens and certificates is believed. Default 60 s (client-go: one minute for
    /// tokens, five for certificates).
    pub files: Duration,
    /// How long a credential plugin may run before it is killed; some ask a cloud over the network. Default 60 s.
    pub exec: Duration,
    /// How long an HTTP/1.1 connection is kept without use. Default 90 s (Go: `IdleConnTimeout`).
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            wait: seconds(30),
            connect: seconds(30),
            tls: seconds(10),
            answer: seconds(60),
            watch_answer: seconds(30),
            body: seconds(30),
            watch_margin: seconds(30),
            watch_life: seconds(3660),
            ping_interval: seconds(30),
            ping_answer: seconds(15),
            files: seconds(60),
            exec: seconds(60),
            idle: seconds(90),
        }
    }
}

/// Sizes and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Limits {
    /// HTTP/2: requests at a time on one connection; fewer if the server says so. Default 90: kube-apiserver allows
    /// 100, and a request over that limit would wait behind watches that last for minutes.
    pub streams: usize,
    /// HTTP/2 connections for requests, and as many for watches. Default 16.
    pub http2_connections: usize,
    /// HTTP/1.1 connections for requests. Default 64.
    pub http1_connections: usize,
    /// HTTP/1.1 connections for watches, each of which carries one. Default 1024.
    pub http1_watches: usize,
    /// HTTP/2: bytes that the server may send ahead on one stream. Default 2 MiB. A connection gets as much for each of
    /// its streams, so that a watch that nobody reads does not stop the others.
    pub stream_window: u32,
    /// Largest body of a unary answer, in bytes, after decompression. Default 64 MiB.
    pub body_bytes: usize,
    /// How much of the body of a failure is read for its `Status`, in bytes. Default 1 MiB.
    pub error_bytes: usize,
    /// Largest head of an answer, in bytes. Default 64 KiB.
    pub header_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: 90,
            http2_connections: 16,
            http1_connections: 64,
            http1_watches: 1024,
            stream_window: 2 << 20,
            body_bytes: 64 << 20,
            error_bytes: 1 << 20,
            header_bytes: 64 << 10,
        }
    }
}

/// When a request is tried again (client-go `rest/with_retry.go`).
///
/// An answer 429 or 5xx is retried only if it has `Retry-After`: the server then says that it did nothing. A broken
/// connection is retried for reads, and for writes only when the request cannot have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Retry {
    /// Retries after the first try. Default 10 (client-go). 0 for none.
    pub times: u32,
    /// No retry starts later than this after the first try. Default 2 min.
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

/// Which version of HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/2 where a TLS server offers it; HTTP/1.1 else, and without TLS.
    #[default]
    Auto,
    /// HTTP/1.1 only (client-go's `DISABLE_HTTP2`).
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
