//! Why a manager does not start, or ends.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_informer::SyncError;

/// A controller or manager is set up in a way that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Two controllers of one manager have one name, which would mix their metrics.
    #[error("there is already a controller {name:?}")]
    NameTaken {
        /// The name.
        name: Arc<str>,
    },
    /// A controller watches nothing, so that nothing would ever be reconciled.
    #[error("controller {name:?} watches nothing")]
    NothingWatched {
        /// Its name.
        name: Arc<str>,
    },
}

/// Why [`Manager::run`](crate::Manager::run) ended other than by its shutdown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A cache was not filled in time. The source says why, if anything does: a missing permission or kind shows there.
    #[error("controller {controller:?}: the cache of {resource} was not synced")]
    CacheSync {
        /// The controller that waited.
        controller: Arc<str>,
        /// What it waited for, as in `deployments.apps`.
        resource: String,
        /// What the cache's informer says.
        #[source]
        source: SyncError,
    },
    /// A cache was filled, but the controller had not seen all of it in time: its predicates and mappers are slow.
    #[error("controller {controller:?} had not seen all {resource} after {waited:?}")]
    HandlerSync {
        /// The controller.
        controller: Arc<str>,
        /// What it had not seen.
        resource: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The cache's informer was stopped by somebody else.
    #[error("controller {controller:?}: the cache of {resource} is stopped")]
    Stopped {
        /// The controller.
        controller: Arc<str>,
        /// The kind.
        resource: String,
    },
    /// Reconciles were still running after [`ManagerBuilder::shutdown_timeout`](crate::ManagerBuilder::shutdown_timeout),
    /// and were dropped.
    #[error("reconciles were still running {waited:?} after the shutdown began")]
    Unfinished {
        /// How long was waited.
        waited: Duration,
    },
}

/// The reconcile took longer than the controller allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reconcile was given up after {limit:?}")]
#[non_exhaustive]
pub struct ReconcileTimeout {
    /// The controller's limit.
    pub limit: Duration,
}

/// The reconciler panicked. The message is what it panicked with, if that was a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the reconciler panicked: {message}")]
#[non_exhaustive]
pub struct ReconcilePanic {
    /// What it panicked with.
    pub message: String,
}
