//! From Rust values to request bodies.

use kubestrata_api_types::{Format, Object, Payload, ResourceType};
use serde::Serialize;

use crate::json::{Cursor, ScanError};
use crate::{envelope, proto, schema};

/// The object cannot be encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// Its `Serialize` failed.
    #[error("the object does not serialize")]
    Serialize(#[source] serde_json::Error),
    /// It does not fit the message of its kind.
    #[error("the object has no protobuf form")]
    Protobuf(#[source] proto::Error),
    /// It serializes to something else than a JSON object.
    #[error("the object does not serialize to a JSON object")]
    NoObject,
    /// The schema has no such kind, so that there is no protobuf of it.
    #[error("kind {kind} of {api_version} has no protobuf")]
    UnknownKind {
        /// The kind.
        kind: String,
        /// Its `apiVersion`.
        api_version: String,
    },
}

impl From<ScanError> for EncodeError {
    fn from(_: ScanError) -> Self {
        Self::NoObject
    }
}

/// Encodes an object as a request body: JSON with `apiVersion` and `kind`, or protobuf in its envelope.
///
/// `apiVersion` and `kind` are added from `resource` if the object does not write them itself.
///
/// # Errors
///
/// [`EncodeError`] if the object does not serialize, or the kind has no protobuf.
pub fn encode<K: Serialize + Object>(
    object: &K,
    resource: &ResourceType,
    format: Format,
) -> Result<Payload, EncodeError> {
    match format {
        Format::Json => json(object, resource),
        Format::Protobuf => protobuf(object, resource),
    }
}

fn protobuf<K: Serialize>(object: &K, resource: &ResourceType) -> Result<Payload, EncodeError> {
    let api_version = resource.api_version();
    let Some(message) = schema::resource(resource) else {
        return Err(EncodeError::UnknownKind {
            kind: resource.kind.to_string(),
            api_version: api_version.into_owned(),
        });
    };
    let bytes = proto::to_vec(object, message).map_err(EncodeError::Protobuf)?;
    Ok(Payload::protobuf(envelope::close(&api_version, &resource.kind, &bytes)))
}

fn json<K: Serialize>(object: &K, resource: &ResourceType) -> Result<Payload, EncodeError> {
    let text = serde_json::to_vec(object).map_err(EncodeError::Serialize)?;
    let mut cursor = Cursor::new(&text, 0, usize::MAX);
    cursor.expect(b'{', "no object")?;
    let (mut has_kind, mut has_api_version, mut first) = (false, false, true);
    while let Some(key) = cursor.key(&mut first)? {
        match &*cursor.text(key)? {
            "kind" => has_kind = true,
            "apiVersion" => has_api_version = true,
            _ => {}
        }
        cursor.value()?;
    }
    if has_kind && has_api_version {
        return Ok(Payload::json(text));
    }
    let mut out = Vec::with_capacity(text.len() + 64);
    out.push(b'{');
    let mut member = |name: &str, value: &str| {
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        serde_json::to_writer(&mut out, value).map_err(EncodeError::Serialize)?;
        out.push(b',');
        Ok::<(), EncodeError>(())
    };
    if !has_kind {
        member("kind", &resource.kind)?;
    }
    if !has_api_version {
        member("apiVersion", &resource.api_version())?;
    }
    // `first` is still set where the object has no member at all.
    if first {
        out.pop();
    }
    out.extend_from_slice(&text[1..]);
    Ok(Payload::json(out))
}
