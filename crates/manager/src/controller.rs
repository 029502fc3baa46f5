//! A controller: watches, workers, and a reconciler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{BoxError, Kind, ObjectKey};
use kubestrata_workqueue::{Ageing, ExponentialBackoff, RateLimiter};

use crate::predicate::Predicate;
use crate::reconciler::{FromFn, Reconciler, from_fn};
use crate::{Action, Context, Watch};

/// Limits of a controller.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) workers: usize,
    pub(crate) reconcile_timeout: Option<Duration>,
    pub(crate) cache_sync_timeout: Duration,
    pub(crate) max_keys: usize,
    pub(crate) ageing: Ageing,
    pub(crate) drain: bool,
    pub(crate) stale_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: 1,
            reconcile_timeout: None,
            cache_sync_timeout: Duration::from_secs(120),
            max_keys: 1 << 20,
            ageing: Ageing::default(),
            drain: false,
            stale_limit: Duration::from_secs(10),
        }
    }
}

/// A controller that waits to be given to a manager.
#[must_use = "give it to a manager"]
pub struct Controller {
    pub(crate) name: Arc<str>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) predicates: Vec<Arc<dyn Predicate>>,
    pub(crate) settings: Settings,
    pub(crate) limiter: Box<dyn RateLimiter<ObjectKey>>,
    pub(crate) reconciler: Arc<dyn Reconciler>,
}

impl Controller {
    /// Begins a controller. The name is a label of its metrics and unique within a manager.
    pub fn builder(name: &str) -> ControllerBuilder {
        ControllerBuilder {
            name: Arc::from(name),
            watches: Vec::new(),
            predicates: Vec::new(),
            settings: Settings::default(),
            limiter: Box::new(ExponentialBackoff::default()),
        }
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("watches", &self.watches)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Builds a [`Controller`].
#[must_use]
pub struct ControllerBuilder {
    name: Arc<str>,
    watches: Vec<Watch>,
    predicates: Vec<Arc<dyn Predicate>>,
    settings: Settings,
    limiter: Box<dyn RateLimiter<ObjectKey>>,
}

impl ControllerBuilder {
    /// Reconciles objects of kind `K`, each when it changes.
    pub fn for_kind<K: Kind>(self) -> Self {
        self.watch(Watch::of::<K>())
    }

    /// Reconciles also the owner when an object of kind `C` changes that it controls; the owner's kind is the first
    /// watch's. Adds an index by owner to the cache of `C`, for [`Context::owned`](crate::Context::owned).
    ///
    /// # Panics
    ///
    /// If nothing is watched yet, so that there is no owner's kind.
    pub fn owns<C: Kind>(self) -> Self {
        let owner = self.watches.first().expect("the owner's kind is watched before what it owns");
        let owner = crate::mapper::Owner::of_type(&owner.resource);
        let mut watch = Watch::of::<C>().mapper(owner);
        watch.owner_index = true;
        self.watch(watch)
    }

    /// Watches anything in any way.
    pub fn watch(mut self, watch: Watch) -> Self {
        self.watches.push(watch);
        self
    }

    /// Only changes that pass count, on all watches (controller-runtime `WithEventFilter`).
    pub fn with_predicate(mut self, predicate: impl Predicate) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Reconciles that may run at once, of different keys. Default 1, as in controller-runtime; at least 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.settings.workers = workers.max(1);
        self
    }

    /// The longest that one reconcile may take; it is dropped then, and counts as failed. Default: no limit, as in
    /// controller-runtime.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.settings.reconcile_timeout = Some(limit);
        self
    }

    /// The longest that the caches may take to be filled; the manager stops then. Default 2 min, as in
    /// controller-runtime.
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.settings.cache_sync_timeout = limit;
        self
    }

    /// Distinct keys in the queue. Default 2^20. Keys beyond that wait in a set outside of it, where they have no order.
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.settings.max_keys = keys;
        self
    }

    /// When keys that have waited long go before keys of higher priority.
    pub fn ageing(mut self, ageing: Ageing) -> Self {
        self.settings.ageing = ageing;
        self
    }

    /// How long failed keys wait. Default: 5 ms, doubling up to 1000 s, per key.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey>) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// How long a key waits, after a reconcile of it has written something, until the caches have that (KEP-5647): so a
    /// reconcile does not decide by a state that it has changed itself. After that it is reconciled with the caches as
    /// they are. Only writes by [`Context::client`](crate::Context::client) to cached kinds count. No worker is held up
    /// meanwhile. Default 10 s; zero turns it off.
    pub fn stale_limit(mut self, limit: Duration) -> Self {
        self.settings.stale_limit = limit;
        self
    }

    /// At the end, reconcile all keys that are ready, as far as the manager's shutdown timeout allows. Default: only those
    /// that are being reconciled are finished, as in controller-runtime; what is left is found again at the next start.
    pub fn drain_on_shutdown(mut self) -> Self {
        self.settings.drain = true;
        self
    }

    /// With a reconciler.
    pub fn reconciler(self, reconciler: impl Reconciler) -> Controller {
        Controller {
            name: self.name,
            watches: self.watches,
            predicates: self.predicates,
            settings: self.settings,
            limiter: self.limiter,
            reconciler: Arc::new(reconciler),
        }
    }

    /// With a function as reconciler.
    pub fn reconcile<F, Fut>(self, f: F) -> Controller
    where
        F: Fn(Context, ObjectKey) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, BoxError>> + Send,
        FromFn<F>: Reconciler,
    {
        self.reconciler(from_fn(f))
    }
}

impl fmt::Debug for ControllerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("name", &self.name)
            .field("watches", &self.watches)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
