//! Lists in protobuf: `k8s\0`, then `Unknown` {1 typeMeta, 2 raw, 3, 4}, with the list's message {1 metadata, 2 items}
//! in `raw`. All lengths come before what they measure, so that items can be read as they arrive.

use std::borrow::Cow;

use kubestrata_api_types::{ListMeta, ListPart, ResourceVersion};

use super::{ListDecoder, ListError};
use crate::Encoded;
use crate::envelope::MAGIC;
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
                    let rest = &self.buffer[self.start..];
                    if rest.len() < MAGIC.len() {
                        return Ok(None);
                    }
                    if !rest.starts_with(&MAGIC) {
                        return Err(self.malformed_here("no magic number"));
                    }
                    self.start += MAGIC.len();
                    self.protobuf = State::Envelope;
                }
                State::Envelope => {
                    if !self.envelope_field()? {
                        return Ok(None);
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
                    let Some(field) = self.field(left)? else { return Ok(None) };
                    let part = self.message_field(&field)?;
                    self.start += field.size;
                    self.protobuf = State::Message { left: left - field.size };
                    if part.is_some() {
                        return Ok(part);
                    }
                }
            }
        }
    }

    /// Consumes one field of the envelope, but of field 2 only tag and length; `false` if more bytes are needed.
    fn envelope_field(&mut self) -> Result<bool, ListError> {
        let rest = &self.buffer[self.start..];
        let Some(head) = self.head(rest)? else { return Ok(false) };
        if head.number == 2 {
            if self.complete {
                return Err(self.malformed_here("a second list in one envelope"));
            }
            if head.wire_type != 2 {
                return Err(self.malformed_here("the list is no message"));
            }
            // The kind stands before the list in what every encoder writes; else it cannot be checked.
            self.check_kind()?;
            self.start += head.size;
            self.protobuf = State::Message { left: head.length };
            return Ok(true);
        }
        let Some(field) = self.field(usize::MAX)? else { return Ok(false) };
        if field.number == 1 {
            self.type_meta(&field)?;
        }
        self.start += field.size;
        Ok(true)
    }

    fn type_meta(&mut self, field: &Whole) -> Result<(), ListError> {
        let contents = self.start + field.contents..self.start + field.size;
        let mut reader = Reader::new(&self.buffer[contents.clone()]);
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
        let (api_version, kind) = read.map_err(|error| self.malformed(contents.start, error))?;
        self.own.api_version = api_version.map(Cow::Owned);
        self.own.kind = kind.map(Cow::Owned);
        Ok(())
    }

    /// The part that a field of the list's message gives.
    fn message_field(&mut self, field: &Whole) -> Result<Option<ListPart<Encoded>>, ListError> {
        let contents = self.start + field.contents..self.start + field.size;
        match (field.number, field.wire_type) {
            (1, 2) if self.meta_seen => Err(self.malformed_here("metadata twice")),
            (1, 2) => {
                let meta = list_meta(&self.buffer[contents.clone()])
                    .map_err(|error| self.malformed(contents.start, error))?;
                self.meta_seen = true;
                Ok(Some(ListPart::Meta(meta)))
            }
            (2, 2) => Ok(Some(self.item(&self.buffer[contents]))),
            (1 | 2, _) => Err(self.malformed_here("a field of another wire type")),
            _ => Ok(None),
        }
    }

    /// The next field, once all of it is there. It must fit into `left` bytes.
    fn field(&self, left: usize) -> Result<Option<Whole>, ListError> {
        let rest = &self.buffer[self.start..];
        let Some(head) = self.head(&rest[..rest.len().min(left)])? else {
            // All that is left is there, and it is no field.
            return if rest.len() >= left {
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
        Ok((rest.len() >= size).then_some(Whole {
            number: head.number,
            wire_type: head.wire_type,
            contents: head.size,
            size,
        }))
    }

    /// Tag and length of the field that starts here, if they are all there.
    fn head(&self, rest: &[u8]) -> Result<Option<Head>, ListError> {
        let Some((tag, tag_size)) = self.varint(rest)? else { return Ok(None) };
        let number = tag >> 3;
        let (size, length) = match tag & 7 {
            0 => match self.varint(&rest[tag_size..])? {
                Some((_, size)) => (tag_size + size, 0),
                None => return Ok(None),
            },
            1 => (tag_size, 8),
            2 => match self.varint(&rest[tag_size..])? {
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

    fn malformed_here(&self, problem: &'static str) -> ListError {
        self.malformed(self.start, ScanError { offset: 0, problem })
    }
}

/// Tag and length of a field.
struct Head {
    number: u64,
    wire_type: u64,
    /// Of tag and length together; of a varint field, of all of it.
    size: usize,
    /// Of the contents.
    length: usize,
}

/// A field that is all there.
struct Whole {
    number: u64,
    wire_type: u64,
    /// Where the contents start in the field.
    contents: usize,
    size: usize,
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
            (4, Value::Varint(count)) => meta.remaining_item_count = Some(count),
            _ => {}
        }
    }
    Ok(meta)
}
