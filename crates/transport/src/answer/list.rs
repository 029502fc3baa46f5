//! The stream of a list.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use kubestrata_api_types::{BoxError, Collection, Format, ListPart};
use kubestrata_codec::{Encoded, Limits, ListDecoder};

use super::Chunks;

/// Items as they come, so that a list of any size is never here as a whole.
pub(super) struct ListBody {
    chunks: Chunks,
    decoder: ListDecoder,
    done: bool,
}

impl ListBody {
    pub(super) fn new(
        chunks: Chunks,
        collection: Collection,
        format: Format,
        limits: Limits,
    ) -> Self {
        let decoder = ListDecoder::new(collection, format, limits);
        Self { chunks, decoder, done: false }
    }

    fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<ListPart<Encoded>, BoxError>>> {
        loop {
            if let Some(part) = self.decoder.next()? {
                return Poll::Ready(Some(Ok(part)));
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

impl Stream for ListBody {
    type Item = Result<ListPart<Encoded>, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        let next = ready!(self.poll_part(cx));
        self.done = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}
