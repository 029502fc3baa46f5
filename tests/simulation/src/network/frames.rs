//! What the network must know of a watch's bytes to do harm between frames, and not only within.

use http::response::Parts;
use kubestrata_api_types::{Format, ResourceType, Scope, Status};
use kubestrata_codec::frame::{self, EventType};
use kubestrata_codec::{schema, transcode};

/// The format of an answer.
pub(super) fn format(head: &Parts) -> Format {
    let content_type = head.headers.get("content-type").and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|text| text.contains("protobuf")) {
        Format::Protobuf
    } else {
        Format::Json
    }
}

/// Length of the first frame in `bytes`, if it is complete.
pub(super) fn length(format: Format, bytes: &[u8]) -> Option<usize> {
    match format {
        // The server ends each event with a line feed, and writes none within.
        Format::Json => bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
        Format::Protobuf => {
            let length = u32::from_be_bytes(*bytes.first_chunk::<4>()?) as usize + 4;
            (bytes.len() >= length).then_some(length)
        }
    }
}

/// Whether a frame is a bookmark: its type stands near its start in both formats.
pub(super) fn is_bookmark(frame: &[u8]) -> bool {
    let start = &frame[..frame.len().min(40)];
    start.windows(8).any(|word| word == b"BOOKMARK")
}

/// A status as JSON.
pub(super) fn status_json(status: &Status) -> Vec<u8> {
    serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": status.message,
        "reason": status.reason,
        "code": status.code,
    })
    .to_string()
    .into_bytes()
}

/// An ERROR event.
pub(super) fn error(format: Format, status: &Status) -> Vec<u8> {
    let json = status_json(status);
    let resource = ResourceType::new("", "v1", "Status", "statuses", Scope::Cluster);
    let object = match format {
        Format::Json => json,
        Format::Protobuf => {
            let message = schema::kind_of("v1", "Status").expect("the schema has Status");
            let mut out = Vec::new();
            transcode::to_protobuf(&json, message, &mut out).expect("a status fits its schema");
            out
        }
    };
    frame::encode(EventType::Error, format, &resource, &object)
}
