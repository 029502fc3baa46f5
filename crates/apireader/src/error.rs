//! What can go wrong with a live read.

use std::time::Duration;

use kubestrata_api_types::{Status, Undecodable};
use kubestrata_codec::ClientError;

/// Why a live read failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The exact version, or the version that a page token stands for, is no longer in the server's history.
    #[error("the version asked for is no longer available")]
    Expired(#[source] ClientError),
    /// The server has not seen the version yet: it lags behind, or was restored from an older state. Try again later.
    #[error("the server is behind the version asked for")]
    Behind(#[source] ClientError),
    /// The request failed otherwise.
    #[error("the read failed")]
    Request(#[source] ClientError),
    /// The object does not decode. Lists name such objects beside the others instead.
    #[error("the object does not decode")]
    Undecodable(#[source] Undecodable),
    /// The answer ended before it was complete.
    #[error("the answer ended before it was complete")]
    Incomplete,
    /// Nothing came for this long: [`Config::idle`](crate::Config::idle).
    #[error("no part of the answer came for {0:?}")]
    Idle(Duration),
    /// The server gave a page token twice, or more pages than [`Config::max_pages`](crate::Config::max_pages).
    #[error("the list does not end: {0} pages so far")]
    Endless(usize),
}

impl ReadError {
    pub(crate) fn of(error: ClientError) -> Self {
        match error.status() {
            Some(status) if status.is_expired() => Self::Expired(error),
            Some(status) if status.is_too_large_resource_version() => Self::Behind(error),
            _ => Self::Request(error),
        }
    }

    /// The server's Status, where it sent one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Expired(error) | Self::Behind(error) | Self::Request(error) => error.status(),
            _ => None,
        }
    }

    /// Whether the version or page token is too old: start the list again.
    pub fn is_expired(&self) -> bool {
        matches!(self, Self::Expired(_))
    }
}
