//! What can go wrong between a typed request and its answer.

mod connect;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::BoxError;

pub use self::connect::ConnectError;
use crate::auth::AuthError;
use crate::limit::RateLimited;

/// A part of an exchange that has a deadline of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Waiting for credentials, which a plugin may have to make.
    Credentials,
    /// Waiting for a turn under [`RateLimit`](crate::RateLimit).
    Turn,
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
            Self::Credentials => "credentials",
            Self::Turn => "its turn under the rate limit",
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
    /// The client-side rate limit had no turn for it in time; nothing was sent.
    #[error("not sent")]
    RateLimited(#[from] RateLimited),
    /// The deadline of a phase passed.
    #[error("no sign of {phase} within {limit:?}")]
    Timeout {
        /// What was waited for.
        phase: Phase,
        /// How long.
        limit: Duration,
    },
    /// The deadline of the whole passed ([`Timeouts::request`](crate::Timeouts::request),
    /// [`Timeouts::list`](crate::Timeouts::list)).
    #[error("not done within {limit:?}; what came last was the wait for {phase}")]
    Deadline {
        /// What was waited for then.
        phase: Phase,
        /// How long all might take.
        limit: Duration,
    },
    /// The connection broke before the head of the answer. The request may have arrived.
    #[error("the connection broke before an answer came")]
    Broken(#[source] BoxError),
    /// What came is no answer of HTTP, or has a head beyond the limits ([`Limits::header_bytes`](crate::Limits)). The request
    /// has arrived.
    #[error("the answer cannot be read as HTTP")]
    NoHttp(#[source] BoxError),
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
            Self::Request { .. } | Self::Auth(_) | Self::Connect(_) | Self::RateLimited(_) => true,
            // Of a request with several tries, each that came before did nothing: only such tries are followed by another.
            Self::Timeout { phase, .. } | Self::Deadline { phase, .. } => {
                !matches!(phase, Phase::Answer | Phase::Body | Phase::WatchEnd)
            }
            _ => false,
        }
    }

    /// Whether a deadline passed, and in which phase.
    pub fn timeout(&self) -> Option<Phase> {
        match self {
            Self::Timeout { phase, .. } | Self::Deadline { phase, .. } => Some(*phase),
            Self::RateLimited(_) => Some(Phase::Turn),
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
