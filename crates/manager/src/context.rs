//! What a reconciler is given beside its key.

use std::fmt;
use std::sync::Arc;

use kubestrata_apireader::ApiReader;

use crate::{ApiService, Cache};

/// What all reconciles of a manager share.
#[derive(Debug)]
pub(crate) struct Shared {
    service: ApiService,
    reader: ApiReader<ApiService>,
    cache: Cache,
}

impl Shared {
    pub(crate) fn new(service: ApiService, cache: Cache) -> Self {
        let reader = ApiReader::new(service.clone());
        Self { service, reader, cache }
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }
}

/// What a reconciler is given beside its key: clients, caches, and what is known of the key. A clone is cheap.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    failures: u32,
    priority: i32,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, failures: u32, priority: i32) -> Self {
        Self { shared, failures, priority }
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
