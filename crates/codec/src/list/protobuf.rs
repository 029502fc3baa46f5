//! Lists in protobuf: `k8s\0`, then `Unknown` {1 typeMeta, 2 raw, 3, 4}, with the list's message {1 metadata, 2 items}
//! in `raw`. All lengths come before what they measure, so that items can be read as they arrive.

use std::borrow::Cow;

use bytes::Bytes;
use kubestrata_api_types::{ListMeta, ListPart, ResourceVersion};

use super::{ListDecoder, ListError};
use crate::Encoded;
use crate::envelope::MAGIC;
use crate::input::FRONT;
use crate::json::ScanError;
use crate::wire::{Reader, Value};

/// Where the decoder stands in the bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) enum State {
    /// Before the magic number; goes to `Envelope`.
    #[default]
    Start,
    /// Before a field of the envelope; goes to `Message` at its field 2. The list ends here, with the body.
    Envelope,
    /// Before a field of the list's message, of which so many bytes are left; goes to `Envelope` at its end.
    Message { left: usize },
}

/// The longest tag or length.
const VARINT_MAX: usize = 10;

impl ListDecoder {
    pub(super) fn next_protobuf(&mut self) -> Result<Option<ListPart<Encoded>>, ListError> {
        loop {
            match self.protobuf {
                State::Start => {
                    let Some(magic) = self.input.take(MAGIC.len()) else { return Ok(self.wait()) };
                    if *magic != MAGIC {
                        return Err(Self::malformed(0, "no magic number"));
                    }
                    self.protobuf = State::Envelope;
                }
                State::Envelope => {
                    if !self.envelope_field()? {
                        return Ok(self.wait());
                    }
                }
                State::Message { left: 0 } => {
                    // What may still come in the envelope says nothing about the list.
                    self.protobuf = State::Envelope;
                    if let Some(part) = self.end()? {
                        return Ok(Some(part));
                    }
                }
                State::Message { left } => {
                    let start = self.input.position();
                    let Some(field) = self.field(left)? else { return Ok(self.wait()) };
                    let part = self.message_field(start, &field)?;
                    self.protobuf = State::Message { left: left - field.bytes.len() };
                    if part.is_some() {
                        return Ok(part);
                    }
                }
            }
        }
    }

    /// More must come.
    fn wait<T>(&mut self) -> Option<T> {
        self.input.hold();
        None
    }

    /// Consumes one field of the envelope, but of field 2 only tag and length; `false` if more bytes are needed.
    fn envelope_field(&mut self) -> Result<bool, ListError> {
        let start = self.input.position();
        let Some(head) = self.head(usize::MAX)? else { return Ok(false) };
        if head.number == 2 {
            if self.complete {
                return Err(Self::malformed(start, "a second list in one envelope"));
            }
            if head.wire_type != 2 {
                return Err(Self::malformed(start, "the list is no message"));
            }
            // The kind stands before the list in what every encoder writes; else it is checked behind it.
            self.check_kind()?;
            self.input.take(head.size);
            self.protobuf = State::Message { left: head.length };
            return Ok(true);
        }
        let Some(field) = self.field(usize::MAX)? else { return Ok(false) };
        match field.number {
            1 => {
                self.type_meta(start, &field)?;
                if self.complete {
                    self.check_kind()?;
                }
            }
            3 if !field.contents().is_empty() => {
                return Err(Self::malformed(start, "the contents have an encoding of their own"));
            }
            _ => {}
        }
        Ok(true)
    }

    fn type_meta(&mut self, start: usize, field: &Whole) -> Result<(), ListError> {
        let mut reader = Reader::new(field.contents());
        let mut read = || {
            let (mut api_version, mut kind) = (None, None);
            while let Some(field) = reader.next()? {
                match (field.number, field.value) {
                    (1, Value::Bytes(range)) => api_version = Some(reader.text(range)?.to_owned()),
                    (2, Value::Bytes(range)) => kind = Some(reader.text(range)?.to_owned()),
                    _ => {}
                }
            }
            Ok((api_version, kind))
        };
        let read: Result<_, ScanError> = read();
        let (api_version, kind) = read.map_err(|error| field.malformed(start, error))?;
        self.own.api_version = api_version.map(Cow::Owned);
        self.own.kind = kind.map(Cow::Owned);
        Ok(())
    }

    /// The part that a field of the list's message gives. It starts at `start`.
    fn message_field(
        &mut self,
        start: usize,
        field: &Whole,
    ) -> Result<Option<ListPart<Encoded>>, ListError> {
        match (field.number, field.wire_type) {
            (1, 2) if self.meta_seen => Err(Self::malformed(start, "metadata twice")),
            (1, 2) => {
                let meta = list_meta(field.contents());
                let meta = meta.map_err(|error| field.malformed(start, error))?;
                self.meta_seen = true;
                Ok(Some(ListPart::Meta(meta)))
            }
            (2, 2) => Ok(Some(self.item(field.contents()))),
            (1 | 2, _) => Err(Self::malformed(start, "a field of another wire type")),
            _ => Ok(None),
        }
    }

    /// Takes the next field, once all of it is there. It must fit into `left` bytes.
    fn field(&mut self, left: usize) -> Result<Option<Whole>, ListError> {
        let Some(head) = self.head(left)? else {
            // All that is left is there, and it is no field.
            return if self.input.available() >= left {
                Err(self.malformed_here("a field beyond its message"))
            } else {
                Ok(None)
            };
        };
        let size = head.size.saturating_add(head.length);
        if size > left {
            return Err(self.malformed_here("a field beyond its message"));
        }
        if head.length > self.limits.item_bytes {
            return Err(ListError::TooLarge { limit: self.limits.item_bytes });
        }
        let Head { number, wire_type, size: head_size, .. } = head;
        let bytes = self.input.take(size);
        Ok(bytes.map(|bytes| Whole { number, wire_type, head_size, bytes }))
    }

    /// Tag and length of the field that starts here, if they are all there and within `left` bytes.
    fn head(&self, left: usize) -> Result<Option<Head>, ListError> {
        let mut room = [0; FRONT];
        let front = self.input.front(&mut room);
        let front = &front[..front.len().min(left)];
        let Some((tag, tag_size)) = self.varint(front)? else { return Ok(None) };
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number != 0);
        let number = number.ok_or_else(|| self.malformed_here("no field has this number"))?;
        let (size, length) = match tag & 7 {
            0 => match self.varint(&front[tag_size..])? {
                Some((_, size)) => (tag_size + size, 0),
                None => return Ok(None),
            },
            1 => (tag_size, 8),
            2 => match self.varint(&front[tag_size..])? {
                Some((length, size)) => {
                    (tag_size + size, usize::try_from(length).unwrap_or(usize::MAX))
                }
                None => return Ok(None),
            },
            5 => (tag_size, 4),
            _ => return Err(self.malformed_here("unknown wire type")),
        };
        Ok(Some(Head { number, wire_type: tag & 7, size, length }))
    }

    /// A varint and its size, if it is all there.
    fn varint(&self, rest: &[u8]) -> Result<Option<(u64, usize)>, ListError> {
        let mut number = 0_u64;
        for (index, byte) in rest.iter().take(VARINT_MAX).enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                return Ok(Some((number, index + 1)));
            }
        }
        if rest.len() < VARINT_MAX {
            Ok(None)
        } else {
            Err(self.malformed_here("number of more than 64 bits"))
        }
    }
}

/// Tag and length of a field.
struct Head {
    number: u32,
    wire_type: u64,
    /// Of tag and length together; of a varint field, of all of it.
    size: usize,
    /// Of the contents.
    length: usize,
}

/// A field that is all there.
struct Whole {
    number: u32,
    wire_type: u64,
    /// Of tag and length.
    head_size: usize,
    bytes: Bytes,
}

impl Whole {
    fn contents(&self) -> &[u8] {
        &self.bytes[self.head_size..]
    }

    /// Makes an error of the list's text out of one of the contents. `start` is where the field starts.
    fn malformed(&self, start: usize, error: ScanError) -> ListError {
        ListDecoder::malformed(start + self.head_size + error.offset, error.problem)
    }
}

/// Fields of `ListMeta`: 1 selfLink, 2 resourceVersion, 3 continue, 4 remainingItemCount.
fn list_meta(bytes: &[u8]) -> Result<ListMeta, ScanError> {
    let mut meta = ListMeta::default();
    let mut reader = Reader::new(bytes);
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (2, Value::Bytes(range)) => {
                meta.resource_version = ResourceVersion::new(reader.text(range)?);
            }
            (3, Value::Bytes(range)) => {
                let token = reader.text(range)?;
                meta.continue_token = (!token.is_empty()).then(|| token.to_owned());
            }
            (4, Value::Varint(count)) => {
                meta.remaining_item_count = count.cast_signed().try_into().ok();
            }
            (2..=4, _) => {
                let problem = "a field of another wire type";
                return Err(ScanError { offset: field.span.start, problem });
            }
            _ => {}
        }
    }
    Ok(meta)
}
