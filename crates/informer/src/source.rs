//! A shared source of objects, and whether it has them.

use std::sync::Arc;

use kubestrata_api_types::{
    BoxError, BoxFuture, Collection, ListOptions, ListStream, ListWatch, WatchOptions, WatchStream,
};

use crate::absence::Absence;

/// One `ListWatch` for many reflectors; it notes what the server says of the resource as such.
pub(crate) struct Source<T> {
    pub(crate) inner: Arc<dyn ListWatch<T>>,
    pub(crate) absence: Absence,
}

impl<T: 'static> ListWatch<T> for Source<T> {
    fn list(
        &self,
        collection: &Collection,
        options: ListOptions,
    ) -> BoxFuture<Result<ListStream<T>, BoxError>> {
        self.noted(self.inner.list(collection, options))
    }

    fn watch(
        &self,
        collection: &Collection,
        options: WatchOptions,
    ) -> BoxFuture<Result<WatchStream<T>, BoxError>> {
        self.noted(self.inner.watch(collection, options))
    }
}

impl<T> Source<T> {
    fn noted<R: 'static>(
        &self,
        answer: BoxFuture<Result<R, BoxError>>,
    ) -> BoxFuture<Result<R, BoxError>> {
        let absence = self.absence.clone();
        Box::pin(async move {
            let answer = answer.await;
            absence.answered(answer.as_ref().err().map(|error| &**error as _));
            answer
        })
    }
}
