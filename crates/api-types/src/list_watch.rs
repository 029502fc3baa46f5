//! The seam between whatever serves objects and whatever follows them.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use tower::{Service, ServiceExt as _};

use crate::{
    ApiRequest, ApiResponse, Collection, ListOptions, ListStream, Operation, WatchOptions,
    WatchStream,
};

/// The error of a tower service, of any layer. [`cause_ref`] finds the typed error inside.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A boxed future, at the seams where requests are rare.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The first error of type `E` in the chain of sources of `error`, itself included. A large error that stands in the chain
/// in a `Box` of its own counts too.
pub fn cause_ref<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        if let Some(found) = error.downcast_ref::<Box<E>>() {
            return Some(found);
        }
        current = error.source();
    }
    None
}

/// Lists and watches: what a reflector follows.
///
/// Implemented for every clonable `tower::Service<ApiRequest, Response = ApiResponse<T>>`, so for a transport, a
/// cached client, and any stack of layers over them. Implement it by hand for a source that is no API server.
///
/// The futures are cancel-safe: dropping one cancels the request.
pub trait ListWatch<T>: Send + Sync + 'static {
    /// Lists one page of a collection.
    ///
    /// # Errors
    ///
    /// A [`Status`](crate::Status) in the chain of sources where the server refused.
    fn list(
        &self,
        collection: &Collection,
        options: ListOptions,
    ) -> BoxFuture<Result<ListStream<T>, BoxError>>;

    /// Opens a watch on a collection. The future is ready when the server has accepted it.
    ///
    /// # Errors
    ///
    /// A [`Status`](crate::Status) in the chain of sources where the server refused.
    fn watch(
        &self,
        collection: &Collection,
        options: WatchOptions,
    ) -> BoxFuture<Result<WatchStream<T>, BoxError>>;
}

impl<S, T> ListWatch<T> for S
where
    S: Service<ApiRequest, Response = ApiResponse<T>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send,
    T: 'static,
{
    fn list(
        &self,
        collection: &Collection,
        options: ListOptions,
    ) -> BoxFuture<Result<ListStream<T>, BoxError>> {
        let call =
            self.clone().oneshot(ApiRequest::new(collection.clone(), Operation::List(options)));
        Box::pin(async move { Ok(call.await.map_err(Into::into)?.into_list()?) })
    }

    fn watch(
        &self,
        collection: &Collection,
        options: WatchOptions,
    ) -> BoxFuture<Result<WatchStream<T>, BoxError>> {
        let call =
            self.clone().oneshot(ApiRequest::new(collection.clone(), Operation::Watch(options)));
        Box::pin(async move { Ok(call.await.map_err(Into::into)?.into_watch()?) })
    }
}
