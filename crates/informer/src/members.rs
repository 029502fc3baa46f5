//! The handlers of an informer, and the instant at which one of them joins.

use std::sync::Arc;

use crate::backlog::{Close as _, Ending};
use crate::listener::Listener;
use crate::sink::{Item, Objects, StoreReader};
use crate::sync::Mutex;

/// The listeners. Cheap to copy for a batch.
pub(crate) type Listeners<T> = Arc<[Arc<Listener<T>>]>;

/// Who is told.
///
/// The lock is held while a batch goes into the store, and while a handler joins: a handler either finds the batch's
/// effect in the store when it joins, or is told of it, never both and never neither. Nothing waits under it.
#[derive(Debug)]
pub(crate) struct Members<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    listeners: Listeners<T>,
    /// The notice that the first state was told has been given to the listeners of that time.
    synced: bool,
    stopped: bool,
    next: u64,
}

/// What a handler finds when it joins.
pub(crate) struct Joined<T> {
    /// What is stored, all of which it is to be told.
    pub(crate) stored: Arc<dyn Objects<T>>,
    /// Whether the informer is synced, so that no notice will say so.
    pub(crate) synced: bool,
}

impl<T: 'static> Members<T> {
    pub(crate) fn new() -> Self {
        let listeners = Arc::from([]);
        Self(Mutex::new(State { listeners, synced: false, stopped: false, next: 0 }))
    }

    /// Changes the store; the listeners are those who are to be told of the change.
    pub(crate) fn change<R>(&self, act: impl FnOnce(&Listeners<T>) -> R) -> (Listeners<T>, R) {
        let state = self.0.lock();
        let done = act(&state.listeners);
        (Arc::clone(&state.listeners), done)
    }

    /// Lets a handler join; `None` if the informer is stopped.
    pub(crate) fn join(
        &self,
        reader: &dyn StoreReader<T>,
        listener: impl FnOnce(u64) -> Arc<Listener<T>>,
    ) -> Option<Joined<T>> {
        let mut state = self.0.lock();
        if state.stopped {
            return None;
        }
        state.next += 1;
        let listener = listener(state.next);
        state.listeners = state.listeners.iter().cloned().chain([listener]).collect();
        Some(Joined { stored: reader.freeze(), synced: state.synced })
    }

    /// Those to be told that the first state is complete: all who are there, once.
    pub(crate) fn sync(&self) -> Option<Listeners<T>> {
        let mut state = self.0.lock();
        (!std::mem::replace(&mut state.synced, true)).then(|| Arc::clone(&state.listeners))
    }

    pub(crate) fn listeners(&self) -> Listeners<T> {
        Arc::clone(&self.0.lock().listeners)
    }

    fn stop(&self) -> Listeners<T> {
        let mut state = self.0.lock();
        state.stopped = true;
        std::mem::replace(&mut state.listeners, Arc::from([]))
    }
}

impl<T: Item> Members<T> {
    /// Lets nobody join any more, and those go who are there.
    pub(crate) fn close(&self, ending: Ending) {
        for listener in self.stop().iter() {
            listener.backlog.close(ending);
        }
    }
}

/// Takes handlers out, whatever their items are.
pub(crate) trait Leave: Send + Sync {
    /// Tells the handler of nothing more.
    fn leave(&self, id: u64);
}

impl<T: Item> Leave for Members<T> {
    fn leave(&self, id: u64) {
        let mut state = self.0.lock();
        let left = state.listeners.iter().filter(|listener| listener.id != id).cloned().collect();
        let before = std::mem::replace(&mut state.listeners, left);
        drop(state);
        // Whatever the handler holds is dropped without the lock.
        drop(before);
    }
}
