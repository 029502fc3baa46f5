//! Who is told of changes.

use std::sync::Arc;

/// Is told of each change, in order, one at a time.
///
/// The store has changed before: a handler that reads it finds the object at least as new as it is told.
/// A handler runs on a task of its own and may take its time, but must not block the thread for long; its usual work is to
/// put a key into a queue. While its backlog is full the informer waits for it.
/// A panic costs that call alone: it is caught, counted and reported.
///
/// A handler that holds an [`Informer`](crate::Informer) keeps it running for ever; let it hold the reader.
pub trait Handler<T>: Send + Sync + 'static {
    /// The object is new. `initial` says that it was there when the handler or the informer began.
    fn on_add(&self, object: &T, initial: bool);

    /// The object changed, or is told once more: both states then have one version.
    fn on_update(&self, old: &T, new: &T);

    /// The object is gone. Without `final_state_known` nobody saw it go (client-go `DeletedFinalStateUnknown`): it was
    /// missing from a new state, or another of its name has taken its place, and `last` may not be its last state.
    fn on_delete(&self, last: &T, final_state_known: bool);
}

impl<T: 'static, H: Handler<T> + ?Sized> Handler<T> for Arc<H> {
    fn on_add(&self, object: &T, initial: bool) {
        (**self).on_add(object, initial);
    }

    fn on_update(&self, old: &T, new: &T) {
        (**self).on_update(old, new);
    }

    fn on_delete(&self, last: &T, final_state_known: bool) {
        (**self).on_delete(last, final_state_known);
    }
}

/// Tells a handler of those objects alone that pass a filter (client-go `FilteringResourceEventHandler`).
///
/// An object that begins to pass is added, not initially; one that no longer passes is deleted, in its old state.
#[derive(Debug, Clone)]
pub struct Filtered<F, H> {
    passes: F,
    handler: H,
}

impl<F, H> Filtered<F, H> {
    /// A handler behind the filter `passes`, which must be a pure function of the object.
    pub fn new(passes: F, handler: H) -> Self {
        Self { passes, handler }
    }
}

impl<T, F, H> Handler<T> for Filtered<F, H>
where
    F: Fn(&T) -> bool + Send + Sync + 'static,
    H: Handler<T>,
{
    fn on_add(&self, object: &T, initial: bool) {
        if (self.passes)(object) {
            self.handler.on_add(object, initial);
        }
    }

    fn on_update(&self, old: &T, new: &T) {
        match ((self.passes)(old), (self.passes)(new)) {
            (true, true) => self.handler.on_update(old, new),
            (false, true) => self.handler.on_add(new, false),
            (true, false) => self.handler.on_delete(old, true),
            (false, false) => {}
        }
    }

    fn on_delete(&self, last: &T, final_state_known: bool) {
        if (self.passes)(last) {
            self.handler.on_delete(last, final_state_known);
        }
    }
}
