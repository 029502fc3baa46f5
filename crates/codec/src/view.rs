//! Reading one field from an object's bytes.

mod json;

use kubestrata_api_types::{FieldPath, Format, Segment, ViewError};

use serde_json::Value;

use crate::Encoded;

/// Calls `out` for each value at `path`.
pub(crate) fn field(
    object: &Encoded,
    path: &FieldPath,
    out: &mut dyn FnMut(&str),
) -> Result<(), ViewError> {
    let result = match object.format() {
        Format::Json => {
            let (metadata, offset) = object.metadata_bytes();
            match path.segments().split_first() {
                // The head knows where the metadata is: no need to look for it.
                Some((Segment::Field(first), rest)) if **first == *"metadata" => {
                    if metadata.is_empty() {
                        return Ok(());
                    }
                    json::field(object.bytes(), offset, rest, out)
                }
                _ => json::field(object.bytes(), 0, path.segments(), out),
            }
        }
        Format::Protobuf => {
            return Err(ViewError::new(path, "protobuf is not read"));
        }
    };
    result.map_err(|error| ViewError::new(path, error.to_string()))
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
