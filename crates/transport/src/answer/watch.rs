//! The stream of a watch.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use kubestrata_api_types::{BoxError, Collection, Event, Format};
use kubestrata_codec::{Encoded, Limits, WatchDecoder};

use super::Chunks;

/// Events as they come. The body is read no further than the next event, so that a slow consumer slows the server.
pub(super) struct WatchBody {
    chunks: Chunks,
    decoder: WatchDecoder,
    done: bool,
}

impl WatchBody {
    pub(super) fn new(
        chunks: Chunks,
        collection: Collection,
        format: Format,
        limits: Limits,
    ) -> Self {
        Self { chunks, decoder: WatchDecoder::new(collection, format, limits), done: false }
    }

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<Encoded>, BoxError>>> {
        loop {
            if let Some(event) = self.decoder.next()? {
                return Poll::Ready(Some(Ok(event)));
            }
            match ready!(self.chunks.poll_chunk(cx)).transpose()? {
                Some(chunk) => self.decoder.push(chunk),
                None => {
                    self.decoder.finish()?;
                    return Poll::Ready(None);
                }
            }
        }
    }
}

impl Stream for WatchBody {
    type Item = Result<Event<Encoded>, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        let next = ready!(self.poll_event(cx));
        self.done = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}
