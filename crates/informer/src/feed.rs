//! From the reflector to the queue, by way of the transform.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kubestrata_api_types::{Event, Unreadable, Update};
use kubestrata_realfifo::Producer;
use kubestrata_reflector::Reflector;
use kubestrata_store_index::Stored;

use crate::Transform;
use crate::informer::Shared;

/// Runs until the consumer of the queue is gone.
pub(crate) async fn feed<T: Stored>(
    mut reflector: Reflector<T>,
    mut producer: Producer<T>,
    transform: Option<Transform<T>>,
    shared: Arc<Shared<T>>,
) {
    loop {
        let mut update = reflector.next().await;
        if let Some(transform) = &transform {
            update = transform_update(transform, update);
        }
        if producer.push(update).await.is_err() {
            return;
        }
        shared.queued.store(producer.load().items, Ordering::Relaxed);
    }
}

pub(crate) fn transform_update<T: Stored>(
    transform: &Transform<T>,
    update: Update<T>,
) -> Update<T> {
    match update {
        Update::Replace(mut snapshot) => {
            let items = std::mem::take(&mut snapshot.items);
            for item in items {
                match try_transform(transform, item) {
                    Ok(Some(item)) => snapshot.items.push(item),
                    Ok(None) => {}
                    Err(unreadable) => snapshot.unreadable.push(unreadable),
                }
            }
            Update::Replace(snapshot)
        }
        Update::Event(event) => Update::Event(transform_event(transform, event)),
    }
}

fn transform_event<T: Stored>(transform: &Transform<T>, event: Event<T>) -> Event<T> {
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

fn try_transform<T: Stored>(transform: &Transform<T>, object: T) -> Result<Option<T>, Unreadable> {
    let (key, resource_version) = (object.key(), object.resource_version());
    // Unwind safe: the object is dropped with the panic.
    catch_unwind(AssertUnwindSafe(|| transform.apply(object))).map_err(|_| Unreadable {
        key: Some(key),
        resource_version,
        problem: "the transform panicked".to_owned(),
    })
}
