//! The HTTP that the layers of this crate pass to each other.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use kubestrata_api_types::{BoxError, BoxFuture, FOREVER};
use tokio::time::Instant;

use crate::config::Timeouts;
use crate::error::{Phase, TransportError};

pub(crate) type HttpRequest = http::Request<RequestBody>;
pub(crate) type HttpResponse = http::Response<ResponseBody>;
pub(crate) type HttpFuture = BoxFuture<Result<HttpResponse, TransportError>>;

/// The body of a request: at most one piece, so that a clone is a reference count.
#[derive(Clone, Default)]
pub struct RequestBody(Option<Bytes>);

impl RequestBody {
    /// A body of these bytes; the default has none.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
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

/// The body of an answer, from whatever service it came. Dropped before its end, it gives the request up.
pub struct ResponseBody(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>);

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

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseBody")
    }
}

/// What a request does, as far as deadlines, connections and retries must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Reads something that ends by itself.
    Read,
    /// Follows changes.
    Watch,
    /// Changes something, or may.
    Write,
}

impl Purpose {
    /// Of a request of this crate, what it was made for; of another, what method and query tell.
    pub(crate) fn of<B>(request: &http::Request<B>) -> Self {
        if let Some(call) = request.extensions().get::<Call>() {
            return call.purpose;
        }
        let reads = matches!(*request.method(), http::Method::GET | http::Method::HEAD);
        match request.uri().query() {
            Some(query) if reads && query.split('&').any(is_watch) => Self::Watch,
            _ if reads => Self::Read,
            // What nobody has marked is taken for the most delicate.
            _ => Self::Write,
        }
    }

    pub(crate) fn is_read(self) -> bool {
        !matches!(self, Self::Write)
    }

    pub(crate) fn is_watch(self) -> bool {
        matches!(self, Self::Watch)
    }

    /// How long the head of the answer may take.
    pub(crate) fn answer_limit(self, timeouts: &Timeouts) -> Duration {
        if self.is_watch() { timeouts.watch_answer } else { timeouts.answer }
    }
}

/// As kube-apiserver reads a boolean parameter: a name alone is true as well.
fn is_watch(parameter: &str) -> bool {
    matches!(parameter, "watch" | "watch=1" | "watch=true")
}

/// One request from its caller's view, through all its tries. Travels in the extensions.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) purpose: Purpose,
    /// When the whole must be over.
    pub(crate) until: Instant,
    pub(crate) progress: Progress,
}

impl Call {
    /// One that begins now, and has this long.
    pub(crate) fn new(purpose: Purpose, limit: Duration) -> Self {
        let until = Instant::now() + limit.min(FOREVER);
        Self { purpose, until, progress: Progress(Arc::new(AtomicU8::new(0))) }
    }

    /// Of the call that `request` is made for, if anybody wants to know.
    pub(crate) fn progress<B>(request: &http::Request<B>) -> Option<Progress> {
        request.extensions().get::<Self>().map(|call| call.progress.clone())
    }
}

/// What a request waits for at the moment: told by the layers that it passes, read when its time is over.
///
/// Relaxed: a number on its own, and whoever reads it polls, or has just dropped, the one who writes.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<AtomicU8>);

/// Phases by their number in a [`Progress`].
const PHASES: [Phase; 7] = [
    Phase::Credentials,
    Phase::Turn,
    Phase::Wait,
    Phase::Connect,
    Phase::Tls,
    Phase::Answer,
    Phase::Body,
];

fn number(phase: Phase) -> u8 {
    let number = PHASES.iter().position(|known| *known == phase).unwrap_or(0);
    u8::try_from(number).unwrap_or(0)
}

impl Progress {
    pub(crate) fn at(&self, phase: Phase) {
        self.0.store(number(phase), Ordering::Relaxed);
    }

    /// The same of a connection that is opened for the request, by a task which may be slower than another that has a place
    /// for it: of a request that has been sent nothing is told any more.
    pub(crate) fn opening(&self, phase: Phase) {
        let _sent = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            let unsent = [Phase::Wait, Phase::Connect, Phase::Tls].map(number);
            unsent.contains(&now).then(|| number(phase))
        });
    }

    pub(crate) fn phase(&self) -> Phase {
        PHASES[usize::from(self.0.load(Ordering::Relaxed))]
    }
}

/// Says what `request` waits for now, if anybody wants to know.
pub(crate) fn tell<B>(request: &http::Request<B>, phase: Phase) {
    if let Some(call) = request.extensions().get::<Call>() {
        call.progress.at(phase);
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
