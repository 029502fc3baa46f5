//! One worker: takes a key, reconciles it, and says what is to become of it.

use std::error::Error;
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use kubestrata_api_types::{BoxError, ObjectKey, cause_ref};
use kubestrata_workqueue::{AddOptions, Item, WorkQueue};
use tokio::time::{Instant, timeout};

use crate::action::{Action, Next, TerminalError};
use crate::context::{Context, Shared};
use crate::error::{ReconcilePanic, ReconcileTimeout};
use crate::metrics::Metrics;
use crate::own_writes::OwnWrites;
use crate::reconciler::Reconciler;

/// What the workers of one controller share.
pub(crate) struct Engine {
    pub(crate) name: Arc<str>,
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) reconciler: Arc<dyn Reconciler>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) metrics: Metrics,
    pub(crate) shared: Arc<Shared>,
    pub(crate) writes: Arc<OwnWrites>,
    /// How long a key waits for the caches to have its writes.
    pub(crate) stale_limit: Duration,
}

/// When a key is looked at again whose caches were behind. Such a cache is some milliseconds behind, if all is well.
const STALE_RETRY: Duration = Duration::from_millis(20);

impl Engine {
    /// Works until the queue is shut down.
    pub(crate) async fn work(&self) {
        while let Some(item) = self.queue.get().await {
            if self.writes.is_behind(&item, self.shared.cache(), self.stale_limit) {
                self.metrics.stale.increment();
                item.requeue(AddOptions::new().after(STALE_RETRY).priority(item.priority()));
                continue;
            }
            self.metrics.active.add(1.0);
            // Also when this future is dropped during the reconcile.
            let active = Active(&self.metrics);
            let started = Instant::now();
            let outcome = self.reconcile(&item).await;
            self.metrics.took(started.elapsed());
            drop(active);
            self.finish(item, outcome);
        }
    }

    async fn reconcile(&self, item: &Item<ObjectKey>) -> Result<Action, BoxError> {
        let key = item.key().clone();
        let record = (!self.stale_limit.is_zero()).then(|| (Arc::clone(&self.writes), key.clone()));
        let shared = Arc::clone(&self.shared);
        let context = Context::new(shared, record, item.failures(), item.priority());
        let reconcile = async { self.reconciler.reconcile(&context, key).await };
        // A reconciler that panicked is called again with other keys: its own state is its own care, as with any lock
        // that a panic can poison.
        let reconcile = AssertUnwindSafe(reconcile).catch_unwind();
        let outcome = match self.timeout {
            None => reconcile.await,
            Some(limit) => match timeout(limit, reconcile).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    self.metrics.timeouts.increment();
                    return Err(ReconcileTimeout { limit }.into());
                }
            },
        };
        outcome.unwrap_or_else(|panic| {
            self.metrics.panics.increment();
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "of another type than text".to_owned());
            Err(ReconcilePanic { message }.into())
        })
    }

    /// The table of controller-runtime's results: spec of `reconcile.Result`.
    fn finish(&self, item: Item<ObjectKey>, outcome: Result<Action, BoxError>) {
        match outcome {
            Ok(Action { next, priority }) => {
                let options =
                    AddOptions::new().priority(priority.unwrap_or_else(|| item.priority()));
                match next {
                    Next::Done => {
                        self.metrics.success.increment();
                        item.succeed();
                    }
                    Next::After(delay) => {
                        self.metrics.requeue_after.increment();
                        item.requeue(options.after(delay));
                        item.succeed();
                    }
                    Next::Backoff => {
                        self.metrics.requeue.increment();
                        item.requeue(options.rate_limited());
                    }
                }
            }
            Err(error) => {
                self.metrics.error.increment();
                self.metrics.errors.increment();
                let terminal = cause_ref::<TerminalError>(&*error).is_some();
                tracing::warn!(
                    controller = %self.name,
                    key = %item.key(),
                    failures = item.failures() + 1,
                    terminal,
                    error = chain(&*error),
                    "reconcile failed"
                );
                if terminal {
                    self.metrics.terminal.increment();
                } else {
                    item.retry();
                }
            }
        }
    }
}

struct Active<'a>(&'a Metrics);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.active.add(-1.0);
    }
}

/// An error with all its sources on one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // Writing to a String cannot fail.
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}
