//! What can go wrong between a typed request and its answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::BoxError;

use crate::auth::AuthError;
use crate::tls::{CertificateProblem, TlsError};

/// A part of an exchange that has a deadline of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Waiting for a free place on a connection.
    Wait,
    /// Resolving the name and opening a TCP connection.
    Connect,
    /// The TLS handshake, and the first frames of HTTP/2.
    Tls,
    /// From sending the request to the head of the answer.
    Answer,
    /// The next piece of the body.
    Body,
    /// The end of a watch.
    WatchEnd,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wait => "a free connection",
            Self::Connect => "a connection",
            Self::Tls => "the end of the TLS handshake",
            Self::Answer => "an answer",
            Self::Body => "the rest of the answer",
            Self::WatchEnd => "the end of the watch",
        })
    }
}

/// A request got no usable answer.
///
/// A failure that the server itself tells of is no `TransportError` but a [`Status`](kubestrata_api_types::Status);
/// `kubestrata_api_types::cause_ref` finds either in a boxed error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The request cannot be made into HTTP; nothing was sent.
    #[error("the request is not valid: {problem}")]
    Request {
        /// What is wrong.
        problem: String,
    },
    /// There are no credentials to send; nothing was sent.
    #[error("no credentials")]
    Auth(#[from] AuthError),
    /// No connection; nothing was sent.
    #[error("no connection to the server")]
    Connect(#[source] Shared<ConnectError>),
    /// A deadline passed.
    #[error("no sign of {phase} within {limit:?}")]
    Timeout {
        /// What was waited for.
        phase: Phase,
        /// How long.
        limit: Duration,
    },
    /// The connection broke before the head of the answer. The request may have arrived.
    #[error("the connection broke before an answer came")]
    Broken(#[source] BoxError),
    /// The service below, which is no connection, failed.
    #[error("the service below failed")]
    Service(#[source] BoxError),
    /// The body broke off.
    #[error("the answer broke off")]
    Body(#[source] BoxError),
    /// The body is larger than [`Limits::body_bytes`](crate::Limits::body_bytes).
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The body is compressed in a way that was not asked for, or is damaged.
    #[error("the answer cannot be decompressed: {problem}")]
    Compression {
        /// What is wrong.
        problem: String,
    },
    /// The body has a media type that was not asked for. Something other than an API server may have answered.
    #[error("the answer has content type {content_type:?}, which was not asked for")]
    ContentType {
        /// What came; empty if nothing was said.
        content_type: String,
    },
    /// A unary answer cannot be read.
    #[error("the answer cannot be read")]
    Answer(#[source] kubestrata_codec::AnswerError),
}

impl TransportError {
    /// Whether the request certainly did nothing, so that any request may be repeated.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Request { .. } | Self::Auth(_) | Self::Connect(_) => true,
            Self::Timeout { phase, .. } => {
                matches!(phase, Phase::Wait | Phase::Connect | Phase::Tls)
            }
            _ => false,
        }
    }

    /// Whether a deadline passed, and in which phase.
    pub fn timeout(&self) -> Option<Phase> {
        match self {
            Self::Timeout { phase, .. } => Some(*phase),
            Self::Connect(error) => error.get().timeout(),
            _ => None,
        }
    }
}

/// One error that several requests share, as they waited for the same connection.
#[derive(Debug)]
pub struct Shared<E>(Arc<E>);

impl<E> Shared<E> {
    pub(crate) fn new(error: E) -> Self {
        Self(Arc::new(error))
    }

    /// The error.
    pub fn get(&self) -> &E {
        &self.0
    }
}

impl<E> Clone for Shared<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E: fmt::Display> fmt::Display for Shared<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Shared<E> {
    /// The shared error itself displays through this one, so the chain goes on with its source.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

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
    /// A failed handshake. `problem` is what was wrong with the certificate, if that was why.
    pub(crate) fn handshake(
        address: String,
        problem: Option<CertificateProblem>,
        source: std::io::Error,
    ) -> Self {
        match problem {
            Some(problem) => Self::Certificate { address, problem, source },
            None => Self::Handshake { address, source },
        }
    }

    fn timeout(&self) -> Option<Phase> {
        match self {
            Self::Timeout { phase, .. } => Some(*phase),
            Self::ProxyUnreachable { source, .. } => source.timeout(),
            _ => None,
        }
    }
}
