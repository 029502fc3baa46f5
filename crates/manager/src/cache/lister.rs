//! Typed reads.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{Kind, Representation};
use kubestrata_cache_client::{CacheError, Lister};
use kubestrata_codec::{Decoded, Encoded, Item};
use kubestrata_informer::{Informer, SyncError};
use kubestrata_store_index::Stored;

use super::{Cache, KeptIn};
use crate::Inspect;

impl Cache {
    /// Typed reads of a kind, of all namespaces that are cached if that is one cache. Begins to cache the kind if nobody
    /// watches it yet; that takes a moment, so for a kind that is not watched the first try fails.
    ///
    /// # Errors
    ///
    /// [`CacheError::NotSynced`] until the cache is filled; [`CacheError::OutOfScope`] if each namespace has a cache of its
    /// own, see [`lister_in`](Self::lister_in); [`CacheError::NotCached`] if the kind is kept decoded, see
    /// [`decoded_lister`](Self::decoded_lister).
    pub fn lister<K: Kind>(&self) -> Result<Lister<K>, CacheError>
    where
        Encoded: Item<K>,
    {
        self.typed::<K, Encoded>(None)
    }

    /// Typed reads of the objects of one namespace, or of a kind that has none.
    ///
    /// # Errors
    ///
    /// As for [`lister`](Self::lister); [`CacheError::OutOfScope`] if the namespace is not cached.
    pub fn lister_in<K: Kind>(&self, namespace: &str) -> Result<Lister<K>, CacheError>
    where
        Encoded: Item<K>,
    {
        self.typed::<K, Encoded>(Some(namespace))
    }

    /// As [`lister`](Self::lister), for a kind that is kept decoded; with a namespace, as [`lister_in`](Self::lister_in).
    ///
    /// # Errors
    ///
    /// As these two; [`CacheError::NotCached`] if the kind is not kept decoded.
    pub fn decoded_lister<K: Kind>(
        &self,
        namespace: Option<&str>,
    ) -> Result<Lister<K, Decoded<K>>, CacheError>
    where
        Decoded<K>: Stored + Inspect + Item<K>,
    {
        self.typed::<K, Decoded<K>>(namespace)
    }

    fn typed<K, T>(&self, namespace: Option<&str>) -> Result<Lister<K, T>, CacheError>
    where
        K: Kind,
        T: Stored + Inspect + Item<K>,
    {
        let resource = K::resource();
        let namespace = namespace.filter(|name| !name.is_empty() && resource.is_namespaced());
        let kept = self.kept(resource, Representation::Object);
        let covering = |follows: Option<Arc<str>>| match follows {
            None => true,
            Some(follows) => namespace == Some(&*follows),
        };
        let Some(kept) = kept.iter().find(|kept| covering(kept.namespace())) else {
            return Err(CacheError::OutOfScope {
                resource: resource.to_string(),
                namespace: namespace.unwrap_or_default().to_owned(),
            });
        };
        let Some(kept) = kept.as_any().downcast_ref::<KeptIn<T>>() else {
            return Err(CacheError::NotCached { resource: resource.to_string() });
        };
        synced(&kept.informer)?;
        Ok(Lister::new(kept.informer.reader()).in_namespace(namespace.unwrap_or_default()))
    }
}

fn synced<T: Stored>(informer: &Informer<T>) -> Result<(), CacheError> {
    if informer.has_synced() {
        return Ok(());
    }
    let resource = informer.collection().resource.to_string();
    if !informer.is_started() {
        return Err(CacheError::NotStarted);
    }
    let last_error = informer.status().reflector.last_failure.map(|last| last.failure.error);
    let waited = Duration::ZERO;
    let error = SyncError::Timeout { resource: resource.clone(), waited, last_error };
    Err(CacheError::NotSynced { resource, error })
}
