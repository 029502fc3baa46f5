//! The bytes of a body, decompressed, each within its deadline.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_ENCODING;
use kubestrata_telemetry::Histogram;
use tokio::time::{Instant, Sleep};

use super::gunzip::Gunzip;
use crate::config::Timeouts;
use crate::error::{Phase, TransportError};
use crate::wire::{HttpResponse, ResponseBody};
use kubestrata_api_types::{BoxError, FOREVER};

/// The body of one answer. After an error or the end nothing more comes.
pub(crate) struct Chunks {
    body: ResponseBody,
    gunzip: Option<Gunzip>,
    deadline: Pin<Box<Sleep>>,
    /// How long the next piece may take, or the whole of a watch.
    limit: Duration,
    phase: Phase,
    /// Since when the next piece has been waited for, and until when, if that is counted.
    waiting: Option<(Instant, Option<Arc<Called>>)>,
    /// How long all pieces may be waited for together: the limit that is told, and what is left of it.
    whole: Option<(Duration, Duration)>,
    size: Size,
}

/// When the server had something for a reader that waited. The reader may come much later, which is not the server's time.
struct Called {
    reader: Waker,
    at: OnceLock<Instant>,
}

impl Wake for Called {
    fn wake(self: Arc<Self>) {
        self.at.get_or_init(Instant::now);
        self.reader.wake_by_ref();
    }
}

/// Bytes that came, told when all is over, however it ended.
#[derive(Default)]
struct Size {
    bytes: u64,
    to: Option<Histogram>,
}

impl Drop for Size {
    fn drop(&mut self) {
        if let Some(to) = &self.to {
            #[expect(clippy::cast_precision_loss, reason = "a size is not that large")]
            to.observe(self.bytes as f64);
        }
    }
}

impl Chunks {
    /// A body that ends by itself: each piece has its own deadline.
    ///
    /// # Errors
    ///
    /// The body is encoded in a way that was not asked for.
    pub(crate) fn plain(
        response: HttpResponse,
        timeouts: &Timeouts,
    ) -> Result<Self, TransportError> {
        Self::new(response, Phase::Body, timeouts.body)
    }

    /// A watch: the whole of it has one deadline, as silence means nothing.
    ///
    /// # Errors
    ///
    /// The body is encoded in a way that was not asked for.
    pub(super) fn watch(response: HttpResponse, life: Duration) -> Result<Self, TransportError> {
        Self::new(response, Phase::WatchEnd, life)
    }

    fn new(response: HttpResponse, phase: Phase, limit: Duration) -> Result<Self, TransportError> {
        let encoding = response.headers().get(CONTENT_ENCODING).map(|value| value.as_bytes());
        let gunzip = match encoding.unwrap_or_default() {
            b"" | b"identity" => None,
            name if name.eq_ignore_ascii_case(b"gzip") => Some(Gunzip::default()),
            other => {
                let name = String::from_utf8_lossy(other);
                let problem = format!("content encoding {name:?} is not known");
                return Err(TransportError::Compression { problem });
            }
        };
        let deadline = Box::pin(tokio::time::sleep(limit));
        let (body, size) = (response.into_body(), Size::default());
        Ok(Self { body, gunzip, deadline, limit, phase, waiting: None, whole: None, size })
    }

    /// The same; of `limit` for the whole, this much is left. Only waiting for the server counts.
    pub(super) fn whole(mut self, limit: Duration, left: Duration) -> Self {
        self.whole = Some((limit, left));
        self
    }

    /// The same; its size goes there in the end.
    pub(super) fn measured(mut self, to: Option<Histogram>) -> Self {
        self.size.to = to;
        self
    }

    /// The next piece.
    pub(super) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        let piece = ready!(self.poll_piece(cx));
        if let Some(Ok(piece)) = &piece {
            self.size.bytes += piece.len() as u64;
        }
        Poll::Ready(piece)
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        loop {
            if let Some(gunzip) = &mut self.gunzip
                && let Some(result) = gunzip.next().transpose()
            {
                return Poll::Ready(Some(result.map_err(Into::into)));
            }
            // Data first: a reader that was slow itself must not take its own delay for the server's.
            let called = self.called(cx);
            let piece = match &called {
                None => self.body.poll_data(cx),
                Some(called) => {
                    let waker = Waker::from(Arc::clone(called));
                    self.body.poll_data(&mut Context::from_waker(&waker))
                }
            };
            let Poll::Ready(piece) = piece else {
                return self.poll_deadline(cx, called).map(|error| Some(Err(error.into())));
            };
            if let (Some((since, called)), Some((_, left))) = (self.waiting.take(), &mut self.whole)
            {
                let until = called.and_then(|called| called.at.get().copied());
                *left = left.saturating_sub(until.unwrap_or_else(Instant::now) - since);
            }
            let piece = match piece {
                None => {
                    let end = self.gunzip.as_mut().map_or(Ok(()), Gunzip::finish);
                    return Poll::Ready(end.err().map(|error| Err(error.into())));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(piece)) => piece,
            };
            match &mut self.gunzip {
                Some(gunzip) => gunzip.push(piece),
                None => return Poll::Ready(Some(Ok(piece))),
            }
        }
    }

    /// What calls the reader back, if its time counts.
    fn called(&self, cx: &Context<'_>) -> Option<Arc<Called>> {
        self.whole?;
        match &self.waiting {
            Some((_, Some(called)))
                if called.at.get().is_none() && called.reader.will_wake(cx.waker()) =>
            {
                Some(Arc::clone(called))
            }
            _ => Some(Arc::new(Called { reader: cx.waker().clone(), at: OnceLock::new() })),
        }
    }

    /// Waits for the end of patience with the next piece.
    fn poll_deadline(
        &mut self,
        cx: &mut Context<'_>,
        called: Option<Arc<Called>>,
    ) -> Poll<TransportError> {
        let left = self.whole.map_or(FOREVER, |(_, left)| left);
        if let Some((_, last)) = &mut self.waiting {
            // What it was called for the last time was nothing: the wait goes on.
            *last = called;
        } else if self.phase == Phase::Body {
            let now = Instant::now();
            self.waiting = Some((now, called));
            self.deadline.as_mut().reset(now + self.limit.min(left).min(FOREVER));
        }
        ready!(self.deadline.as_mut().poll(cx));
        let (phase, limit) = (self.phase, self.limit);
        Poll::Ready(match self.whole {
            Some((whole, left)) if left <= limit => {
                TransportError::Deadline { phase, limit: whole }
            }
            _ => TransportError::Timeout { phase, limit },
        })
    }

    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// The whole body.
    ///
    /// # Errors
    ///
    /// It breaks off, hangs, or has more than `limit` bytes.
    pub(crate) async fn collect(mut self, limit: usize) -> Result<Bytes, BoxError> {
        // A body in one piece is passed on as it is.
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        let mut all = BytesMut::new();
        let mut size = first.len();
        let mut last = Some(first);
        while size <= limit {
            match self.next().await.transpose()? {
                None if all.is_empty() => return Ok(last.unwrap_or_default()),
                None => return Ok(all.freeze()),
                Some(piece) => {
                    if let Some(first) = last.take() {
                        all.extend_from_slice(&first);
                    }
                    size += piece.len();
                    all.extend_from_slice(&piece);
                }
            }
        }
        Err(TransportError::TooLarge { limit }.into())
    }

    /// What can be had of the body, up to `limit` bytes.
    pub(super) async fn prefix(mut self, limit: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(Ok(piece)) = self.next().await {
            let room = limit - all.len();
            all.extend_from_slice(&piece[..piece.len().min(room)]);
            if all.len() == limit {
                break;
            }
        }
        all
    }
}
