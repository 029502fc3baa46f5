//! The tower layer that tries again, by client-go's rules.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};
use kubestrata_api_types::{BoxError, BoxFuture, FOREVER, cause_ref};
use kubestrata_telemetry::{Descriptor, Provider};
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::config::Retry;
use crate::error::TransportError;
use crate::observe::NO_ANSWER;
use crate::wire::{Call, Purpose};

const RETRIES: Descriptor = Descriptor {
    name: "rest_client_request_retries_total",
    help: "Number of tries after the first of a request, by status code, method and host.",
};

/// The tower layer that sends a request again, as [`Retry`] says.
///
/// It fits any service of HTTP whose bodies can be cloned, and whose error can tell a broken connection ([`MayBreak`]). A
/// GET or HEAD is a read, one with `watch=true` in its query is a watch, and anything else is a write.
///
/// # Cancel-safety
///
/// Dropping the future gives up the try that is under way, and the wait for the next.
#[derive(Debug, Clone)]
pub struct RetryLayer {
    policy: Retry,
    counted: Option<Arc<Counted>>,
}

/// Where retries are counted.
struct Counted {
    provider: Arc<dyn Provider>,
    host: Arc<str>,
}

impl RetryLayer {
    /// Retries by this policy.
    pub fn new(policy: Retry) -> Self {
        Self { policy, counted: None }
    }

    /// The same, which counts each try after the first as `rest_client_request_retries_total` by code, verb and host;
    /// `host` is the value of that label.
    #[must_use]
    pub fn counted(mut self, provider: Arc<dyn Provider>, host: impl Into<Arc<str>>) -> Self {
        self.counted = Some(Arc::new(Counted { provider, host: host.into() }));
        self
    }
}

impl Counted {
    /// A retry is rare enough for a lookup. `code` is 0 for no answer.
    fn count(&self, method: &Method, code: u16) {
        let text = if code == 0 { NO_ANSWER.to_owned() } else { code.to_string() };
        let labels = [("code", &*text), ("verb", method.as_str()), ("host", &*self.host)];
        self.provider.counter(RETRIES, &labels).increment();
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("host", &self.host).finish_non_exhaustive()
    }
}

/// An error of a service of HTTP that can say whether the connection broke, so that nobody knows whether the request
/// arrived.
pub trait MayBreak {
    /// Whether the connection broke before an answer came (client-go `net.IsConnectionReset`, `IsHTTP2ConnectionLost`,
    /// `IsProbableEOF`).
    fn is_broken(&self) -> bool;
}

impl MayBreak for TransportError {
    fn is_broken(&self) -> bool {
        matches!(self, Self::Broken(_))
    }
}

/// By what is in the chain of sources: an error of this crate, of hyper, or of a socket.
impl MayBreak for BoxError {
    fn is_broken(&self) -> bool {
        if let Some(error) = cause_ref::<TransportError>(&**self) {
            return error.is_broken();
        }
        if cause_ref::<hyper::Error>(&**self).is_some_and(hyper::Error::is_incomplete_message) {
            return true;
        }
        let mut current: Option<&(dyn Error + 'static)> = Some(&**self);
        while let Some(error) = current {
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            if kind.is_some_and(breaks) {
                return true;
            }
            current = error.source();
        }
        false
    }
}

fn breaks(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
    )
}

impl MayBreak for Infallible {
    fn is_broken(&self) -> bool {
        match *self {}
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = RetryService<S>;

    fn layer(&self, inner: S) -> RetryService<S> {
        RetryService { inner, layer: self.clone() }
    }
}

/// See [`RetryLayer`].
#[derive(Debug, Clone)]
pub struct RetryService<S> {
    inner: S,
    layer: RetryLayer,
}

impl<S, B, R> Service<http::Request<B>> for RetryService<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: MayBreak + Send,
    B: Clone + Send + 'static,
    R: Send,
{
    type Response = http::Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<Result<http::Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let RetryLayer { policy, counted } = self.layer.clone();
        Box::pin(async move {
            let (started, purpose) = (Instant::now(), Purpose::of(&request));
            let until = request.extensions().get::<Call>().map(|call| call.until);
            let mut retries = 0;
            loop {
                if retries > 0 {
                    std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
                }
                let result = inner.call(request.clone()).await;
                if let (true, Some(counted)) = (retries > 0, &counted) {
                    let code = result.as_ref().map_or(0, |answer| answer.status().as_u16());
                    counted.count(request.method(), code);
                }
                let Some(wait) = wait(&policy, purpose, &result) else { return result };
                let late = started.elapsed().saturating_add(wait) > policy.total;
                // A refusal tells the caller more than a deadline that passes while we wait.
                let never = until.is_some_and(|until| Instant::now() + wait.min(FOREVER) >= until);
                if retries == policy.times || wait > policy.wait || late || never {
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
fn wait<R, E: MayBreak>(
    policy: &Retry,
    purpose: Purpose,
    result: &Result<http::Response<R>, E>,
) -> Option<Duration> {
    match result {
        Ok(response) => {
            let status = response.status();
            let for_the_caller = match purpose {
                Purpose::Watch => true,
                Purpose::Read => status == StatusCode::GATEWAY_TIMEOUT,
                Purpose::Write => false,
            };
            // client-go `checkWait`: without Retry-After the server does not say that the request did nothing.
            let asks = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
            if asks && !for_the_caller { retry_after(response.headers()) } else { None }
        }
        // A request whose arrival is not known is repeated only if that changes nothing.
        Err(error) if purpose.is_read() && error.is_broken() => Some(policy.broken),
        Err(_) => None,
    }
}

/// `Retry-After` in seconds. The form with a date is not used by API servers, and client-go ignores it too.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}
