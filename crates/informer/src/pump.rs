//! From the queue to the store, and on to the handlers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kubestrata_realfifo::Consumer;
use tokio::time::{Instant, sleep_until};

use crate::Problem;
use crate::apply::{Rules, apply};
use crate::backlog::Ending;
use crate::informer::Shared;
use crate::members::{Listeners, Members};
use crate::notice::Notice;
use crate::sink::{AnyStore, Item};

/// How old the metrics of the store may be: with one event a batch, to publish after each would cost more than the event.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);

/// Applies batches one after the other. The one writer of the store.
pub(crate) struct Pump<T: Item> {
    pub(crate) store: Box<dyn AnyStore<T>>,
    pub(crate) consumer: Consumer<T>,
    pub(crate) shared: Arc<Shared<T>>,
    pub(crate) rules: Rules,
}

impl<T: Item> Pump<T> {
    /// Runs until the queue's producer is gone and the queue is empty; then the handlers are let go.
    pub(crate) async fn run(self) {
        // Dropped last, also by a panic: whoever waits for the store is told before the handlers end.
        let _closing = Closing(Arc::clone(&self.shared.members));
        let Self { mut store, mut consumer, shared, rules } = self;
        let synced = consumer.synced();
        let mut told_synced = false;
        let mut publish_at: Option<Instant> = None;
        loop {
            tokio::select! {
                // Changes come first. The others do not starve: all are looked at after each batch too.
                biased;
                batch = consumer.next_batch() => {
                    let Some(mut batch) = batch else { return };
                    let (deltas, initial) = (batch.take(), batch.is_initial());
                    tracing::trace!(deltas = deltas.len(), initial, "batch");
                    // The store changes, and the handlers to be told are those of that instant.
                    let (listeners, outcome) = shared.members.change(|listeners| {
                        let rules = Rules { tell: !listeners.is_empty(), ..rules };
                        apply(&mut *store, &*shared.reader, deltas, initial, rules)
                    });
                    report(&shared, outcome.problems);
                    for notice in outcome.notices {
                        tell(&listeners, notice).await;
                    }
                    batch.done();
                    publish_at.get_or_insert_with(|| Instant::now() + PUBLISH_EVERY);
                }
                // An empty state that is taken apart leaves no batch behind.
                () = synced.wait(), if !told_synced => {}
                () = shared.resync_due.notified() => {}
                () = sleep_until(publish_at.unwrap_or_else(Instant::now)), if publish_at.is_some() => {}
            }
            shared.queued.store(consumer.load().items, Ordering::Relaxed);
            if !told_synced && synced.is_set() {
                told_synced = true;
                tell_synced(&shared).await;
            }
            resync(&shared).await;
            if publish_at.is_some_and(|at| at <= Instant::now()) {
                publish_at = None;
                shared.metrics.publish(&shared.reader.version().version, &shared.reader.usage());
            }
        }
    }
}

/// Lets the handlers go when nothing more will come.
struct Closing<T: Item>(Arc<Members<T>>);

impl<T: Item> Drop for Closing<T> {
    fn drop(&mut self) {
        self.0.close(Ending::Drain);
    }
}

/// Waits for room in each backlog in turn.
async fn tell<T: Item>(listeners: &Listeners<T>, notice: Notice<T>) {
    let Some((last, others)) = listeners.split_last() else { return };
    for listener in others {
        listener.send(notice.clone()).await;
    }
    last.send(notice).await;
}

/// Tells those who joined before the first state was complete that it is; once.
async fn tell_synced<T: Item>(shared: &Shared<T>) {
    if let Some(listeners) = shared.members.sync() {
        tell(&listeners, Notice::Synced).await;
    }
}

/// Tells all objects once more to those whose time has come. Between batches, so that no older state follows a newer one.
async fn resync<T: Item>(shared: &Shared<T>) {
    let mut frozen = None;
    for listener in shared.members.listeners().iter() {
        if listener.resync_due.swap(false, Ordering::Relaxed) {
            let frozen = frozen.get_or_insert_with(|| shared.reader.freeze());
            listener.send(Notice::Resync(Arc::clone(frozen))).await;
        }
    }
}

pub(crate) fn report<T: Item>(shared: &Shared<T>, problems: Vec<Problem>) {
    for problem in problems {
        match &problem {
            Problem::Unreadable(unreadable) => {
                shared.unreadable.fetch_add(1, Ordering::Relaxed);
                shared.metrics.unreadable.increment();
                tracing::warn!(%unreadable, "an object was left out");
            }
            Problem::Index(index) => {
                shared.index_problems.fetch_add(1, Ordering::Relaxed);
                shared.metrics.index_problems.increment();
                tracing::warn!(%index, failure = %index.failure, "an index is incomplete");
            }
            Problem::HandlerPanicked { .. } => {}
        }
        if let Some(hook) = &shared.on_problem {
            hook.call(&problem);
        }
    }
}
