//! The layer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kubestrata_api_types::{
    ApiRequest, ApiResponse, BoxError, BoxFuture, ObjectKey, Operation, ResourceType,
};
use kubestrata_codec::{Encoded, EncodedService};
use kubestrata_store_index::WaitError;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt as _};

use crate::read::{Read, can_list};
use crate::route::Route;
use crate::write::{is_tracked, send};
use crate::writes::{Scope, Writes};
use crate::{Cache, CacheError};

/// Puts a [`Cache`] over a service. Each service made by one layer is a client of its own.
#[derive(Debug, Clone)]
pub struct CacheLayer {
    cache: Cache,
    read_your_writes: bool,
}

impl CacheLayer {
    /// A layer over the reads of this cache.
    pub fn new(cache: Cache) -> Self {
        Self { cache, read_your_writes: false }
    }

    /// Makes clients that read their own writes; see [`CacheClient::read_your_writes`].
    #[must_use]
    pub fn read_your_writes(mut self) -> Self {
        self.read_your_writes = true;
        self
    }
}

impl<S> Layer<S> for CacheLayer {
    type Service = CacheClient<S>;

    fn layer(&self, inner: S) -> CacheClient<S> {
        let client = CacheClient::new(self.cache.clone(), inner);
        if self.read_your_writes { client.read_your_writes() } else { client }
    }
}

/// Answers gets and lists from informers and sends everything else to the inner service.
///
/// - A get or list in which `resource_version` is set waits, for a bounded time, until the cache is at least as new.
///   A list at exactly a version, and further pages of a list that the server began, go to the server.
/// - A list with a limit is sorted and has a continue token. Its pages are each of an instant of their own.
/// - Field selectors need an index of the field's name in the informer, apart from name and namespace.
/// - An object that is not there is a `Status` with code 404, as the server gives it. Objects that the informer's
///   selectors leave out are not there.
///
/// Errors of its own are [`CacheError`], in the chain of sources.
///
/// A clone is the same client: it shares the record of writes.
#[derive(Debug, Clone)]
pub struct CacheClient<S> {
    cache: Cache,
    inner: S,
    writes: Option<Arc<Writes>>,
    origin: Instant,
}

impl<S> CacheClient<S> {
    /// A client of a cache and the server behind `inner`.
    pub fn new(cache: Cache, inner: S) -> Self {
        Self { cache, inner, writes: None, origin: Instant::now() }
    }

    /// From now on, reads of this client and its later clones contain all its writes that the server had committed when
    /// the read began (after controller-runtime 0.25).
    ///
    /// A get waits for writes of its object alone, a list for those in its namespace, on the store that answers it, for at
    /// most the cache's `wait_timeout`: then it fails with [`CacheError::Stale`]. Writes never wait for the cache.
    /// Deleted objects are hidden by their uid.
    ///
    /// Not covered: writes of others, writes whose answer was lost or whose future was dropped, delete-collection, and a
    /// delete whose answer and cache both do not tell the uid.
    #[must_use]
    pub fn read_your_writes(mut self) -> Self {
        self.writes = Some(Arc::new(Writes::new(self.cache.config())));
        self
    }

    /// The same client, but its reads do not wait for its writes, and its writes are not recorded.
    #[must_use]
    pub fn without_read_your_writes(mut self) -> Self {
        self.writes = None;
        self
    }

    /// The service behind, for a read that must come from the server.
    pub fn live(&self) -> &S {
        &self.inner
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Whether a read of this object would show all own writes of it by now; asks, does not wait. A controller can requeue
    /// instead of blocking a worker (KEP-5647).
    ///
    /// # Errors
    ///
    /// [`CacheError::Stale`] with the version that is missing.
    pub fn check(&self, resource: &ResourceType, key: &ObjectKey) -> Result<(), CacheError> {
        let Some(writes) = &self.writes else { return Ok(()) };
        let Some((epoch, want)) = writes.need(resource, Scope::Key(key)).version else {
            return Ok(());
        };
        for part in self.cache.followers(resource, key.namespace()) {
            let have = part.informer.reader().version();
            let stale = |error| CacheError::Stale { resource: resource.to_string(), error };
            if have.epoch != epoch {
                return Err(stale(WaitError::Rewound { have: have.version, want }));
            }
            if have.version.is_unset() || have.version.is_at_least(&want) == Some(false) {
                return Err(stale(WaitError::Stale { have: have.version, want }));
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn tracked(&self) -> usize {
        self.writes.as_ref().map_or(0, |writes| writes.len())
    }
}

impl<S: EncodedService> CacheClient<S> {
    fn read(&self, request: ApiRequest) -> CacheFuture {
        match self.cache.route(&request.collection) {
            Err(error) => CacheFuture::ready(Err(error.into())),
            Ok(Route::Live) => self.pass(request),
            Ok(Route::Cached(parts)) => {
                let read = Read::new(self.cache.clone(), parts, request, self.writes.clone());
                match read.now() {
                    Some(answer) => CacheFuture::ready(answer),
                    None => CacheFuture::waiting(Box::pin(read.run())),
                }
            }
        }
    }

    fn pass(&self, request: ApiRequest) -> CacheFuture {
        let call = self.inner.clone().oneshot(request);
        CacheFuture::waiting(Box::pin(async move { call.await.map_err(Into::into) }))
    }
}

impl<S: EncodedService> Service<ApiRequest> for CacheClient<S> {
    type Response = ApiResponse<Encoded>;
    type Error = BoxError;
    type Future = CacheFuture;

    /// Always ready: a cached read must not wait for the server.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ApiRequest) -> CacheFuture {
        let cached = request.subresource.is_none()
            && match &request.operation {
                Operation::Get { .. } => true,
                Operation::List(options) => can_list(options),
                _ => false,
            };
        if cached {
            return self.read(request);
        }
        match &self.writes {
            Some(writes)
                if is_tracked(&request) && !self.cache.is_live(&request.collection.resource) =>
            {
                let (inner, cache) = (self.inner.clone(), self.cache.clone());
                let sent = send(inner, request, cache, Arc::clone(writes), self.origin);
                CacheFuture::waiting(Box::pin(sent))
            }
            _ => self.pass(request),
        }
    }
}

/// The answer of a [`CacheClient`]: at once where the cache has it. Cancel-safe in that dropping it drops the request.
#[must_use = "a future does nothing unless it is polled"]
pub struct CacheFuture(State);

enum State {
    Ready(Option<Result<ApiResponse<Encoded>, BoxError>>),
    Waiting(BoxFuture<Result<ApiResponse<Encoded>, BoxError>>),
}

impl CacheFuture {
    fn ready(answer: Result<ApiResponse<Encoded>, BoxError>) -> Self {
        Self(State::Ready(Some(answer)))
    }

    fn waiting(answer: BoxFuture<Result<ApiResponse<Encoded>, BoxError>>) -> Self {
        Self(State::Waiting(answer))
    }
}

impl Future for CacheFuture {
    type Output = Result<ApiResponse<Encoded>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(answer) => {
                Poll::Ready(answer.take().expect("a future is not polled after it was ready"))
            }
            State::Waiting(answer) => answer.as_mut().poll(context),
        }
    }
}

impl std::fmt::Debug for CacheFuture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CacheFuture")
    }
}
