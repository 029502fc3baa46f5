//! Watch events as a server writes them, around objects that are encoded already.
//!
//! A frame is `head`, the object's bytes, `tail`: a server that keeps each object encoded sends the three without
//! copying the object. The bytes are those of Go's encoders.

use kubestrata_api_types::{Format, ResourceType};

use crate::{envelope, wire};

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these five")]
pub enum EventType {
    /// `ADDED`
    Added,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
    /// `BOOKMARK`
    Bookmark,
    /// `ERROR`: the object is a Status.
    Error,
}

impl EventType {
    /// The type as the wire has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// What stands before a JSON object.
pub fn json_head(event: EventType) -> &'static [u8] {
    match event {
        EventType::Added => br#"{"type":"ADDED","object":"#,
        EventType::Modified => br#"{"type":"MODIFIED","object":"#,
        EventType::Deleted => br#"{"type":"DELETED","object":"#,
        EventType::Bookmark => br#"{"type":"BOOKMARK","object":"#,
        EventType::Error => br#"{"type":"ERROR","object":"#,
    }
}

/// What stands after a JSON object.
pub const JSON_TAIL: &[u8] = b"}\n";

/// What stands before the message of an object of kind `kind` and `length` bytes: the frame's length, and the event and
/// the envelope up to the message.
///
/// # Panics
///
/// If the frame would be 4 GiB or more, which its length prefix cannot say.
pub fn protobuf_head(event: EventType, api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let raw = envelope::head_size(api_version, kind, length) + length + envelope::TAIL.len();
    let extension = wire::field_size(raw);
    let name = event.as_str();
    let frame = wire::field_size(name.len()) + wire::field_size(extension);
    let prefix = u32::try_from(frame).expect("objects are far smaller than 4 GiB");
    let mut out = Vec::with_capacity(4 + frame - length - envelope::TAIL.len());
    out.extend_from_slice(&prefix.to_be_bytes());
    wire::put_bytes(&mut out, 1, name.as_bytes());
    wire::put_head(&mut out, 2, extension);
    wire::put_head(&mut out, 1, raw);
    out.extend_from_slice(&envelope::head(api_version, kind, length));
    out
}

/// What stands after the message.
pub const PROTOBUF_TAIL: &[u8] = &envelope::TAIL;

/// A whole frame, in one piece. `object` is JSON text with kind and apiVersion, or a message without envelope.
///
/// # Panics
///
/// As [`protobuf_head`].
pub fn encode(event: EventType, format: Format, resource: &ResourceType, object: &[u8]) -> Vec<u8> {
    let join = |head: &[u8], tail: &[u8]| [head, object, tail].concat();
    match format {
        Format::Json => join(json_head(event), JSON_TAIL),
        Format::Protobuf => {
            let head = protobuf_head(event, &resource.api_version(), &resource.kind, object.len());
            join(&head, PROTOBUF_TAIL)
        }
    }
}
