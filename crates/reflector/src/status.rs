//! How a reflector is doing.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kubestrata_api_types::ResourceVersion;
use tokio::time::Instant;

use crate::Failure;

/// What a reflector does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Phase {
    /// It gets the state. Leads to `Live` or, by a failure, to `Waiting`.
    #[default]
    Listing,
    /// It asks for a watch from the last version. Leads to `Live` or, by a failure, to `Waiting`.
    Connecting,
    /// A watch follows the state. Leads to `Connecting` when the watch ends, or to `Waiting`.
    Live,
    /// It waits after a failure. Leads to `Listing` or `Connecting`.
    Waiting,
}

/// A row of failures that goes on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failing {
    /// When the first of them happened.
    pub since: Instant,
    /// How many there were.
    pub count: u32,
}

/// The last failure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LastFailure {
    /// What happened.
    pub failure: Failure,
    /// When.
    pub at: Instant,
}

/// How a reflector is doing: a snapshot, from [`StatusHandle::read`].
///
/// Being synced once says nothing about now: `live_since`, `last_event` and `failing` do.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReflectorStatus {
    /// What it does now.
    pub phase: Phase,
    /// The version up to which the consumer has everything; unset before the first state.
    pub resource_version: ResourceVersion,
    /// Since when the watch follows the state without failure. A watch that ends as it should and is opened again does
    /// not interrupt it. `None` while it does not follow.
    pub live_since: Option<Instant>,
    /// When the last event came, bookmarks included.
    pub last_event: Option<Instant>,
    /// When the last bookmark came.
    pub last_bookmark: Option<Instant>,
    /// States delivered; all but the first are relists.
    pub states: u64,
    /// Whether plain lists are made because a streaming one failed.
    pub fallback: bool,
    /// The row of failures that goes on, if one does.
    pub failing: Option<Failing>,
    /// The last failure, recovered or not.
    pub last_failure: Option<LastFailure>,
    /// Since when a streaming list waits for its end bookmark beyond ten seconds, while it does.
    pub waiting_for_end_bookmark: Option<Instant>,
}

/// Reads the status of a reflector, also after it is gone. A clone is a reference count.
#[derive(Clone, Default)]
pub struct StatusHandle(Arc<Mutex<ReflectorStatus>>);

impl StatusHandle {
    /// The status now.
    pub fn read(&self) -> ReflectorStatus {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut ReflectorStatus)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl fmt::Debug for StatusHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}
