//! From an object's bytes to Rust values.

use kubestrata_api_types::{Format, Object as _, ObjectMeta, ResourceType, Undecodable};
use serde::de::DeserializeOwned;

use crate::json::noting::{self, NAMES_MAX, Notes, STRING_TOO_LONG};
use crate::limits::Limits;
use crate::{Encoded, json, proto, schema, transcode};

/// Decodes the whole object, and tells how many fields of the bytes the value lacks: the schema or `K` does not know them.
pub(crate) fn object<K: DeserializeOwned>(
    object: &Encoded,
    limits: &Limits,
) -> Result<(K, usize), Undecodable> {
    match object.format() {
        Format::Json => {
            let notes = Notes::counting(limits);
            let value = from_json(object, object.bytes(), 0, &notes)?;
            Ok((value, notes.ignored()))
        }
        Format::Protobuf => from_protobuf(object, limits),
    }
}

/// The paths of what [`object`] counts, at most [`NAMES_MAX`](crate::json::noting::NAMES_MAX) of them.
///
/// This decodes a second time: for the few objects of which somebody wants to know.
pub(crate) fn lost_fields<K: DeserializeOwned>(object: &Encoded) -> Vec<String> {
    let limits = Limits::DEFAULT;
    let notes = Notes::naming(&limits);
    if object.format() == Format::Json {
        // An error has come up the first time already.
        let _: Result<K, _> = noting::from_slice(object.bytes(), &notes);
        return notes.into_names();
    }
    let message = message_of(object.resource());
    let mut names = proto::unknown_fields(object.bytes(), message);
    // What the table knows has JSON names: the type shows by its JSON what it passes over.
    let mut text = Vec::new();
    let options = proto_options(&limits);
    if transcode::to_json(object.bytes(), message, &options, &mut text).is_ok() {
        let _: Result<K, _> = noting::from_slice(&text, &notes);
        names.extend(notes.into_names());
    }
    names.truncate(NAMES_MAX);
    names
}

/// Decodes the metadata alone.
pub(crate) fn metadata(object: &Encoded) -> Result<ObjectMeta, Undecodable> {
    let (bytes, offset) = object.metadata_bytes();
    if bytes.is_empty() {
        return Ok(ObjectMeta::default());
    }
    match object.format() {
        Format::Json => from_json(object, bytes, offset, &Notes::counting(&Limits::DEFAULT)),
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
fn from_json<'de, K: DeserializeOwned>(
    object: &Encoded,
    text: &'de [u8],
    offset: usize,
    notes: &Notes<'de>,
) -> Result<K, Undecodable> {
    noting::from_slice(text, notes).map_err(|error| json_error(object, text, offset, &error))
}

/// Not generic, so that it is compiled once.
#[cold]
fn json_error(
    object: &Encoded,
    text: &[u8],
    offset: usize,
    error: &serde_json::Error,
) -> Undecodable {
    let offset = offset + offset_of(text, error);
    // serde_json points at a list or object that does not fit, and behind any other value.
    let at_start = matches!(object.bytes().get(offset), Some(b'{' | b'['));
    let inside = if at_start { offset } else { offset.saturating_sub(1) };
    let path = json::path_at(object.bytes(), inside);
    Undecodable { key: object.key(), path, offset, problem: problem_of(error) }
}

/// Decodes a message.
fn from_protobuf<K: DeserializeOwned>(
    object: &Encoded,
    limits: &Limits,
) -> Result<(K, usize), Undecodable> {
    let resource = object.resource();
    let api_version = resource.api_version();
    let options = proto::Options {
        api_version: Some(&api_version),
        kind: Some(&resource.kind),
        ..proto_options(limits)
    };
    proto::from_slice_lossy(object.bytes(), message_of(resource), &options)
        .map(|(value, lost)| (value, lost.unknown + lost.ignored))
        .map_err(|error| proto_error(object, &error))
}

#[cold]
fn proto_error(object: &Encoded, error: &proto::Error) -> Undecodable {
    Undecodable {
        key: object.key(),
        path: error.path(),
        offset: error.offset().unwrap_or_default(),
        problem: proto_problem(error),
    }
}

fn proto_options(limits: &Limits) -> proto::Options<'static> {
    let depth = u16::try_from(limits.depth).unwrap_or(u16::MAX).min(proto::DEPTH);
    proto::Options { depth, string_bytes: limits.string_bytes, ..proto::Options::default() }
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

/// What is wrong, without the place.
pub(crate) fn proto_problem(error: &proto::Error) -> String {
    error.problem().to_string()
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
    if message == STRING_TOO_LONG {
        return message.to_owned();
    }
    "the value does not fit the type".to_owned()
}
