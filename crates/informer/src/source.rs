//! A shared source of objects.

use std::sync::Arc;

use kubestrata_api_types::{
    BoxError, BoxFuture, Collection, ListOptions, ListStream, ListWatch, WatchOptions, WatchStream,
};

/// One `ListWatch` for many reflectors.
pub(crate) struct Source<T>(pub(crate) Arc<dyn ListWatch<T>>);

impl<T> Clone for Source<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: 'static> ListWatch<T> for Source<T> {
    fn list(
        &self,
        collection: &Collection,
        options: ListOptions,
    ) -> BoxFuture<Result<ListStream<T>, BoxError>> {
        self.0.list(collection, options)
    }

    fn watch(
        &self,
        collection: &Collection,
        options: WatchOptions,
    ) -> BoxFuture<Result<WatchStream<T>, BoxError>> {
        self.0.watch(collection, options)
    }
}
