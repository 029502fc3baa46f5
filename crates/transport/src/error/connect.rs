//! Why there is no connection.

use std::time::Duration;

use kubestrata_api_types::BoxError;

use super::Phase;
use crate::tls::{CertificateProblem, ClientCertificateRefusal, Shown, TlsError, refusal};

/// A connection cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name has no address.
    #[error("{host:?} cannot be resolved")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        source: std::io::Error,
    },
    /// Nobody answers at any of the addresses.
    #[error("{address} cannot be reached")]
    Tcp {
        /// Host and port.
        address: String,
        /// What the last address gave.
        source: std::io::Error,
    },
    /// A deadline passed.
    #[error("{address}: no sign of {phase} within {limit:?}")]
    Timeout {
        /// Host and port.
        address: String,
        /// What was waited for.
        phase: Phase,
        /// How long.
        limit: Duration,
    },
    /// The task that opened it has ended: a resolver panicked, or the runtime that it ran on shuts down.
    #[error("{address}: the task that opened the connection has ended early")]
    EndedEarly {
        /// Host and port.
        address: String,
    },
    /// The proxy cannot be reached.
    #[error("proxy {proxy} cannot be used")]
    ProxyUnreachable {
        /// Scheme, host and port of the proxy.
        proxy: String,
        /// Why.
        source: Box<Self>,
    },
    /// The proxy opens no tunnel.
    #[error("proxy {proxy} opens no tunnel: {problem}")]
    Proxy {
        /// Scheme, host and port of the proxy.
        proxy: String,
        /// Why.
        problem: String,
    },
    /// TLS cannot be set up on our side.
    #[error("TLS cannot be set up")]
    Tls(#[from] TlsError),
    /// The server's certificate, or that of an `https` proxy, is not what it should be.
    #[error("the certificate of {address} is refused: {problem}")]
    Certificate {
        /// Host and port.
        address: String,
        /// What is wrong, with which certificate.
        problem: CertificateProblem,
        /// The same in the words of the TLS library.
        source: std::io::Error,
    },
    /// The server refuses our client certificate, or wants one where we have none.
    #[error("{address} does not let us in: {refusal}")]
    ClientCertificate {
        /// Host and port.
        address: String,
        /// What the server said, of which certificate.
        refusal: ClientCertificateRefusal,
        /// The same in the words of the TLS library.
        source: BoxError,
    },
    /// The TLS handshake failed.
    #[error("TLS with {address} failed")]
    Handshake {
        /// Host and port.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// The server does not speak the version of HTTP that it agreed to.
    #[error("HTTP with {address} failed")]
    Http {
        /// Host and port.
        address: String,
        /// Why.
        source: BoxError,
    },
}

impl ConnectError {
    /// A failed handshake. `problem` is what was wrong with the certificate, if that was why; `shown` is our own.
    pub(crate) fn handshake(
        address: String,
        problem: Option<CertificateProblem>,
        shown: Option<&Shown>,
        source: std::io::Error,
    ) -> Self {
        match (problem, refusal(&source, shown)) {
            (Some(problem), _) => Self::Certificate { address, problem, source },
            (None, Some(refusal)) => {
                Self::ClientCertificate { address, refusal, source: source.into() }
            }
            (None, None) => Self::Handshake { address, source },
        }
    }

    pub(super) fn timeout(&self) -> Option<Phase> {
        match self {
            Self::Timeout { phase, .. } => Some(*phase),
            Self::ProxyUnreachable { source, .. } => source.timeout(),
            _ => None,
        }
    }
}
