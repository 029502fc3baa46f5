//! Everything that can be set, with its default.

mod bounds;
mod choices;
mod infer;
mod proxy;
mod resolver;
mod warnings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use http::Uri;
use http::uri::Scheme;
use kubestrata_telemetry::{Noop, Provider};

pub use self::bounds::{Limits, Timeouts};
pub use self::choices::{Compression, Observe, Protocol, RateLimit, Retry};
pub use self::infer::{ConfigError, InCluster, InClusterError};
pub(crate) use self::proxy::{Credentials, ProxyScheme};
pub use self::proxy::{NoProxy, Proxy, ProxyVariableError};
pub use self::resolver::Resolver;
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
    /// How many requests are sent in a time. Default: as many as come (client-go: 5 per second); the server has priority
    /// and fairness.
    pub rate_limit: Option<RateLimit>,
    /// Whether compressed answers are asked for.
    pub compression: Compression,
    /// A proxy to go through. Default none; [`Config::infer`] and its like take that of the environment where the kubeconfig
    /// has none.
    pub proxy: Option<Proxy>,
    /// Which version of HTTP is spoken.
    pub protocol: Protocol,
    /// How names become addresses. Default: as the system does it.
    pub resolver: Resolver,
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
            rate_limit: None,
            compression: Compression::default(),
            proxy: None,
            protocol: Protocol::default(),
            resolver: Resolver::default(),
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
    /// A proxy that the sender of a request may have named.
    #[error("in a CGI program it can be a header of the request that is served")]
    ProxyOfRequest,
    /// A user name or password in the URL.
    #[error("credentials do not belong into the URL")]
    Credentials,
}
