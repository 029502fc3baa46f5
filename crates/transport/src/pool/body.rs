//! The body of an answer that holds its place on the connection until it is read.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use kubestrata_api_types::BoxError;

use super::lane::Reuse as _;
use super::{Http1, Slot};
use crate::error::TransportError;

pub(super) struct PooledBody {
    body: Incoming,
    /// Given back at the end of the body, or when it is dropped before.
    slot: Option<Slot>,
    /// The HTTP/1.1 connection, which can be used again only if the body is read to its end.
    sender: Option<Http1>,
}

impl PooledBody {
    pub(super) fn new(body: Incoming, slot: Slot, sender: Option<Http1>) -> Self {
        let mut this = Self { body, slot: Some(slot), sender };
        if this.body.is_end_stream() {
            this.end();
        }
        this
    }

    fn end(&mut self) {
        if let Some(slot) = self.slot.take() {
            slot.over(self.sender.take().filter(|sender| !sender.is_closed()));
        }
    }
}

impl Body for PooledBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            None => {
                self.end();
                Poll::Ready(None)
            }
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
            Some(Err(error)) => {
                self.sender = None;
                self.slot = None;
                Poll::Ready(Some(Err(TransportError::Body(error.into()).into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
