//! Over HTTP: the accept loop, TLS, and what clients need to find the server.

mod accept;
mod connection;
mod kubeconfig;
mod tls;
mod token;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::tls::TlsFailure;

use self::token::Gate;
use crate::Server;

/// How to listen, with limits.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listen {
    /// Where. Port 0 takes a free one. Default `127.0.0.1:0`.
    pub address: SocketAddr,
    /// Whether to speak TLS, by a certificate of an authority that is made at start and known to nobody else; the
    /// kubeconfig holds it. Without, HTTP/1.1 and HTTP/2 with prior knowledge are served in the clear. Default off.
    pub tls: bool,
    /// Names that the certificate has beside `localhost`, the loopback addresses, those of Kubernetes' own service, and
    /// `address`.
    pub names: Vec<String>,
    /// See [`Listen::token`].
    token: Option<SecretString>,
    /// Open connections at a time; further ones wait in the kernel's queue. Default 4,096.
    pub connections: usize,
    /// Requests at a time on an HTTP/2 connection. Default 100, as kube-apiserver.
    pub streams: u32,
    /// From a connection's start, or from one request of HTTP/1.1 to the next, to the end of a request's head.
    /// Default 90 s: a client may keep a connection as long without use.
    pub head_timeout: Duration,
    /// For the TLS handshake. Default 10 s.
    pub handshake_timeout: Duration,
    /// From the head of a request to the head of its answer. Default 60 s, as `--request-timeout`.
    pub answer_timeout: Duration,
    /// How long requests may take to end after a shutdown has begun. Watches do not end by themselves. Default 2 s.
    pub drain: Duration,
}

impl Default for Listen {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: false,
            names: Vec::new(),
            token: None,
            connections: 4096,
            streams: 100,
            head_timeout: seconds(90),
            handshake_timeout: seconds(10),
            answer_timeout: seconds(60),
            drain: seconds(2),
        }
    }
}

impl Listen {
    /// On loopback, a free port, in the clear.
    pub fn new() -> Self {
        Self::default()
    }

    /// On this address.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// With TLS.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Only for those who know this bearer token. Required for an address that other hosts can reach. Default none.
    /// An empty one is refused by [`Server::listen`]. It belongs together with [`Listen::tls`]: clients send no token of a
    /// kubeconfig to a server without.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into().into());
        self
    }
}

/// The server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Other hosts could reach a server that lets everybody do everything.
    #[error("{address} can be reached from other hosts: a token is required")]
    Exposed {
        /// The address.
        address: SocketAddr,
    },
    /// A token that everybody knows.
    #[error("the token is empty")]
    EmptyToken,
    /// A limit of nothing.
    #[error("the limit {limit} is 0: nothing could be served")]
    Limit {
        /// Its name.
        limit: &'static str,
    },
    /// No certificate can be made.
    #[error("TLS cannot be set up")]
    Tls(#[from] TlsFailure),
}

impl Server {
    /// Listens, and serves until the returned handle is dropped or shut down.
    ///
    /// # Errors
    ///
    /// [`ListenError`]; nothing is listened on then.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with IO and time.
    pub async fn listen(&self, listen: Listen) -> Result<Serving, ListenError> {
        let address = listen.address;
        if !address.ip().is_loopback() && listen.token.is_none() {
            return Err(ListenError::Exposed { address });
        }
        if listen.token.as_ref().is_some_and(|token| token.expose_secret().trim().is_empty()) {
            return Err(ListenError::EmptyToken);
        }
        for (limit, none) in
            [("connections", listen.connections == 0), ("streams", listen.streams == 0)]
        {
            if none {
                return Err(ListenError::Limit { limit });
            }
        }
        let bind = |source| ListenError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let tls =
            if listen.tls { Some(tls::Authority::new(&address, &listen.names)?) } else { None };
        let (stop, stopped) = watch::channel(false);
        let shared = accept::Shared {
            service: Gate::new(self.clone(), listen.token.clone(), listen.answer_timeout),
            acceptor: tls.as_ref().map(tls::Authority::acceptor),
            listen: Arc::new(listen),
        };
        let (listen, authority) = (Arc::clone(&shared.listen), tls.map(|tls| tls.certificate_pem));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept::run(listener, shared, stopped));
        Ok(Serving { address, authority, listen, stop, tasks })
    }
}

/// A server that listens. Dropping it closes all connections at once.
pub struct Serving {
    address: SocketAddr,
    authority: Option<String>,
    listen: Arc<Listen>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Serving {
    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Base of all URLs.
    pub fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        let mut address = self.address;
        // "All addresses" is where one listens, not where one connects to.
        if address.ip().is_unspecified() {
            match address {
                SocketAddr::V4(_) => address.set_ip(std::net::Ipv4Addr::LOCALHOST.into()),
                SocketAddr::V6(_) => address.set_ip(std::net::Ipv6Addr::LOCALHOST.into()),
            }
        }
        format!("{scheme}://{address}")
    }

    /// The certificate of the authority, as PEM, if TLS is spoken.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// A kubeconfig with one context that leads here. It holds the token, if there is one.
    pub fn kubeconfig(&self) -> String {
        let token = self.listen.token.as_ref();
        kubeconfig::text(&self.url(), self.authority.as_deref(), token)
    }

    /// Writes the kubeconfig to a file that only its owner can read. The file appears as a whole or not at all.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> Result<(), WriteError> {
        let path = path.as_ref();
        kubeconfig::write(path, &self.kubeconfig())
            .map_err(|source| WriteError { path: path.to_owned(), source })
    }

    /// Takes no more connections, lets requests end for as long as [`Listen::drain`] says, and closes what is left.
    ///
    /// Cancel-safe: dropped before it ends, everything closes at once.
    pub async fn shutdown(mut self) {
        // Without a receiver the loop has ended already.
        let _ = self.stop.send(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written", .path.display())]
#[non_exhaustive]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}
