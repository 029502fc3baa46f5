//! From an object's bytes to Rust values.

use kubestrata_api_types::{Format, Object as _, ObjectMeta, ResourceType, Undecodable};
use serde::de::DeserializeOwned;

use crate::{Encoded, json, proto, schema};

/// Whether the bytes held fields that the type or the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partial(pub(crate) bool);

/// Decodes the whole object.
pub(crate) fn object<K: DeserializeOwned>(object: &Encoded) -> Result<(K, Partial), Undecodable> {
    match object.format() {
        Format::Json => from_json(object, object.bytes(), 0).map(|value| (value, Partial(false))),
        Format::Protobuf => from_protobuf(object),
    }
}

/// Decodes the metadata alone.
pub(crate) fn metadata(object: &Encoded) -> Result<ObjectMeta, Undecodable> {
    let (bytes, offset) = object.metadata_bytes();
    if bytes.is_empty() {
        return Ok(ObjectMeta::default());
    }
    match object.format() {
        Format::Json => from_json(object, bytes, offset),
        Format::Protobuf => {
            proto::from_slice(bytes, schema::object_meta(), &proto::Options::default()).map_err(
                |error| Undecodable {
                    key: object.key(),
                    path: join("metadata", &error.path()),
                    offset: offset + error.offset().unwrap_or_default(),
                    problem: proto_problem(&error),
                },
            )
        }
    }
}

/// Decodes JSON text that starts at `offset` of the object's bytes.
fn from_json<K: DeserializeOwned>(
    object: &Encoded,
    text: &[u8],
    offset: usize,
) -> Result<K, Undecodable> {
    serde_json::from_slice(text).map_err(|error| {
        let offset = offset + offset_of(text, &error);
        // serde_json points at a list or object that does not fit, and behind any other value.
        let at_start = matches!(object.bytes().get(offset), Some(b'{' | b'['));
        let inside = if at_start { offset } else { offset.saturating_sub(1) };
        let path = json::path_at(object.bytes(), inside);
        Undecodable { key: object.key(), path, offset, problem: problem_of(&error) }
    })
}

/// Decodes a message.
fn from_protobuf<K: DeserializeOwned>(object: &Encoded) -> Result<(K, Partial), Undecodable> {
    let resource = object.resource();
    let api_version = resource.api_version();
    let options = proto::Options::of(&api_version, &resource.kind);
    proto::from_slice_lossy(object.bytes(), message_of(resource), &options)
        .map(|(value, lost)| (value, Partial(lost.is_partial())))
        .map_err(|error| Undecodable {
            key: object.key(),
            path: error.path(),
            offset: error.offset().unwrap_or_default(),
            problem: proto_problem(&error),
        })
}

/// The message that objects of this type are on the wire.
///
/// The one thing that servers send as protobuf of kinds that the schema does not know is their metadata. Where metadata
/// was asked for of a kind that it does know, that kind's message serves too: metadata is field 1 of both.
pub(crate) fn message_of(resource: &ResourceType) -> &'static schema::Message {
    schema::resource(resource)
        .or_else(|| schema::kind("meta.k8s.io", "v1", "PartialObjectMetadata"))
        .expect("the table has PartialObjectMetadata")
}

/// What is wrong, without the value that is.
pub(crate) fn proto_problem(error: &proto::Error) -> String {
    match error.problem() {
        proto::Problem::Type(message) => without_contents(message),
        problem => problem.to_string(),
    }
}

fn join(parent: &str, path: &str) -> String {
    match path.chars().next() {
        None => parent.to_owned(),
        Some('[') => format!("{parent}{path}"),
        Some(_) => format!("{parent}.{path}"),
    }
}

/// The offset of an error, which serde_json gives as line and column.
fn offset_of(text: &[u8], error: &serde_json::Error) -> usize {
    let line = error.line().saturating_sub(1);
    let start = memchr::memchr_iter(b'\n', text).nth(line.wrapping_sub(1)).map_or(0, |at| at + 1);
    (start + error.column()).min(text.len())
}

/// What is wrong, without the value that is: serde's messages quote it.
pub(crate) fn problem_of(error: &serde_json::Error) -> String {
    if !error.is_data() {
        return if error.is_eof() { "the text ends early" } else { "malformed JSON" }.to_owned();
    }
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
    without_contents(message)
}

/// A message of serde without the contents that it quotes.
///
/// Only the standard messages are known well enough; of any other, which a type's own `Deserialize` has made, nothing
/// is kept.
pub(crate) fn without_contents(message: &str) -> String {
    if message.starts_with("missing field `") || message.starts_with("duplicate field `") {
        return message.to_owned();
    }
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some(rest) = message.strip_prefix(prefix) {
            let expected = rest.rfind(", expected ").map_or("", |at| &rest[at..]);
            let kind = rest.split(['"', '`', ',']).next().unwrap_or_default().trim_end();
            return format!("{prefix}{kind}{expected}");
        }
    }
    for known in ["unknown field", "unknown variant"] {
        if message.starts_with(known) {
            return known.to_owned();
        }
    }
    "the value does not fit the type".to_owned()
}
