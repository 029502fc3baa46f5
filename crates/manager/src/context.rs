//! What a reconciler is given beside its key.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{Kind, Object, ObjectKey};
use kubestrata_apireader::ApiReader;
use kubestrata_cache_client::{CacheClient, CacheError, Listed, Lister};
use kubestrata_codec::{Encoded, Item};

use crate::own_writes::OwnWrites;
use crate::{ApiService, Cache, Client, owner_index_name};

/// What all reconciles of a manager share.
#[derive(Debug)]
pub(crate) struct Shared {
    service: ApiService,
    reader: ApiReader<ApiService>,
    client: Client,
    cache: Cache,
}

impl Shared {
    pub(crate) fn new(service: ApiService, cache: Cache, read_your_writes: bool) -> Self {
        let reader = ApiReader::new(service.clone());
        let inner = CacheClient::new(cache.reads().clone(), service.clone());
        let inner = if read_your_writes { inner.read_your_writes() } else { inner };
        let client = Client::new(inner, cache.clone());
        Self { service, reader, client, cache }
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }
}

/// What a reconciler is given beside its key: clients, caches, and what is known of the key. A clone is cheap.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    /// Where the writes of a reconcile are remembered; `None` outside of one.
    record: Option<(Arc<OwnWrites>, ObjectKey)>,
    failures: u32,
    priority: i32,
}

impl Context {
    pub(crate) fn new(
        shared: Arc<Shared>,
        record: Option<(Arc<OwnWrites>, ObjectKey)>,
        failures: u32,
        priority: i32,
    ) -> Self {
        Self { shared, record, failures, priority }
    }

    /// Reads from the caches, writes to the server. Its methods are those of [`kubestrata_codec::Client`].
    pub fn client(&self) -> Client {
        match &self.record {
            Some((writes, key)) => self.shared.client.recording(Arc::clone(writes), key.clone()),
            None => self.shared.client.clone(),
        }
    }

    /// Typed reads of a kind from its cache, without a future.
    ///
    /// # Errors
    ///
    /// As [`Cache::lister`].
    pub fn lister<K: Kind>(&self) -> Result<Lister<K>, CacheError>
    where
        Encoded: Item<K>,
    {
        self.shared.cache.lister()
    }

    /// Typed reads of the objects of one namespace, where each namespace has a cache of its own.
    ///
    /// # Errors
    ///
    /// As [`Cache::lister_in`].
    pub fn lister_in<K: Kind>(&self, namespace: &str) -> Result<Lister<K>, CacheError>
    where
        Encoded: Item<K>,
    {
        self.shared.cache.lister_in(namespace)
    }

    /// The objects of kind `C` that `owner` controls, from the cache and by its index. For kinds that the controller
    /// [`owns`](crate::ControllerBuilder::owns), which are kept encoded. Objects that wait for their deletion are there
    /// too.
    ///
    /// # Errors
    ///
    /// As [`Cache::lister`], and [`CacheError::Query`] if the kind has no index by owner.
    pub fn owned<C: Kind>(&self, owner: &impl Object) -> Result<Listed<C>, CacheError>
    where
        Encoded: Item<C>,
    {
        let lister = self.shared.cache.lister_in::<C>(owner.namespace().unwrap_or_default())?;
        let uid = owner.uid().unwrap_or_default();
        lister
            .by_index(owner_index_name(), uid)
            .map_err(|error| CacheError::Query { resource: C::resource().to_string(), error })
    }

    /// Live reads, for the few that need the truth.
    pub fn api_reader(&self) -> &ApiReader<ApiService> {
        &self.shared.reader
    }

    /// The service below all caches.
    pub fn service(&self) -> &ApiService {
        &self.shared.service
    }

    /// The caches.
    pub fn cache(&self) -> &Cache {
        &self.shared.cache
    }

    /// Failures of this key in a row, before this reconcile.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The priority that the key had in the queue.
    pub fn priority(&self) -> i32 {
        self.priority
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("failures", &self.failures)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
