//! Handlers that are told of typed objects.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kubestrata_api_types::Undecodable;
use kubestrata_codec::{Item, Tracked};
use kubestrata_informer::Handler;

/// As [`Handler`], of objects `K`. [`Typed`] makes a handler of it.
pub trait TypedHandler<K>: Send + Sync + 'static {
    /// The object is new. `initial` says that it was there when the handler or the informer began.
    fn on_add(&self, object: Arc<Tracked<K>>, initial: bool);

    /// The object changed, or is told once more: both states then have one version.
    fn on_update(&self, old: Arc<Tracked<K>>, new: Arc<Tracked<K>>);

    /// The object is gone. Without `final_state_known` nobody saw it go, and `last` may not be its last state.
    fn on_delete(&self, last: Arc<Tracked<K>>, final_state_known: bool);

    /// A change of an object that does not decode. It is told of in no other way.
    fn on_undecodable(&self, error: &Undecodable);
}

/// A handler of items that decodes them for a [`TypedHandler`].
pub struct Typed<K, H> {
    handler: H,
    kind: PhantomData<fn() -> K>,
}

impl<K, H: TypedHandler<K>> Typed<K, H> {
    /// A handler that tells `handler`.
    pub fn new(handler: H) -> Self {
        Self { handler, kind: PhantomData }
    }

    fn with<T: Item<K>>(&self, item: &T, tell: impl FnOnce(Arc<Tracked<K>>)) {
        match item.get() {
            Ok(object) => tell(object),
            Err(error) => self.handler.on_undecodable(&error),
        }
    }
}

impl<K: 'static, T: Item<K>, H: TypedHandler<K>> Handler<T> for Typed<K, H> {
    fn on_add(&self, object: &T, initial: bool) {
        self.with(object, |object| self.handler.on_add(object, initial));
    }

    fn on_update(&self, old: &T, new: &T) {
        // A state that decodes after one that did not is the first that the handler sees.
        match old.get() {
            Ok(old) => self.with(new, |new| self.handler.on_update(old, new)),
            Err(_) => self.with(new, |new| self.handler.on_add(new, false)),
        }
    }

    fn on_delete(&self, last: &T, final_state_known: bool) {
        self.with(last, |last| self.handler.on_delete(last, final_state_known));
    }
}

impl<K, H: fmt::Debug> fmt::Debug for Typed<K, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Typed").field(&self.handler).finish()
    }
}
