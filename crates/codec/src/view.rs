//! Reading one field from an object's bytes.

mod json;
mod pick;
mod protobuf;
pub(crate) mod serialize;

use kubestrata_api_types::{FieldPath, Format, Segment, ViewError};
use serde_json::Value;

use crate::{Encoded, decode};

/// Calls `out` for each value at `path`.
pub(crate) fn field(
    object: &Encoded,
    path: &FieldPath,
    out: &mut dyn FnMut(&str),
) -> Result<(), ViewError> {
    // The head knows where the metadata is: no need to look for it.
    let in_metadata = match path.segments().split_first() {
        Some((Segment::Field(first), rest)) if **first == *"metadata" => Some(rest),
        _ => None,
    };
    let (metadata, offset) = object.metadata_bytes();
    if in_metadata.is_some() && metadata.is_empty() {
        return Ok(());
    }
    match (object.format(), in_metadata) {
        (Format::Json, Some(rest)) => json::field(object.bytes(), offset, rest, out)
            .map_err(|error| ViewError::new(path, error.to_string())),
        (Format::Json, None) => json::field(object.bytes(), 0, path.segments(), out)
            .map_err(|error| ViewError::new(path, error.to_string())),
        (Format::Protobuf, Some(rest)) => protobuf::metadata(metadata, rest, out)
            .map_err(|error| ViewError::new(path, decode::proto_problem(&error))),
        (Format::Protobuf, None) => {
            protobuf::field(object.resource(), object.bytes(), path.segments(), out)
                .map_err(|error| ViewError::new(path, decode::proto_problem(&error)))
        }
    }
}

/// The same on a JSON value.
pub(crate) fn value(value: &Value, path: &[Segment], out: &mut dyn FnMut(&str)) {
    match (path.split_first(), value) {
        (None, Value::String(text)) => out(text),
        (None, Value::Bool(_) | Value::Number(_)) => out(&value.to_string()),
        (Some((Segment::Field(name), rest)), Value::Object(members)) => {
            if let Some(member) = members.get(&**name) {
                self::value(member, rest, out);
            }
        }
        (Some((Segment::All, rest)), Value::Object(members)) => {
            members.values().for_each(|member| self::value(member, rest, out));
        }
        (Some((Segment::All, rest)), Value::Array(elements)) => {
            elements.iter().for_each(|element| self::value(element, rest, out));
        }
        _ => {}
    }
}
