//! The life of one controller: sources, sync, workers, and the way back.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{FOREVER, ObjectKey};
use kubestrata_informer::Registration;
use kubestrata_telemetry::Provider;
use kubestrata_workqueue::{Config, WorkQueue};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::cache::{Cache, Kept};
use crate::context::Shared;
use crate::controller::{Controller, Settings};
use crate::enqueue::Enqueue;
use crate::error::RunError;
use crate::metrics::Metrics;
use crate::worker::Engine;

/// As in client-go, for the gauges that change while nothing happens.
const METRICS_PERIOD: Duration = Duration::from_millis(500);

/// A controller with its queue, before and while it runs.
pub(crate) struct Runner {
    engine: Arc<Engine>,
    enqueue: Arc<Enqueue>,
    settings: Settings,
    sources: Vec<Source>,
}

struct Source {
    resource: String,
    kept: Arc<dyn Kept>,
    registration: Option<Registration>,
}

impl Runner {
    /// Makes the queue and begins to watch. Changes wait in the queue until [`run`](Self::run).
    pub(crate) fn new(
        controller: Controller,
        cache: &Cache,
        shared: Arc<Shared>,
        provider: &Arc<dyn Provider>,
    ) -> Self {
        let Controller { name, watches, predicates, settings, limiter, reconciler } = controller;
        let config = Config {
            name: name.to_string(),
            max_keys: settings.max_keys,
            ageing: settings.ageing,
            metrics: Arc::clone(provider),
        };
        let queue = WorkQueue::with_limiter(config, limiter);
        let enqueue = Arc::new(Enqueue::new(queue.clone()));
        let mut sources = Vec::new();
        for watch in &watches {
            for kept in cache.kept(&watch.resource, watch.representation).iter() {
                if watch.owner_index {
                    kept.add_owner_index();
                }
                let sink = watch.sink(&predicates, Arc::clone(&enqueue));
                // An informer that is stopped already shows when the controller waits for it.
                let registration = kept.add_sink(sink, name.to_string()).ok();
                let (resource, kept) = (watch.resource.to_string(), Arc::clone(kept));
                sources.push(Source { resource, kept, registration });
            }
        }
        let metrics = Metrics::new(&**provider, &name, settings.workers);
        let timeout = settings.reconcile_timeout;
        let stale_limit = settings.stale_limit;
        let writes = Arc::default();
        let engine =
            Engine { name, queue, reconciler, timeout, metrics, shared, writes, stale_limit };
        let engine = Arc::new(engine);
        Self { engine, enqueue, settings, sources }
    }

    pub(crate) fn queue(&self) -> &WorkQueue<ObjectKey> {
        &self.engine.queue
    }

    /// Runs until told to stop, and then until the reconciles that run have ended. Dropping the future ends all at once.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) -> Result<(), RunError> {
        let synced = tokio::select! {
            // A manager that stops does not want to hear that a cache was late.
            biased;
            _ = stop.wait_for(|stop| *stop) => None,
            synced = self.wait_synced() => Some(synced),
        };
        let mut helpers = JoinSet::new();
        let mut workers = JoinSet::new();
        let outcome = match synced {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(())) => {
                tracing::debug!(controller = %self.engine.name, "workers start");
                self.spawn(&mut helpers, &mut workers);
                // An error would say that the manager is gone, which ends us too.
                let _ = stop.wait_for(|stop| *stop).await;
                Ok(())
            }
        };
        for registration in self.sources.iter().filter_map(|source| source.registration.as_ref()) {
            registration.remove();
        }
        if self.settings.drain && !workers.is_empty() {
            self.engine.queue.drain().await;
        }
        self.engine.queue.shut_down();
        while let Some(ended) = workers.join_next().await {
            // A worker catches the panics of its reconciler; one of its own is a defect that must not be hidden.
            if let Err(error) = ended
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        }
        outcome
    }

    fn spawn(&self, helpers: &mut JoinSet<()>, workers: &mut JoinSet<()>) {
        for _ in 0..self.settings.workers {
            let engine = Arc::clone(&self.engine);
            workers.spawn(async move { engine.work().await });
        }
        let enqueue = Arc::clone(&self.enqueue);
        helpers.spawn(async move { enqueue.run().await });
        let queue = self.engine.queue.clone();
        helpers.spawn(async move {
            loop {
                queue.update_metrics();
                sleep(METRICS_PERIOD).await;
            }
        });
    }

    /// Waits until every cache is filled and every watch has seen all of it: a reconcile must not see a part of the
    /// world (controller-runtime 3406).
    async fn wait_synced(&self) -> Result<(), RunError> {
        let waited = self.settings.cache_sync_timeout;
        let deadline = Instant::now() + waited.min(FOREVER);
        for source in &self.sources {
            let controller = Arc::clone(&self.engine.name);
            let resource = source.resource.clone();
            let left = deadline.saturating_duration_since(Instant::now());
            if let Err(error) = source.kept.wait_synced(left).await {
                return Err(RunError::CacheSync { controller, resource, source: error });
            }
            let Some(registration) = &source.registration else {
                return Err(RunError::Stopped { controller, resource });
            };
            match timeout_at(deadline, registration.wait_synced()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(RunError::Stopped { controller, resource }),
                Err(_) => return Err(RunError::HandlerSync { controller, resource, waited }),
            }
        }
        Ok(())
    }
}
