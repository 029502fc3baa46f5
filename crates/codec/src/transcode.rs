//! Between protobuf and JSON text without a Rust type, by the table of [`schema`](crate::schema).
//!
//! [`to_json`] writes what the Go encoders write, byte for byte: fields in the order of the Go struct, null for an absent
//! list that is not `omitempty`, `<`, `>` and `&` escaped. [`to_protobuf`] writes what they write for the object that
//! their JSON decoder makes of the text: zero values in, maps sorted, quantities canonical. Neither builds a tree.
//!
//! Lists are messages like any other; for streams of items see [`collection`](crate::collection).

mod from_json;
mod text;
mod to_json;

use std::borrow::Cow;

use crate::proto::value::Context;
use crate::proto::{Error, Lost, Options};
use crate::schema::Message;

/// Writes the bare message `bytes` as JSON text to the end of `out`.
///
/// `options` give `apiVersion` and `kind`, which come first, and may skip `managedFields`. Fields that the table does not
/// know are left out and counted.
///
/// # Errors
///
/// [`Error`] if the bytes are malformed or nest too deep, or hold a value that JSON cannot show. `out` then ends in a part
/// of the text.
///
/// ```
/// use kubestrata_codec::{proto, schema, transcode};
///
/// let message = schema::kind("", "v1", "ConfigMap").unwrap();
/// let bytes = b"\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v";
/// let mut text = Vec::new();
/// transcode::to_json(bytes, message, &proto::Options::of("v1", "ConfigMap"), &mut text)?;
/// assert_eq!(
///     String::from_utf8(text).unwrap(),
///     r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}"#
/// );
/// # Ok::<(), proto::Error>(())
/// ```
pub fn to_json(
    bytes: &[u8],
    message: &'static Message,
    options: &Options<'_>,
    out: &mut Vec<u8>,
) -> Result<Lost, Error> {
    let context = Context::new(bytes, options);
    to_json::root(&context, message, bytes, out)?;
    Ok(context.lost())
}

/// What JSON text said beside what the message holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notes<'a> {
    /// `apiVersion`, if the text has it.
    pub api_version: Option<Cow<'a, str>>,
    /// `kind`, if the text has it.
    pub kind: Option<Cow<'a, str>>,
    /// Paths of fields that the schema lacks, at most 32. They are not in the message: the server's default; a request
    /// with `fieldValidation=Strict` is refused for them.
    pub unknown: Vec<String>,
    /// Paths of fields that occur more than once, at most 32. The last one counts.
    pub duplicate: Vec<String>,
}

/// Writes JSON text as the bare message to the end of `out`.
///
/// # Errors
///
/// [`Error`] if the text is malformed, nests too deep, or holds a value that does not fit its field. `out` is then as it
/// was.
///
/// ```
/// use kubestrata_codec::{schema, transcode};
///
/// let message = schema::kind("", "v1", "Pod").unwrap();
/// let text = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"nodes":1}}"#;
/// let mut bytes = Vec::new();
/// let notes = transcode::to_protobuf(text, message, &mut bytes)?;
/// assert_eq!(notes.kind.as_deref(), Some("Pod"));
/// assert_eq!(notes.unknown, ["spec.nodes"]);
/// # Ok::<(), kubestrata_codec::proto::Error>(())
/// ```
pub fn to_protobuf<'a>(
    json: &'a [u8],
    message: &'static Message,
    out: &mut Vec<u8>,
) -> Result<Notes<'a>, Error> {
    from_json::root(json, message, out)
}

#[cfg(test)]
mod tests;
