//! Any service of HTTP as the bottom of the stack.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use kubestrata_api_types::BoxError;
use tower::Service;

use crate::config::Timeouts;
use crate::error::{Phase, TransportError};
use crate::wire::{
    HttpFuture, HttpRequest, HttpResponse, Purpose, RequestBody, ResponseBody, tell, within,
};

/// Gives the service below the deadlines that connections have, and its bodies and errors our types.
#[derive(Debug, Clone)]
pub(super) struct InProcess<S> {
    inner: S,
    timeouts: Timeouts,
}

impl<S> InProcess<S> {
    pub(super) fn new(inner: S, timeouts: Timeouts) -> Self {
        Self { inner, timeouts }
    }
}

impl<S, B> Service<HttpRequest> for InProcess<S>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<B>>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = HttpResponse;
    type Error = TransportError;
    type Future = HttpFuture;

    /// Always ready: the service below is waited for where there is a deadline.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest) -> HttpFuture {
        let limit = Purpose::of(&request).answer_limit(&self.timeouts);
        let (mut inner, wait) = (self.inner.clone(), self.timeouts.wait);
        Box::pin(async move {
            tell(&request, Phase::Wait);
            let ready = std::future::poll_fn(|cx| inner.poll_ready(cx));
            within(Phase::Wait, wait, ready)
                .await?
                .map_err(|error| TransportError::Service(error.into()))?;
            tell(&request, Phase::Answer);
            let response = within(Phase::Answer, limit, inner.call(request))
                .await?
                .map_err(|error| TransportError::Service(error.into()))?;
            Ok(response.map(|body| {
                ResponseBody::new(body.map_err(|error| TransportError::Body(error.into()).into()))
            }))
        })
    }
}
