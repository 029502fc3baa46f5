//! The end of a message or map: its parts in the order of the wire.

use super::{Close, Open, Writer};
use crate::proto::value::map_entry;
use crate::proto::{put, wire};
use crate::schema::{Message, Type};

/// Room for the zero values of a message.
const ZEROS: usize = 128;

/// Where the entries of one field stand in the buffer; empty if there are none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Piece {
    pub(super) const ABSENT: Self = Self { start: 0, end: 0 };
}

impl Writer {
    /// Puts the pieces of a message into the order of the wire, with its head before them.
    pub(super) fn arrange(&mut self, message: &Message, open: &Open) {
        self.scratch.clear();
        self.scratch.reserve(self.out.len() - open.start + ZEROS);
        let pieces = &self.pieces[open.first..];
        match message.written() {
            Some(written) => {
                emit(message, open.seen | written, pieces, &self.out, &mut self.scratch);
            }
            None => unfolded(message, &mut pieces.iter(), &self.out, &mut self.scratch),
        }
        self.pieces.truncate(open.first);
        self.out.truncate(open.start);
        match open.close {
            Close::Entry(number) | Close::Schema { inner: number, .. } => {
                put::bytes(&mut self.out, number, &self.scratch);
            }
            _ => self.out.extend_from_slice(&self.scratch),
        }
    }

    /// Puts the entries of a map into the order of their keys, the last of each key alone.
    #[cold]
    pub(super) fn sort(&mut self, ty: Type, open: &Open) {
        let mut entries = Vec::with_capacity(open.count);
        let mut rest = &self.out[open.start..];
        // What was written just now can be read.
        while let (start, Ok((_, value))) = (rest, wire::entry(&mut rest)) {
            let key = map_entry(ty, value).map_or(&[][..], |(key, _)| key);
            entries.push((key, &start[..start.len() - rest.len()]));
        }
        // Stable, so that the last of equal keys stays the last.
        entries.sort_by_key(|(key, _)| *key);
        self.scratch.clear();
        for (index, (key, entry)) in entries.iter().enumerate() {
            if entries.get(index + 1).is_none_or(|(next, _)| next != key) {
                self.scratch.extend_from_slice(entry);
            }
        }
        self.out.truncate(open.start);
        self.out.extend_from_slice(&self.scratch);
    }
}

/// Copies the pieces of a message, with zero values between them, of the fields at `places`.
fn emit(message: &Message, mut places: u64, pieces: &[Piece], from: &[u8], to: &mut Vec<u8>) {
    while places != 0 {
        let place = places.trailing_zeros();
        places &= places - 1;
        match pieces.get(place as usize) {
            Some(piece) if piece.end > piece.start => copy(*piece, from, to),
            _ => {
                if let Some(field) = message.by_place(place as u8) {
                    put::absent(to, field);
                }
            }
        }
    }
}

/// The same for a message that has others inlined, each of which the wire has as a message.
fn unfolded(
    message: &Message,
    pieces: &mut std::slice::Iter<'_, Piece>,
    from: &[u8],
    to: &mut Vec<u8>,
) {
    for field in message.by_wire_order() {
        if let (true, Some(inner)) = (field.is_inline(), field.message()) {
            let payload = put::open(to, field.number());
            unfolded(inner, pieces, from, to);
            put::close(to, payload);
            continue;
        }
        match pieces.next() {
            Some(piece) if piece.end > piece.start => copy(*piece, from, to),
            _ => put::absent(to, field),
        }
    }
}

/// Most pieces are short, and a copy of a fixed size, of which the rest is dropped, is faster than one of any size.
#[inline]
fn copy(piece: Piece, from: &[u8], to: &mut Vec<u8>) {
    const SHORT: usize = 16;
    let length = piece.end - piece.start;
    match from[piece.start..].first_chunk::<SHORT>() {
        Some(chunk) if length <= SHORT => {
            let end = to.len() + length;
            to.extend_from_slice(chunk);
            to.truncate(end);
        }
        _ => to.extend_from_slice(&from[piece.start..piece.end]),
    }
}
