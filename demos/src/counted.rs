//! A layer that counts what goes over the wire.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use kubestrata_controller::api_types::{Answer, ApiRequest, ApiResponse, BoxError, Verb};
use kubestrata_controller::codec::{Encoded, EncodedService};
use tower::Service;

/// Requests and events so far.
#[derive(Debug, Default)]
pub struct Counts {
    pub live_reads: AtomicU64,
    pub writes: AtomicU64,
    pub watches: AtomicU64,
    pub events: AtomicU64,
}

/// Counts what passes to the service below.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
    counts: Arc<Counts>,
}

impl<S> Counted<S> {
    pub fn new(inner: S) -> Self {
        Self { inner, counts: Arc::default() }
    }

    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }
}

impl<S: EncodedService> Service<ApiRequest> for Counted<S> {
    type Response = ApiResponse<Encoded>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        let counts = Arc::clone(&self.counts);
        let counter = match request.verb() {
            Verb::Get | Verb::List => &counts.live_reads,
            Verb::Watch => &counts.watches,
            _ => &counts.writes,
        };
        // Relaxed: numbers for people, read when all is done.
        counter.fetch_add(1, Ordering::Relaxed);
        let call = self.inner.call(request);
        Box::pin(async move {
            let mut response = call.await.map_err(Into::into)?;
            if let Answer::Watch(events) = response.answer {
                let events = events.inspect(move |_| {
                    counts.events.fetch_add(1, Ordering::Relaxed);
                });
                response.answer = Answer::Watch(Box::pin(events));
            }
            Ok(response)
        })
    }
}
