//! What can be set.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{FieldPath, ResourceType};

/// What a read of a kind does that no informer follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnMissing {
    /// Start an informer, and wait until it is synced.
    #[default]
    Start,
    /// Fail with [`CacheError::NotCached`](crate::CacheError::NotCached)
    /// (controller-runtime `ReaderFailOnMissingInformer`).
    Fail,
    /// Go to the server.
    Live,
}

/// Configuration of a [`Cache`](crate::Cache).
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Config {
    /// What to do about kinds without an informer. Default: start one, as controller-runtime does.
    pub on_missing: OnMissing,
    /// Kinds of which every read goes to the server (controller-runtime `DisableFor`). Default: none.
    pub live: Vec<ResourceType>,
    /// Namespaces that informers started on demand follow, each with an informer of its own; kinds without namespaces are
    /// not concerned. Default: empty, which means one informer for all.
    pub namespaces: Vec<String>,
    /// Fields that are cut out of objects as they arrive, where a collection does not say otherwise.
    /// Default: `metadata.managedFields`; set it empty to keep everything.
    pub prune: Arc<[FieldPath]>,
    /// How long a read may wait for an informer to sync. Default 2 min, as controller-runtime's `CacheSyncTimeout`.
    pub sync_timeout: Duration,
    /// How long a read may wait for a version. Default 10 s; controller-runtime has no bound but the caller's.
    pub wait_timeout: Duration,
    /// Own writes of one kind that are remembered one by one until the cache has them. Beyond that, reads of the kind wait
    /// for the newest of them all. Default 10,000.
    pub tracked_writes: usize,
    /// How long the uid of an object that a client deleted is remembered and hidden. A cache that lags by more than this
    /// may show it again. Default 10 min.
    pub remember_deletes: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            on_missing: OnMissing::default(),
            live: Vec::new(),
            namespaces: Vec::new(),
            prune: Arc::from([FieldPath::managed_fields()]),
            sync_timeout: Duration::from_secs(120),
            wait_timeout: Duration::from_secs(10),
            tracked_writes: 10_000,
            remember_deletes: Duration::from_secs(600),
        }
    }
}
