//! What a queue may ask of the consumer's store.

use kubestrata_api_types::ObjectKey;

/// The objects that the consumer has, for queues that compare a new state with it (client-go `KnownObjects`).
///
/// Called while the queue is locked: implementations answer from memory and must not call the queue.
pub trait KnownObjects<T>: Send + Sync + 'static {
    /// Calls `f` with each key.
    fn for_each_key(&self, f: &mut dyn FnMut(&ObjectKey));

    /// The object of a key, if it is there.
    fn get(&self, key: &ObjectKey) -> Option<T>;
}

/// All keys first: the implementation may hold a lock while it calls, which a `get` from within would meet.
pub(crate) fn keys_of<T: 'static>(known: &dyn KnownObjects<T>) -> Vec<ObjectKey> {
    let mut keys = Vec::new();
    known.for_each_key(&mut |key| keys.push(key.clone()));
    keys
}
