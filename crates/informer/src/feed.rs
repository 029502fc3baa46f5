//! From the reflector to the queue.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures_core::Stream as _;
use kubestrata_api_types::{Event, Snapshot, Unreadable, Update};
use kubestrata_realfifo::Producer;
use kubestrata_reflector::Reflector;
use tokio::time::Instant;

use crate::informer::Shared;
use crate::sink::Item;
use crate::{Transform, WhenGone};

/// Updates that are handed to the queue at once, at most: far fewer than the queue's own bound.
const TOGETHER: usize = 128;

/// Runs until the consumer of the queue is gone, or the resource is and the informer is to stop with it.
pub(crate) async fn feed<T: Item>(
    mut reflector: Reflector<T>,
    mut producer: Producer<T>,
    when_gone: WhenGone,
    shared: Arc<Shared<T>>,
) {
    let synced = producer.synced();
    let after = match when_gone {
        WhenGone::Keep => None,
        WhenGone::Clear { after } | WhenGone::Stop { after } => Some(after),
    };
    let mut acted: Option<Instant> = None;
    let mut updates = VecDeque::new();
    loop {
        let update = tokio::select! {
            // What still comes is told before its absence counts.
            biased;
            update = reflector.next() => update,
            since = shared.absence.lasting(after, acted) => {
                acted = Some(since);
                if matches!(when_gone, WhenGone::Stop { .. }) {
                    tracing::warn!("the server has no such resource any more; the informer stops");
                    return;
                }
                // Before the first state there is nothing to take back, and an empty one would claim to be it.
                if !synced.is_set() {
                    continue;
                }
                tracing::warn!("the server has no such resource any more; its objects count as gone");
                let resource_version = reflector.status().read().resource_version;
                let items = Vec::new();
                Update::Replace(Snapshot { items, unreadable: Vec::new(), resource_version })
            }
        };
        updates.push_back(update);
        take_ready(&mut reflector, &mut updates).await;
        if producer.push_all(&mut updates).await.is_err() {
            return;
        }
        shared.queued.store(producer.load().items, Ordering::Relaxed);
    }
}

/// Takes further updates that are there already, so that the pump is woken for all of them at once: a wake-up costs more
/// than an update.
async fn take_ready<T: Item>(reflector: &mut Reflector<T>, updates: &mut VecDeque<Update<T>>) {
    poll_fn(|cx| {
        while updates.len() < TOGETHER
            && let Poll::Ready(Some(update)) = Pin::new(&mut *reflector).poll_next(cx)
        {
            updates.push_back(update);
        }
        Poll::Ready(())
    })
    .await;
}

/// What a reflector makes of each event before it keeps it.
pub(crate) fn transform_event<T: Item>(transform: &Transform<T>, event: Event<T>) -> Event<T> {
    let (make, object): (fn(T) -> Event<T>, T) = match event {
        Event::Added(object) => (Event::Added, object),
        Event::Modified(object) => (Event::Modified, object),
        Event::Deleted(object) => {
            // A deletion is never lost: if the transform refuses, the object goes as it came.
            let last = try_transform(transform, object.clone()).ok().flatten();
            return Event::Deleted(last.unwrap_or(object));
        }
        Event::Bookmark(_) | Event::Unreadable(_) => return event,
    };
    match try_transform(transform, object.clone()) {
        Ok(Some(object)) => make(object),
        // Whoever knows an earlier state of it must forget that.
        Ok(None) => Event::Deleted(object),
        Err(unreadable) => Event::Unreadable(unreadable),
    }
}

fn try_transform<T: Item>(transform: &Transform<T>, object: T) -> Result<Option<T>, Unreadable> {
    let (key, resource_version) = (object.key(), object.resource_version());
    // Unwind safe: the object is dropped with the panic.
    catch_unwind(AssertUnwindSafe(|| transform.apply(object))).map_err(|_| Unreadable {
        key: Some(key),
        resource_version,
        problem: "the transform panicked".to_owned(),
    })
}
