//! What can go wrong.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::Unreadable;
use kubestrata_store_index::IndexProblem;

/// The informer is not synced.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SyncError {
    /// Not within the time allowed. The source is `last_error`.
    Timeout {
        /// What it follows, as in `deployments.apps`.
        resource: String,
        /// How long was waited.
        waited: Duration,
        /// The reflector's last failure: a missing permission or kind shows here.
        last_error: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// It was never started.
    NotStarted {
        /// What it would follow.
        resource: String,
    },
    /// It is stopped, and will not be synced any more.
    Stopped {
        /// What it followed.
        resource: String,
    },
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { resource, waited, .. } => {
                write!(f, "the informer of {resource} was not synced within {waited:?}")
            }
            Self::NotStarted { resource } => write!(f, "the informer of {resource} is not started"),
            Self::Stopped { resource } => write!(f, "the informer of {resource} is stopped"),
        }
    }
}

/// By hand: a derived one would give the `Arc` as the source, in which nobody finds the error by its type.
impl Error for SyncError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Timeout { last_error, .. } => Some(&**last_error.as_ref()?),
            Self::NotStarted { .. } | Self::Stopped { .. } => None,
        }
    }
}

/// The informer is stopped and takes no more handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the informer is stopped")]
#[non_exhaustive]
pub struct Stopped;

/// The handler ended before it was synced: it was removed, or its informer stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler was removed, or its informer stopped")]
#[non_exhaustive]
pub struct Ended;

/// Something that costs one object or one call, and nothing else.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// An object cannot be read. If an earlier state of it is stored, that one stays.
    #[error("an object was left out")]
    Unreadable(#[source] Unreadable),
    /// An object is stored, but an index does not find it.
    #[error("an index is incomplete")]
    Index(#[source] IndexProblem),
    /// A handler panicked; the change counts as told.
    #[error("handler {handler:?} panicked")]
    HandlerPanicked {
        /// The handler's name.
        handler: Cow<'static, str>,
    },
}
