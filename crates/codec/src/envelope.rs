//! The envelope of Kubernetes protobuf: `k8s\0` and a `runtime.Unknown`.
//!
//! Fields of `Unknown`: 1 `typeMeta` {1 `apiVersion`, 2 `kind`}, 2 `raw`, 3 `contentEncoding`, 4 `contentType`.

use std::borrow::Cow;

use crate::head::SelfType;
use crate::json::ScanError;
use crate::wire::{self, Reader, Value};

/// The first four bytes of every protobuf body, and of every object inside a watch event.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// What stands after the message: `contentEncoding` and `contentType`, both empty but written.
pub const TAIL: [u8; 4] = [0x1a, 0, 0x22, 0];

/// An opened envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// `group/version` of the object.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its message.
    pub message: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// What the envelope says of its object; nothing where it says nothing.
    pub(crate) fn self_type(&self) -> SelfType<'a> {
        let some = |text: &'a str| (!text.is_empty()).then_some(Cow::Borrowed(text));
        SelfType { api_version: some(self.api_version), kind: some(self.kind) }
    }
}

/// The bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no protobuf envelope: {problem} at byte {offset}")]
#[non_exhaustive]
pub struct EnvelopeError {
    /// Where the problem is.
    pub offset: usize,
    /// What it is.
    pub problem: &'static str,
}

impl From<ScanError> for EnvelopeError {
    fn from(error: ScanError) -> Self {
        Self { offset: error.offset, problem: error.problem }
    }
}

/// Opens an envelope.
///
/// # Errors
///
/// [`EnvelopeError`] if the magic number is missing, the message malformed, or its contents encoded in some further way.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, EnvelopeError> {
    let Some(unknown) = bytes.strip_prefix(&MAGIC) else {
        return Err(EnvelopeError { offset: 0, problem: "no magic number" });
    };
    let mut envelope = Envelope { api_version: "", kind: "", message: &[] };
    let mut reader = Reader::new(unknown);
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(range)) => {
                let mut types = reader.inner(range);
                while let Some(field) = types.next()? {
                    match (field.number, field.value) {
                        (1, Value::Bytes(range)) => envelope.api_version = types.text(range)?,
                        (2, Value::Bytes(range)) => envelope.kind = types.text(range)?,
                        _ => {}
                    }
                }
            }
            (2, Value::Bytes(range)) => envelope.message = &unknown[range],
            (3, Value::Bytes(range)) if !range.is_empty() => {
                return Err(EnvelopeError {
                    offset: range.start + MAGIC.len(),
                    problem: "the contents have an encoding of their own",
                });
            }
            _ => {}
        }
    }
    Ok(envelope)
}

/// What stands before a message of `length` bytes; [`TAIL`] stands after it.
pub fn head(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let types = wire::field_size(api_version.len()) + wire::field_size(kind.len());
    let mut out = Vec::with_capacity(head_size(api_version, kind, length));
    out.extend_from_slice(&MAGIC);
    wire::put_head(&mut out, 1, types);
    wire::put_bytes(&mut out, 1, api_version.as_bytes());
    wire::put_bytes(&mut out, 2, kind.as_bytes());
    wire::put_head(&mut out, 2, length);
    out
}

/// The size of [`head`].
pub(crate) fn head_size(api_version: &str, kind: &str, length: usize) -> usize {
    let types = wire::field_size(api_version.len()) + wire::field_size(kind.len());
    MAGIC.len() + wire::field_size(types) + 1 + wire::varint_size(length as u64)
}

/// A message in its envelope, byte for byte as Go writes it.
pub fn close(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = head(api_version, kind, message.len());
    out.reserve_exact(message.len() + TAIL.len());
    out.extend_from_slice(message);
    out.extend_from_slice(&TAIL);
    out
}
