//! Why the cache gives no answer.

use kubestrata_api_types::ObjectKey;
use kubestrata_informer::SyncError;
use kubestrata_store_index::{QueryError, WaitError};

/// Why the cache gives no answer. An object that is not there is no such error but a `Status`, as the server gives it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// [`Cache::start`](crate::Cache::start) was not called yet (controller-runtime `ErrCacheNotStarted`).
    #[error("the cache is not started")]
    NotStarted,
    /// No informer follows the kind, and none may be started (controller-runtime `ErrResourceNotCached`).
    #[error("{resource} are not cached")]
    NotCached {
        /// The kind, as in `deployments.apps`.
        resource: String,
    },
    /// The informer was not synced in time; the server's refusal, if there was one, is in the chain.
    #[error("the cache of {resource} is not synced")]
    NotSynced {
        /// The kind.
        resource: String,
        /// Why.
        #[source]
        error: SyncError,
    },
    /// Only other namespaces are cached.
    #[error("{resource} of namespace {namespace:?} are not cached")]
    OutOfScope {
        /// The kind.
        resource: String,
        /// The namespace asked for.
        namespace: String,
    },
    /// This client wrote the object, and the cache's selectors leave it out: the cache will never show it.
    #[error("object {key} was written by this client, and the cache does not select it")]
    NotSelected {
        /// The object.
        key: ObjectKey,
    },
    /// The selectors are more than the indexes can answer.
    #[error("the cache of {resource} cannot answer the query")]
    Query {
        /// The kind.
        resource: String,
        /// Why.
        #[source]
        error: QueryError,
    },
    /// The cache has not reached a version: one that the request asks for, or that of an own write. Ask again later.
    #[error("the cache of {resource} is not new enough")]
    Stale {
        /// The kind.
        resource: String,
        /// Which version, and which it has.
        #[source]
        error: WaitError,
    },
}

impl CacheError {
    /// Whether the same read may succeed later.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { error, .. } if error.is_stale())
    }
}
