//! The error of the typed methods.

use std::time::Duration;

use kubestrata_api_types::{BoxError, Status, Undecodable, UnexpectedAnswer, cause_ref};

use crate::{EncodeError, UnknownFields};

/// Why a typed method failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused.
    #[error("the server refused the request")]
    Status(#[source] Box<Status>),
    /// No answer came, or a broken one: connection, timeout, a layer in between.
    #[error("the request failed")]
    Service(#[source] BoxError),
    /// The answer does not fit the request.
    #[error("the server answered with something else")]
    Unexpected(#[from] UnexpectedAnswer),
    /// The object that came does not decode into the type asked for.
    #[error("the answer does not decode")]
    Undecodable(#[from] Undecodable),
    /// The object to send lacks fields of the one that was read, and would remove them. Nothing was sent.
    #[error("the object lacks fields that the server has")]
    UnknownFields(#[from] UnknownFields),
    /// The object to send does not encode. Nothing was sent.
    #[error("the object does not encode")]
    Encode(#[source] EncodeError),
}

impl ClientError {
    /// The error of a service below. A bare Status becomes [`ClientError::Status`]; inside other errors it is found by
    /// [`ClientError::status`].
    pub fn from_service(error: BoxError) -> Self {
        match error.downcast::<Status>() {
            Ok(status) => Self::Status(status),
            Err(error) => Self::Service(error),
        }
    }

    /// The server's Status, wherever in the chain it is.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => cause_ref::<Status>(self),
        }
    }

    /// There is no such object, namespace or kind.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(Status::is_not_found)
    }

    /// The write was based on an old version, or a precondition or field owner is against it.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(Status::is_conflict)
    }

    /// The name is taken.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(Status::is_already_exists)
    }

    /// The version or token is older than the server's history.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(Status::is_expired)
    }

    /// When the server wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.status()?.retry_after()
    }
}
