//! Chunks of a streamed answer.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::body::{CHUNK_BYTES, SLICE_BYTES};

/// Collects small parts into chunks, and passes large ones on as they are.
#[derive(Debug, Default)]
pub(crate) struct Out {
    ready: VecDeque<Bytes>,
    buffer: BytesMut,
}

impl Out {
    pub(crate) fn put(&mut self, part: &[u8]) {
        self.buffer.extend_from_slice(part);
    }

    /// A part that is shared with the store, from `skip` on.
    pub(crate) fn put_shared(&mut self, part: &Bytes, skip: usize) {
        if part.len() - skip < SLICE_BYTES {
            self.put(&part[skip..]);
        } else {
            self.cut();
            self.ready.push_back(part.slice(skip..));
        }
    }

    fn cut(&mut self) {
        if !self.buffer.is_empty() {
            self.ready.push_back(self.buffer.split().freeze());
        }
    }

    /// Whether enough has come together.
    pub(crate) fn is_full(&self) -> bool {
        !self.ready.is_empty() || self.buffer.len() >= CHUNK_BYTES
    }

    /// The next chunk, a short one too.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() {
            self.cut();
        }
        self.ready.pop_front()
    }
}
