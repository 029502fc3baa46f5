//! The manager: caches, clients and controllers, started and stopped in order.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{FOREVER, ResourceType, SystemWorld, World};
use kubestrata_codec::{Encoded, EncodedService};
use kubestrata_informer::{Config as InformerConfig, ProblemHook};
use kubestrata_telemetry::{Noop, Provider};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tower::ServiceExt as _;

use crate::cache::{Cache, CacheOptions, KindOptions};
use crate::context::{Context, Shared};
use crate::controller::Controller;
use crate::error::{RunError, SetupError};
use crate::runner::Runner;
use crate::{ApiService, Trigger};

/// Builds a [`Manager`].
#[must_use]
pub struct ManagerBuilder {
    service: ApiService,
    namespaces: Vec<String>,
    options: BTreeMap<ResourceType, KindOptions>,
    informer: InformerConfig<Encoded>,
    metrics: Arc<dyn Provider>,
    world: Arc<dyn World>,
    shutdown_timeout: Duration,
    read_your_writes: bool,
}

impl ManagerBuilder {
    /// Caches only these namespaces, of namespaced kinds. Default: all.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// How one kind is cached.
    pub fn cache<K>(mut self, options: CacheOptions<K>) -> Self {
        self.options.insert(options.resource, options.options);
        self
    }

    /// How informers work: recovery, queue bounds, timeouts. Its name, metrics and world are set by the manager.
    pub fn informers(mut self, config: InformerConfig<Encoded>) -> Self {
        self.informer = config;
        self
    }

    /// Is told of each problem that costs one object or one call: unreadable objects, panics of predicates and mappers.
    pub fn on_problem(mut self, hook: ProblemHook) -> Self {
        self.informer.on_problem = Some(hook);
        self
    }

    /// Where metrics go. Default: nowhere.
    pub fn metrics(mut self, provider: Arc<dyn Provider>) -> Self {
        self.metrics = provider;
        self
    }

    /// Randomness of retries and timeouts. Default: the real world.
    pub fn world(mut self, world: Arc<dyn World>) -> Self {
        self.world = world;
        self
    }

    /// How long a shutdown waits for reconciles that run. Default 30 s, as in controller-runtime.
    pub fn shutdown_timeout(mut self, limit: Duration) -> Self {
        self.shutdown_timeout = limit;
        self
    }

    /// The client's reads wait for its own writes, each for those of its object or list, in a reconcile and between
    /// reconciles. Default: no, as in controller-runtime; a key is not reconciled before its controller's caches have
    /// what the reconcile before wrote, anyhow.
    pub fn read_your_writes(mut self) -> Self {
        self.read_your_writes = true;
        self
    }

    /// Makes the manager. It does nothing yet.
    pub fn build(self) -> Manager {
        let mut config = self.informer;
        config.metrics = Arc::clone(&self.metrics);
        config.reflector.world = self.world;
        let cache = Cache::new(self.service.clone(), config, self.namespaces, self.options);
        Manager {
            shared: Arc::new(Shared::new(self.service, cache, self.read_your_writes)),
            metrics: self.metrics,
            shutdown_timeout: self.shutdown_timeout,
            controllers: Vec::new(),
        }
    }
}

impl fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder")
            .field("namespaces", &self.namespaces)
            .field("shutdown_timeout", &self.shutdown_timeout)
            .finish_non_exhaustive()
    }
}

/// Runs controllers over shared caches.
pub struct Manager {
    shared: Arc<Shared>,
    metrics: Arc<dyn Provider>,
    shutdown_timeout: Duration,
    controllers: Vec<(Arc<str>, Runner)>,
}

impl Manager {
    /// Begins a manager over a service: a transport, or any stack of layers over one.
    pub fn builder<S: EncodedService>(service: S) -> ManagerBuilder {
        let service = service.map_err(Into::into);
        ManagerBuilder {
            service: ApiService::new(service),
            namespaces: Vec::new(),
            options: BTreeMap::new(),
            informer: InformerConfig::default(),
            metrics: Arc::new(Noop),
            world: Arc::new(SystemWorld::new()),
            shutdown_timeout: Duration::from_secs(30),
            read_your_writes: false,
        }
    }

    /// Adds a controller, and the caches that it watches. What it gives back wakes the controller for other reasons than
    /// changes of objects.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the controller cannot work.
    pub fn add(&mut self, controller: Controller) -> Result<Trigger, SetupError> {
        let name = Arc::clone(&controller.name);
        if self.controllers.iter().any(|(other, _)| *other == name) {
            return Err(SetupError::NameTaken { name });
        }
        if controller.watches.is_empty() {
            return Err(SetupError::NothingWatched { name });
        }
        let shared = Arc::clone(&self.shared);
        let runner = Runner::new(controller, self.cache(), shared, &self.metrics);
        let trigger = Trigger(runner.queue().clone());
        self.controllers.push((name, runner));
        Ok(trigger)
    }

    /// The caches.
    pub fn cache(&self) -> &Cache {
        self.shared.cache()
    }

    /// What reconcilers are given, for use outside of them. Before the manager runs, cached reads fail.
    pub fn context(&self) -> Context {
        Context::new(Arc::clone(&self.shared), None, 0, 0)
    }

    /// Runs until `shutdown` is ready, or a controller fails.
    ///
    /// Order: the caches start; each controller's workers start once all that it watches is synced. At the end: no new
    /// keys; reconciles that run are waited for; the caches stop last, so that those reconciles can read.
    /// Dropping the future ends all at once.
    ///
    /// # Errors
    ///
    /// [`RunError`]; all is stopped then.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let Self { shared, shutdown_timeout, controllers, .. } = self;
        let cache = shared.cache().clone();
        cache.start();
        let (stop, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        for (_, runner) in controllers {
            running.spawn(runner.run(stopped.clone()));
        }
        let mut outcome = tokio::select! {
            // A failure explains more than a shutdown that comes at the same time.
            biased;
            Some(ended) = running.join_next() => unwrap(ended),
            () = shutdown => Ok(()),
        };
        tracing::debug!("manager stops");
        stop.send_replace(true);
        let deadline = Instant::now() + shutdown_timeout.min(FOREVER);
        loop {
            match timeout_at(deadline, running.join_next()).await {
                Ok(None) => break,
                // The first failure is the one that counts.
                Ok(Some(ended)) => {
                    let ended = unwrap(ended);
                    outcome = outcome.and(ended);
                }
                Err(_) => {
                    running.shutdown().await;
                    let unfinished = RunError::Unfinished { waited: shutdown_timeout };
                    outcome = outcome.and(Err(unfinished));
                    break;
                }
            }
        }
        cache.stop().await;
        outcome
    }
}

/// A controller that panicked is a defect, of ours, that must not be hidden.
fn unwrap(ended: Result<Result<(), RunError>, tokio::task::JoinError>) -> Result<(), RunError> {
    match ended {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Cancelled: only by the shutdown of the set, after which nobody asks.
            Err(_) => Ok(()),
        },
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.controllers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Manager").field("controllers", &names).finish_non_exhaustive()
    }
}
