//! The handlers of an informer, and the instant at which one of them joins.

use std::sync::Arc;

use kubestrata_store_index::Stored;
use parking_lot::Mutex;

use crate::listener::Listener;

/// The listeners. Cheap to copy for a batch.
pub(crate) type Listeners<T> = Arc<[Arc<Listener<T>>]>;

/// Who is told.
///
/// The lock is held while a batch goes into the store, and while a handler joins: a handler either finds the batch's
/// effect in the store when it joins, or is told of it, never both and never neither. Nothing waits under it.
#[derive(Debug)]
pub(crate) struct Members<T>(Mutex<State<T>>);

#[derive(Debug)]
pub(crate) struct State<T> {
    pub(crate) listeners: Listeners<T>,
    /// The notice that the first state was told has been given to the listeners of that time.
    pub(crate) synced: bool,
    pub(crate) stopped: bool,
    next: u64,
}

impl<T> Members<T> {
    pub(crate) fn new() -> Self {
        let listeners = Arc::from([]);
        Self(Mutex::new(State { listeners, synced: false, stopped: false, next: 0 }))
    }

    /// Does something at an instant at which no batch is half way in and no handler joins.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State<T>) -> R) -> R {
        act(&mut self.0.lock())
    }

    pub(crate) fn listeners(&self) -> Listeners<T> {
        Arc::clone(&self.0.lock().listeners)
    }
}

impl<T> State<T> {
    pub(crate) fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn join(&mut self, listener: Arc<Listener<T>>) {
        self.listeners = self.listeners.iter().cloned().chain([listener]).collect();
    }
}

/// Takes handlers out, whatever their items are.
pub(crate) trait Leave: Send + Sync {
    /// Tells the handler of nothing more.
    fn leave(&self, id: u64);
}

impl<T: Stored> Leave for Members<T> {
    fn leave(&self, id: u64) {
        let mut state = self.0.lock();
        state.listeners =
            state.listeners.iter().filter(|listener| listener.id != id).cloned().collect();
    }
}
