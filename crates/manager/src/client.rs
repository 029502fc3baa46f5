//! The client that reconcilers are given.

use std::fmt;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures_util::future::Either;
use kubestrata_api_types::{
    Answer, ApiRequest, ApiResponse, BoxError, BoxFuture, Object as _, ObjectKey, Operation, Verb,
};
use kubestrata_cache_client::{CacheClient, CacheFuture};
use kubestrata_codec::Encoded;
use tower::{Service, ServiceExt as _};

use crate::cache::KeptIn;
use crate::own_writes::OwnWrites;
use crate::{ApiService, Cache};

/// Reads from the caches of a manager, and writes to the server. A clone is the same client.
///
/// Its typed methods are those of [`kubestrata_codec::Client`]. A get or list of a kind that nobody caches yet begins to
/// cache it, and waits for that. Kinds that are kept decoded are read from the server: use their lister.
///
/// In a reconcile, its writes are remembered for the key, which is not reconciled again before the caches have them.
#[derive(Clone)]
pub struct Client {
    inner: CacheClient<ApiService>,
    cache: Cache,
    record: Option<Record>,
}

/// Where the writes of one reconcile are remembered.
#[derive(Clone)]
struct Record {
    writes: Arc<OwnWrites>,
    key: ObjectKey,
}

impl Client {
    pub(crate) fn new(inner: CacheClient<ApiService>, cache: Cache) -> Self {
        Self { inner, cache, record: None }
    }

    /// The same client, whose writes are remembered for a key.
    pub(crate) fn recording(&self, writes: Arc<OwnWrites>, key: ObjectKey) -> Self {
        Self { record: Some(Record { writes, key }), ..self.clone() }
    }

    /// The same client, whose reads wait for its own writes, and for those of clones made of it later: see
    /// [`CacheClient::read_your_writes`].
    #[must_use]
    pub fn read_your_writes(mut self) -> Self {
        self.inner = self.inner.read_your_writes();
        self
    }

    /// The service below the caches.
    pub fn live(&self) -> &ApiService {
        self.inner.live()
    }

    fn read(&mut self, request: ApiRequest) -> <Self as Service<ApiRequest>>::Future {
        let collection = &request.collection;
        let kept = self.cache.kept(&collection.resource, collection.representation);
        if !kept.iter().all(|kept| kept.as_any().is::<KeptIn<Encoded>>()) {
            return Either::Right(Box::pin(self.live().clone().oneshot(request)));
        }
        Either::Left(self.inner.call(request))
    }

    fn write(&mut self, request: ApiRequest, record: Record) -> BoxFuture<Answered> {
        let cache = self.cache.clone();
        let resource = Arc::clone(&request.collection.resource);
        let deleted = match &request.operation {
            Operation::Delete { options, .. } if !options.dry_run => {
                request.key().map(|key| (key, options.preconditions.uid.clone()))
            }
            _ => None,
        };
        let call = self.inner.call(request);
        Box::pin(async move {
            let response = call.await?;
            let Record { writes, key } = record;
            match &response.answer {
                // Also of a delete: the object is still there, with finalizers or a grace period, at this version; or it
                // was the last state, which the cache has reached or will reach with the deletion.
                Answer::Object(object) => {
                    let (namespace, version) = (object.namespace(), object.resource_version());
                    writes.wrote(&key, &cache, &resource, namespace, version);
                }
                Answer::Status(status) => {
                    if let Some((deleted, uid)) = deleted {
                        let told = status.details.as_ref().map(|details| details.uid.clone());
                        let uid = uid.or_else(|| told.filter(|uid| !uid.is_empty()));
                        writes.deleted(&key, &cache, &resource, deleted, uid);
                    }
                }
                _ => {}
            }
            Ok(response)
        })
    }
}

/// What a request gives.
type Answered = Result<ApiResponse<Encoded>, BoxError>;

/// Whether the answer to a write has the version that the cache of the kind will see.
fn is_recorded(request: &ApiRequest) -> bool {
    // Other subresources answer with other kinds: a scale, an eviction, a token.
    let own_kind = matches!(request.subresource.as_deref(), None | Some("status"));
    let dry_run = match &request.operation {
        Operation::Create { options, .. }
        | Operation::Update { options, .. }
        | Operation::Patch { options, .. } => options.dry_run,
        _ => false,
    };
    own_kind && !dry_run && request.verb() != Verb::DeleteCollection
}

impl Service<ApiRequest> for Client {
    type Response = ApiResponse<Encoded>;
    type Error = BoxError;
    type Future = Either<CacheFuture, BoxFuture<Answered>>;

    /// Always ready: a cached read must not wait for the server.
    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        match (request.verb(), &self.record) {
            (Verb::Get | Verb::List, _) if request.subresource.is_none() => self.read(request),
            (verb, Some(record)) if !verb.is_read() && is_recorded(&request) => {
                let record = record.clone();
                Either::Right(self.write(request, record))
            }
            _ => Either::Left(self.inner.call(request)),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("cache", &self.cache).finish_non_exhaustive()
    }
}
