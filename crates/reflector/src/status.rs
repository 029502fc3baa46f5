//! How a reflector is doing.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kubestrata_api_types::{ObjectKey, ResourceVersion};
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

/// What the comparison of a streamed state with a list found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Checked {
    /// Both had these many objects, and the same.
    Equal(usize),
    /// They differ.
    Differs(Difference),
    /// The list could not be had, or not be compared.
    Unknown(Arc<dyn Error + Send + Sync>),
}

/// In what a streamed state and a list of the same version differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Objects that the list has and the streamed state had not.
    pub missing: usize,
    /// Objects that the streamed state had and the list has not.
    pub extra: usize,
    /// Objects with another uid or version.
    pub different: usize,
    /// Keys of some of them: at most [`Difference::KEYS_MAX`].
    pub keys: Vec<ObjectKey>,
}

impl Difference {
    /// More keys are not kept.
    pub const KEYS_MAX: usize = 10;

    pub(crate) fn is_none(&self) -> bool {
        self.missing + self.extra + self.different == 0
    }

    pub(crate) fn name(&mut self, key: &ObjectKey) {
        if self.keys.len() < Self::KEYS_MAX {
            self.keys.push(key.clone());
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { missing, extra, different, keys } = self;
        write!(f, "{missing} missing, {extra} extra, {different} different, as in")?;
        keys.iter().try_for_each(|key| write!(f, " {key}"))
    }
}

/// The last comparison of a streamed state with a list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LastCheck {
    /// The version of both.
    pub resource_version: ResourceVersion,
    /// What was found.
    pub found: Checked,
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
    /// States delivered whose version was below one delivered before: the server has lost what it had told. Within an
    /// epoch, versions never go back.
    pub epoch: u64,
    /// Objects of the state that is on its way; 0 while none is.
    pub gathered: usize,
    /// Whether plain lists are made because a streaming one failed.
    pub fallback: bool,
    /// The row of failures that goes on, if one does.
    pub failing: Option<Failing>,
    /// The last failure, recovered or not.
    pub last_failure: Option<LastFailure>,
    /// Since when a streaming list waits for its end bookmark beyond ten seconds, while it does.
    pub waiting_for_end_bookmark: Option<Instant>,
    /// The last comparison of a streamed state with a list, if the configuration asks for any.
    pub last_check: Option<LastCheck>,
    /// Whether the server has sent objects of other shards than the one asked for: it does not know KEP-5866, and all of
    /// its objects come over the wire. They are left out here.
    pub shard_ignored: bool,
}

/// Reads the status of a reflector, also after it is gone. A clone is a reference count.
#[derive(Clone, Default)]
pub struct StatusHandle(Arc<Cell>);

#[derive(Default)]
struct Cell {
    status: Mutex<ReflectorStatus>,
    /// Beside the lock, as it changes with each object.
    gathered: AtomicUsize,
}

impl StatusHandle {
    /// The status now.
    pub fn read(&self) -> ReflectorStatus {
        let status = self.0.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Relaxed: a figure for people, which orders nothing.
        ReflectorStatus { gathered: self.0.gathered.load(Ordering::Relaxed), ..status }
    }

    pub(crate) fn gathered(&self, objects: usize) {
        self.0.gathered.store(objects, Ordering::Relaxed);
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut ReflectorStatus)) {
        change(&mut self.0.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl fmt::Debug for StatusHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}
