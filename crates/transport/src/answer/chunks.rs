//! The bytes of a body, decompressed, each within its deadline.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_ENCODING;
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
    limit: Duration,
    phase: Phase,
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
        let gunzip = match response.headers().get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
            None | Some(b"" | b"identity") => None,
            Some(b"gzip") => Some(Gunzip::default()),
            Some(other) => {
                let name = String::from_utf8_lossy(other);
                let problem = format!("content encoding {name:?} is not known");
                return Err(TransportError::Compression { problem });
            }
        };
        let deadline = Box::pin(tokio::time::sleep(limit));
        Ok(Self { body: response.into_body(), gunzip, deadline, limit, phase })
    }

    /// The next piece.
    pub(super) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        loop {
            if let Some(gunzip) = &mut self.gunzip
                && let Some(result) = gunzip.next().transpose()
            {
                return Poll::Ready(Some(result.map_err(Into::into)));
            }
            // Data first: a reader that was slow itself must not take its own delay for the server's.
            let Poll::Ready(piece) = self.body.poll_data(cx) else {
                ready!(self.deadline.as_mut().poll(cx));
                let (phase, limit) = (self.phase, self.limit);
                return Poll::Ready(Some(Err(TransportError::Timeout { phase, limit }.into())));
            };
            let piece = match piece {
                None => {
                    let end = self.gunzip.as_mut().map_or(Ok(()), Gunzip::finish);
                    return Poll::Ready(end.err().map(|error| Err(error.into())));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(piece)) => piece,
            };
            if self.phase == Phase::Body {
                self.deadline.as_mut().reset(Instant::now() + self.limit.min(FOREVER));
            }
            match &mut self.gunzip {
                Some(gunzip) => gunzip.push(piece),
                None => return Poll::Ready(Some(Ok(piece))),
            }
        }
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
