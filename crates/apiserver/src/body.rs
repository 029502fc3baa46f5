//! Bodies of answers: whole, or a stream of chunks that is made only as it is read.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};
use kubestrata_api_types::BoxError;

/// Chunks of a streamed body are filled to about this size before they are handed on.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

/// A part of an answer of at least this size is handed on as a shared slice; a smaller one is copied into a chunk,
/// because a frame of its own costs more than the copy.
pub(crate) const SLICE_BYTES: usize = 16 << 10;

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>;

/// The body of an answer.
///
/// A list or a watch is a lazy stream: dropping the body ends the work, and no more than one chunk of it is in memory at a time.
pub struct Body(Kind);

enum Kind {
    Whole(Bytes),
    Chunks(Chunks),
}

impl Body {
    /// A body that is there as a whole.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(bytes.into()))
    }

    /// A body that is made as it is read.
    pub(crate) fn chunks(
        stream: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
    ) -> Self {
        Self(Kind::Chunks(Box::pin(stream)))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Kind::Chunks(_) => f.write_str("Body(stream)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Chunks(chunks) => {
                chunks.as_mut().poll_next(cx).map(|next| next.map(|next| next.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Chunks(_) => SizeHint::default(),
        }
    }
}
