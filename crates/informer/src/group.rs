//! One kind in several namespaces.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::ObjectKey;
use kubestrata_store_index::Stored;
use tokio::time::Instant;

use crate::{
    Ended, Handler, HandlerConfig, Informer, InformerFactory, Registration, Selection, Stopped,
    SyncError,
};

/// The informers of one kind in several namespaces, of which each has a store, a version and a reflector of its own.
/// A clone is another handle to the same informers.
///
/// Between objects of different namespaces there is no order, and what is synced or live is so for each of them.
pub struct InformerGroup<T: Stored>(Arc<[Informer<T>]>);

impl<T: Stored> InformerFactory<T> {
    /// The informers of a selection in these namespaces, whatever namespace the selection itself names.
    ///
    /// One for each different name. The empty name stands for all namespaces, and then there is one informer, as is for no
    /// name at all and for a kind that has no namespaces: no object is followed twice.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn group(
        &self,
        selection: impl Into<Selection>,
        namespaces: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> InformerGroup<T> {
        let selection = selection.into();
        let names: BTreeSet<String> =
            namespaces.into_iter().map(|name| name.as_ref().to_owned()).collect();
        let all = names.is_empty()
            || names.contains("")
            || !selection.collection.resource.is_namespaced();
        let names = if all { BTreeSet::from([String::new()]) } else { names };
        let informers = names.iter().map(|name| {
            let collection = selection.collection.clone().in_namespace(name);
            self.informer(Selection { collection, ..selection.clone() })
        });
        InformerGroup(informers.collect())
    }
}

impl<T: Stored> InformerGroup<T> {
    /// The informers, by name of their namespace.
    pub fn informers(&self) -> &[Informer<T>] {
        &self.0
    }

    /// The informer that follows a namespace; `None` asks for objects without one.
    pub fn informer(&self, namespace: Option<&str>) -> Option<&Informer<T>> {
        self.0.iter().find(|informer| match &informer.collection().namespace {
            None => true,
            Some(own) => namespace == Some(&**own),
        })
    }

    /// One object, from the store that has its namespace.
    pub fn get(&self, key: &ObjectKey) -> Option<T> {
        self.informer(key.namespace())?.reader().get(key)
    }

    /// All objects, in no particular order; each namespace at an instant of its own.
    pub fn list(&self) -> Vec<T> {
        self.0.iter().flat_map(|informer| informer.reader().list()).collect()
    }

    /// Starts all.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn start(&self) {
        self.0.iter().for_each(Informer::start);
    }

    /// Stops all and waits for their end. Cancel-safe: what was stopped stays so.
    pub async fn stop(&self) {
        for informer in &*self.0 {
            informer.stop().await;
        }
    }

    /// Adds one handler to all. It is told of one change at a time from each namespace, so of several at once.
    ///
    /// # Errors
    ///
    /// [`Stopped`] if one of them is; then it was added to none.
    pub fn add_handler(
        &self,
        handler: impl Handler<T>,
        config: HandlerConfig,
    ) -> Result<Registrations, Stopped> {
        let handler = Arc::new(handler);
        let mut added = Registrations(Vec::with_capacity(self.0.len()));
        for informer in &*self.0 {
            match informer.add_handler(Arc::clone(&handler), config.clone()) {
                Ok(registration) => added.0.push(registration),
                Err(stopped) => {
                    added.remove();
                    return Err(stopped);
                }
            }
        }
        Ok(added)
    }

    /// Whether all are synced.
    pub fn has_synced(&self) -> bool {
        self.0.iter().all(Informer::has_synced)
    }

    /// Waits until all are synced, for at most `timeout` together. Cancel-safe.
    ///
    /// # Errors
    ///
    /// As [`Informer::wait_synced`], of the first that is not.
    pub async fn wait_synced(&self, timeout: Duration) -> Result<(), SyncError> {
        let start = Instant::now();
        for informer in &*self.0 {
            informer.wait_synced(timeout.saturating_sub(start.elapsed())).await?;
        }
        Ok(())
    }
}

impl<T: Stored> Clone for InformerGroup<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Stored> fmt::Debug for InformerGroup<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InformerGroup").field(&self.0).finish()
    }
}

/// One handler's places in the informers of a group. A clone is another handle to the same places.
#[derive(Debug, Clone)]
pub struct Registrations(Vec<Registration>);

impl Registrations {
    /// The places, by name of the namespace.
    pub fn all(&self) -> &[Registration] {
        &self.0
    }

    /// Whether the handler was told of every object that was there when it began, in all namespaces.
    pub fn has_synced(&self) -> bool {
        self.0.iter().all(Registration::has_synced)
    }

    /// Waits for [`has_synced`](Self::has_synced). Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`Ended`] if the handler is removed, or an informer stopped, before.
    pub async fn wait_synced(&self) -> Result<(), Ended> {
        for registration in &self.0 {
            registration.wait_synced().await?;
        }
        Ok(())
    }

    /// As [`Registration::remove`], in all namespaces.
    pub fn remove(&self) {
        self.0.iter().for_each(Registration::remove);
    }

    /// As [`Registration::drain`], in all namespaces.
    pub fn drain(&self) {
        self.0.iter().for_each(Registration::drain);
    }

    /// As [`Registration::ended`], in all namespaces. Cancel-safe.
    pub async fn ended(&self) {
        for registration in &self.0 {
            registration.ended().await;
        }
    }
}
