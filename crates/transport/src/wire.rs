//! The HTTP that the layers of this crate pass to each other.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use kubestrata_api_types::{BoxError, BoxFuture};

use crate::config::Timeouts;
use crate::error::{Phase, TransportError};

pub(crate) type HttpRequest = http::Request<RequestBody>;
pub(crate) type HttpResponse = http::Response<ResponseBody>;
pub(crate) type HttpFuture = BoxFuture<Result<HttpResponse, TransportError>>;

/// The body of a request: at most one piece, so that a clone is a reference count.
#[derive(Clone, Default)]
pub struct RequestBody(Option<Bytes>);

impl RequestBody {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self((!bytes.is_empty()).then_some(bytes))
    }
}

/// Shows the size, never the contents.
impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestBody({} bytes)", self.0.as_ref().map_or(0, Bytes::len))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, Bytes::len) as u64)
    }
}

/// The body of an answer, from whatever service it came.
pub(crate) struct ResponseBody(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>);

impl ResponseBody {
    pub(crate) fn new(body: impl Body<Data = Bytes, Error = BoxError> + Send + 'static) -> Self {
        Self(Box::pin(body))
    }

    /// The next piece of data, passing over trailers.
    pub(crate) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        loop {
            match std::task::ready!(self.0.as_mut().poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
            }
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseBody")
    }
}

/// What a request does, as far as deadlines, connections and retries must know. Travels in its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Reads something that ends by itself.
    Read,
    /// Follows changes; the stream may live this long.
    Watch { life: Duration },
    /// Changes something, or may.
    Write,
}

impl Purpose {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        // What nobody has marked is taken for the most delicate.
        request.extensions().get().copied().unwrap_or(Self::Write)
    }

    pub(crate) fn is_read(self) -> bool {
        !matches!(self, Self::Write)
    }

    pub(crate) fn is_watch(self) -> bool {
        matches!(self, Self::Watch { .. })
    }

    /// How long the head of the answer may take.
    pub(crate) fn answer_limit(self, timeouts: &Timeouts) -> Duration {
        if self.is_watch() { timeouts.watch_answer } else { timeouts.answer }
    }
}

/// Runs `future` for at most `limit`. Cancel-safe if `future` is.
pub(crate) async fn within<T>(
    phase: Phase,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Result<T, TransportError> {
    tokio::time::timeout(limit, future).await.map_err(|_| TransportError::Timeout { phase, limit })
}
