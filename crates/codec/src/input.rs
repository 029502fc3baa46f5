//! The bytes of a body on their way into a decoder.

use bytes::{Buf as _, Bytes};

use crate::json::{ScanError, Skipper, skip_space};

/// What of a body has arrived and was not taken yet.
///
/// Values that arrive in one piece are read where they are. Only of a value that is cut is the beginning copied, so that
/// no more is held than that, and the sender of a piece has its memory back before it sends the next.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// The beginning of a value, in the pieces in which it came: to join them once, when the value is complete, takes
    /// less memory, and fewer copies, than to make room as they come.
    held: Vec<Vec<u8>>,
    held_bytes: usize,
    chunk: Bytes,
    /// How many bytes were taken.
    position: usize,
    /// How far the JSON value has been looked at that starts here.
    skipper: Option<Skipper>,
}

/// Held pieces below this size take in what comes next: of many small ones each would cost more than it holds.
const SMALL: usize = 512;

/// The longest tag and length.
pub(crate) const FRONT: usize = 20;

/// Why there is no value.
pub(crate) enum BadValue {
    /// It is larger than the limit.
    TooLarge,
    /// It is none; the offset counts from the start of the body.
    Malformed(ScanError),
}

impl Input {
    /// Takes further bytes.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.chunk = if self.chunk.is_empty() {
            chunk
        } else {
            Bytes::from([&self.chunk[..], &chunk].concat())
        };
    }

    /// Lets go of the chunk, and keeps what is left of it: the beginning of a value. More must come.
    pub(crate) fn hold(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        self.held_bytes += chunk.len();
        match self.held.last_mut() {
            Some(last) if last.len() < SMALL || chunk.len() < last.len() / 8 => grow(last, &chunk),
            _ if chunk.is_empty() => {}
            _ => self.held.push(chunk.to_vec()),
        }
    }

    /// How many bytes were taken so far: where the next value starts in the body.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// How many bytes are there.
    pub(crate) fn available(&self) -> usize {
        self.held_bytes + self.chunk.len()
    }

    /// Whether the beginning of a value is held.
    pub(crate) fn is_within_value(&self) -> bool {
        self.held_bytes > 0 || self.skipper.is_some()
    }

    /// The next bytes, all that there are while nothing is held.
    pub(crate) fn rest(&self) -> &[u8] {
        debug_assert!(self.held.is_empty(), "what is held comes first");
        &self.chunk
    }

    /// The first bytes: at least [`FRONT`], or all that are there.
    pub(crate) fn front<'a>(&'a self, room: &'a mut [u8; FRONT]) -> &'a [u8] {
        if self.held.is_empty() {
            return &self.chunk;
        }
        let mut length = 0;
        let pieces = self.held.iter().map(Vec::as_slice).chain([&*self.chunk]);
        for piece in pieces {
            let some = piece.len().min(FRONT - length);
            room[length..length + some].copy_from_slice(&piece[..some]);
            length += some;
        }
        &room[..length]
    }

    /// Passes over bytes, while nothing is held.
    pub(crate) fn skip(&mut self, size: usize) {
        debug_assert!(self.held.is_empty(), "what is held comes first");
        self.chunk.advance(size);
        self.position += size;
    }

    /// The next byte of JSON that is no white space, which is passed over. Not within a value.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip(skip_space(&self.chunk, 0));
        self.chunk.first().copied()
    }

    /// Takes so many bytes, if they are there.
    pub(crate) fn take(&mut self, size: usize) -> Option<Bytes> {
        if self.available() < size {
            return None;
        }
        self.position += size;
        if self.held.is_empty() {
            return Some(self.chunk.split_to(size));
        }
        let mut whole = Vec::with_capacity(size);
        self.held.drain(..).for_each(|piece| whole.extend_from_slice(&piece));
        whole.extend_from_slice(&self.chunk.split_to(size - self.held_bytes));
        self.held_bytes = 0;
        Some(Bytes::from(whole))
    }

    /// Takes the JSON value that starts here, once all of it is there; until then, holds what came. It may nest as deep
    /// as it likes: such an object costs itself alone, when its head is read.
    pub(crate) fn take_value(&mut self, limit: usize) -> Result<Option<Bytes>, BadValue> {
        let skipper = self.skipper.get_or_insert_default();
        let start = self.position + self.held_bytes;
        let end = skipper.find_end(&self.chunk, usize::MAX).map_err(|error| {
            BadValue::Malformed(ScanError { offset: start + error.offset, ..error })
        })?;
        if self.held_bytes + end.unwrap_or(self.chunk.len()) > limit {
            return Err(BadValue::TooLarge);
        }
        let Some(end) = end else {
            skipper.next_piece(self.chunk.len());
            self.hold();
            return Ok(None);
        };
        self.skipper = None;
        Ok(self.take(self.held_bytes + end))
    }
}

/// Appends to a buffer that grows by the piece, or by an eighth of what it holds if that is more.
fn grow(buffer: &mut Vec<u8>, bytes: &[u8]) {
    if buffer.capacity() - buffer.len() < bytes.len() {
        buffer.reserve_exact(bytes.len().max(buffer.len() / 8));
    }
    buffer.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests;
