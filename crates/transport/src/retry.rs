//! The tower layer that tries again, by client-go's rules.

use std::task::{Context, Poll};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::config::Retry;
use crate::error::TransportError;
use crate::wire::{HttpFuture, HttpRequest, HttpResponse, Purpose};

/// See [`Retry`].
#[derive(Debug, Clone)]
pub(crate) struct RetryLayer(pub(crate) Retry);

impl<S> Layer<S> for RetryLayer {
    type Service = RetryService<S>;

    fn layer(&self, inner: S) -> RetryService<S> {
        RetryService { inner, policy: self.0 }
    }
}

/// See [`RetryLayer`].
#[derive(Debug, Clone)]
pub(crate) struct RetryService<S> {
    inner: S,
    policy: Retry,
}

impl<S> Service<HttpRequest> for RetryService<S>
where
    S: Service<HttpRequest, Response = HttpResponse, Error = TransportError>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = HttpResponse;
    type Error = TransportError;
    type Future = HttpFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: HttpRequest) -> HttpFuture {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let policy = self.policy;
        Box::pin(async move {
            let (started, purpose) = (Instant::now(), Purpose::of(&request));
            let mut retries = 0;
            loop {
                if retries > 0 {
                    std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
                }
                let result = inner.call(request.clone()).await;
                let Some(wait) = wait(&policy, purpose, &result) else { return result };
                let late = started.elapsed().saturating_add(wait) > policy.total;
                if retries == policy.times || wait > policy.wait || late {
                    return result;
                }
                retries += 1;
                tracing::debug!(retries, ?wait, path = request.uri().path(), "trying again");
                // The answer is dropped before the wait, so that its connection is free meanwhile.
                drop(result);
                tokio::time::sleep(wait).await;
            }
        })
    }
}

/// How long to wait before the next try; `None` for no other try.
fn wait(
    policy: &Retry,
    purpose: Purpose,
    result: &Result<HttpResponse, TransportError>,
) -> Option<Duration> {
    match result {
        Ok(response) => {
            let status = response.status();
            // client-go `checkWait`: without Retry-After the server does not say that the request did nothing.
            let asks = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
            if asks { retry_after(response.headers()) } else { None }
        }
        // A request whose arrival is not known is repeated only if that changes nothing.
        Err(TransportError::Broken(_)) if purpose.is_read() => Some(policy.broken),
        Err(_) => None,
    }
}

/// `Retry-After` in seconds. The form with a date is not used by API servers, and client-go ignores it too.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}
