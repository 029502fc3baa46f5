//! From the queue to the store, and on to the handlers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kubestrata_realfifo::{Consumer, Delta};
use kubestrata_store_index::{Stored, Writer};
use tokio::time::{Instant, sleep_until};

use crate::Problem;
use crate::apply::{Outcome, Rules, apply};
use crate::informer::Shared;
use crate::listener::Notice;
use crate::members::Listeners;

/// How old the metrics of the store may be: with one event a batch, to publish after each would cost more than the event.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);

/// Applies batches one after the other. The one writer of the store.
pub(crate) struct Pump<T: Stored> {
    pub(crate) writer: Writer<T>,
    pub(crate) consumer: Consumer<T>,
    pub(crate) shared: Arc<Shared<T>>,
    pub(crate) rules: Rules,
}

impl<T: Stored> Pump<T> {
    /// Runs until the queue's producer is gone and the queue is empty.
    pub(crate) async fn run(self) {
        let Self { mut writer, mut consumer, shared, rules } = self;
        let synced = consumer.synced();
        let mut publish_at: Option<Instant> = None;
        loop {
            tokio::select! {
                // Changes come first. The others do not starve: both are looked at after each batch too.
                biased;
                batch = consumer.next_batch() => {
                    let Some(mut batch) = batch else { return };
                    let (deltas, initial) = (batch.take(), batch.is_initial());
                    let (listeners, outcome) =
                        to_store(&mut writer, &shared, deltas, initial, rules);
                    report(&shared, outcome.problems);
                    for notice in outcome.notices {
                        tell(&listeners, notice).await;
                    }
                    batch.done();
                    publish_at.get_or_insert_with(|| Instant::now() + PUBLISH_EVERY);
                }
                () = shared.resync_due.notified() => {}
                () = sleep_until(publish_at.unwrap_or_else(Instant::now)), if publish_at.is_some() => {}
            }
            shared.queued.store(consumer.load().items, Ordering::Relaxed);
            if synced.is_set() {
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

/// The store changes, and the handlers to be told are those of that instant.
fn to_store<T: Stored>(
    writer: &mut Writer<T>,
    shared: &Shared<T>,
    deltas: Vec<Delta<T>>,
    initial: bool,
    rules: Rules,
) -> (Listeners<T>, Outcome<T>) {
    shared.members.with(|members| {
        let rules = Rules { tell: !members.listeners.is_empty(), ..rules };
        let outcome = apply(writer, &shared.reader, deltas, initial, rules);
        (Arc::clone(&members.listeners), outcome)
    })
}

/// Waits for room in each backlog in turn.
async fn tell<T: Stored>(listeners: &Listeners<T>, notice: Notice<T>) {
    let Some((last, others)) = listeners.split_last() else { return };
    for listener in others {
        listener.send(notice.clone()).await;
    }
    last.send(notice).await;
}

/// Tells those who joined before the first state was complete that it is; once.
async fn tell_synced<T: Stored>(shared: &Shared<T>) {
    let listeners = shared.members.with(|members| {
        (!std::mem::replace(&mut members.synced, true)).then(|| Arc::clone(&members.listeners))
    });
    if let Some(listeners) = listeners {
        tell(&listeners, Notice::Synced).await;
    }
}

/// Tells all objects once more to those whose time has come. Between batches, so that no older state follows a newer one.
async fn resync<T: Stored>(shared: &Shared<T>) {
    let mut frozen = None;
    for listener in shared.members.listeners().iter() {
        if listener.resync_due.swap(false, Ordering::Relaxed) {
            let frozen = frozen.get_or_insert_with(|| Arc::new(shared.reader.freeze()));
            listener.send(Notice::Resync(Arc::clone(frozen))).await;
        }
    }
}

pub(crate) fn report<T: Stored>(shared: &Shared<T>, problems: Vec<Problem>) {
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
