//! One informer, whatever its item type.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{BoxFuture, ObjectKey};
use kubestrata_informer::{
    Handler, HandlerConfig, Informer, InformerStatus, Registration, Stopped, SyncError,
};
use kubestrata_store_index::{Index, StoreVersion, Stored};

use crate::Inspect;
use crate::predicate::Change;
use crate::watch::Sink;

/// Name of the index of objects by the uid of their managing controller, which `owns` adds.
const OWNER_INDEX: &str = "metadata.ownerReferences[controller].uid";

/// Name of the index of objects by the uid of their managing controller, which
/// [`ControllerBuilder::owns`](crate::ControllerBuilder::owns) adds to the cache.
pub fn owner_index_name() -> &'static str {
    OWNER_INDEX
}

/// One informer, as controllers see it.
pub(crate) trait Kept: Send + Sync {
    fn start(&self);
    fn stop(&self) -> BoxFuture<()>;
    fn add_owner_index(&self);
    fn add_sink(&self, sink: Sink, name: String) -> Result<Registration, Stopped>;
    fn wait_synced(&self, timeout: Duration) -> BoxFuture<Result<(), SyncError>>;
    fn status(&self) -> InformerStatus;
    fn version(&self) -> StoreVersion;
    /// The uid of the stored object of this name.
    fn uid(&self, key: &ObjectKey) -> Option<String>;
    /// The namespace that it follows, if it is one.
    fn namespace(&self) -> Option<Arc<str>>;
    fn as_any(&self) -> &dyn Any;
}

/// One informer with its item type.
pub(crate) struct KeptIn<T: Stored> {
    pub(crate) informer: Informer<T>,
    /// Kept, as adding the same index twice is fine, but another of the same name is not.
    owner_index: Index<T>,
}

impl<T: Stored + Inspect> KeptIn<T> {
    pub(crate) fn new(informer: Informer<T>) -> Self {
        let owner_index = Index::by(OWNER_INDEX, |object: &T, push: &mut dyn FnMut(&str)| {
            object.for_each_owner(&mut |owner| {
                if owner.controller {
                    push(owner.uid);
                }
            });
        });
        Self { informer, owner_index }
    }
}

impl<T: Stored + Inspect> Kept for KeptIn<T> {
    fn start(&self) {
        self.informer.start();
    }

    fn stop(&self) -> BoxFuture<()> {
        let informer = self.informer.clone();
        Box::pin(async move { informer.stop().await })
    }

    fn add_owner_index(&self) {
        if let Err(error) = self.informer.add_index(self.owner_index.clone()) {
            // Somebody has an index of our name: lookups by owner will use that one.
            tracing::warn!(%error, "the index by owner is not added");
        }
    }

    fn add_sink(&self, sink: Sink, name: String) -> Result<Registration, Stopped> {
        let config = HandlerConfig { name: name.into(), ..HandlerConfig::default() };
        self.informer.add_handler(Feed(sink), config)
    }

    fn wait_synced(&self, timeout: Duration) -> BoxFuture<Result<(), SyncError>> {
        let informer = self.informer.clone();
        Box::pin(async move { informer.wait_synced(timeout).await })
    }

    fn status(&self) -> InformerStatus {
        self.informer.status()
    }

    fn version(&self) -> StoreVersion {
        self.informer.reader().version()
    }

    fn uid(&self, key: &ObjectKey) -> Option<String> {
        self.informer.reader().get(key)?.uid().map(str::to_owned)
    }

    fn namespace(&self) -> Option<Arc<str>> {
        self.informer.collection().namespace.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// From an informer's item type to what predicates and mappers see.
struct Feed(Sink);

impl<T: Stored + Inspect> Handler<T> for Feed {
    fn on_add(&self, object: &T, initial: bool) {
        self.0.change(&Change::Created { object, initial });
    }

    fn on_update(&self, old: &T, new: &T) {
        self.0.change(&Change::Updated { old, new });
    }

    fn on_delete(&self, last: &T, final_state_known: bool) {
        self.0.change(&Change::Deleted { last, final_state_known });
    }
}
