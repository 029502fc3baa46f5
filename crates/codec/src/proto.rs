//! serde over the Kubernetes protobuf wire format, driven by the table of [`schema`](crate::schema).
//!
//! [`from_slice`] decodes a message straight into any type whose serde form is the JSON form of the kind, as that of
//! `k8s_openapi` is: no intermediate JSON, no second set of types. [`to_vec`] is the way back, byte for byte as the
//! published Go encoders write. Both take the bare message; the envelope (`k8s\0`) is the caller's.
//!
//! What a visitor sees is what it would see from the JSON that Go writes for the same object: times and quantities are
//! strings, bytes are base64, an empty `omitempty` field is absent, a zero time is null.

mod access;
mod de;
pub(crate) mod error;
pub(crate) mod forms;
mod lost;
mod put;
mod quantity;
mod ser;
pub(crate) mod utf8;
pub(crate) mod value;
mod walk;
pub(crate) mod wire;
pub(crate) mod writer;

use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::schema::Message;

pub use self::error::{Error, Problem};
pub(crate) use self::lost::unknown_fields;
use self::writer::{Target, Unknown, Writer};

/// How deep messages may nest by default: protobuf's own customary limit.
pub const DEPTH: u16 = 100;

/// Room for what is encoded, to begin with: most objects are smaller, and their text need not grow on the way.
const ROOM: usize = 2048;

/// How to decode.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Options<'a> {
    /// Shown as `apiVersion` at the top, since the message itself has none.
    pub api_version: Option<&'a str>,
    /// Shown as `kind` at the top.
    pub kind: Option<&'a str>,
    /// Pass over `managedFields` at the wire, in `metadata` and in the metadata of templates.
    pub skip_managed_fields: bool,
    /// How deep messages may nest; [`DEPTH`] by default. A `JSONSchemaProps` may hold others without end, so that without
    /// a limit a few kilobytes of input would overflow the stack.
    pub depth: u16,
    /// Bytes of one string, key or bytes field; that of [`Limits`] by default. Strings are copied into the
    /// value, once each, so that a small input cannot make much of them.
    pub string_bytes: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            api_version: None,
            kind: None,
            skip_managed_fields: false,
            depth: DEPTH,
            string_bytes: Limits::DEFAULT.string_bytes,
        }
    }
}

impl<'a> Options<'a> {
    /// Options that give the object its `apiVersion` and `kind`.
    pub fn of(api_version: &'a str, kind: &'a str) -> Self {
        Self { api_version: Some(api_version), kind: Some(kind), ..Self::default() }
    }

    /// The same, passing over `managedFields`.
    #[must_use]
    pub fn without_managed_fields(self) -> Self {
        Self { skip_managed_fields: true, ..self }
    }
}

/// What a decoded value does not hold of the bytes it came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Fields on the wire that the table does not know: the server is newer.
    pub unknown: usize,
    /// Fields that the table knows and the Rust type does not.
    pub ignored: usize,
}

impl Lost {
    /// Whether an update made from the value would lose fields.
    pub fn is_partial(self) -> bool {
        self.unknown + self.ignored > 0
    }
}

/// Decodes the bare message `bytes`.
///
/// Fields that the table or the type does not know are passed over; [`from_slice_lossy`] tells of them.
///
/// # Errors
///
/// [`Error`], with the place, if the bytes are malformed, nest too deep, or do not fit the type.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubestrata_codec::{proto, schema};
///
/// let message = schema::kind("", "v1", "ConfigMap").unwrap();
/// let bytes = b"\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v";
/// let map: ConfigMap = proto::from_slice(bytes, message, &proto::Options::of("v1", "ConfigMap"))?;
/// assert_eq!(map.metadata.name.as_deref(), Some("a"));
/// assert_eq!(map.data.unwrap()["k"], "v");
/// # Ok::<(), proto::Error>(())
/// ```
pub fn from_slice<'de, K: Deserialize<'de>>(
    bytes: &'de [u8],
    message: &'static Message,
    options: &Options<'_>,
) -> Result<K, Error> {
    from_slice_lossy(bytes, message, options).map(|(value, _)| value)
}

/// Decodes the bare message `bytes`, and tells what the value does not hold of them.
///
/// # Errors
///
/// As [`from_slice`].
pub fn from_slice_lossy<'de, K: Deserialize<'de>>(
    bytes: &'de [u8],
    message: &'static Message,
    options: &Options<'_>,
) -> Result<(K, Lost), Error> {
    value::decode(message, bytes, options, |value| K::deserialize(value))
}

/// Encodes `value` as a bare message, as the Go encoders would: zero values are written, maps sorted, quantities canonical.
///
/// `apiVersion` and `kind` at the top are passed over: they belong to the envelope.
///
/// # Errors
///
/// [`Error`], with the path, if the value does not fit the message; [`Problem::UnknownField`] if it has a field that the
/// message lacks, since that would be lost.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubestrata_codec::{proto, schema};
///
/// let message = schema::kind("", "v1", "ConfigMap").unwrap();
/// let map = ConfigMap { immutable: Some(true), ..ConfigMap::default() };
/// let bytes = proto::to_vec(&map, message)?;
/// let back: ConfigMap = proto::from_slice(&bytes, message, &proto::Options::default())?;
/// assert_eq!(back, map);
/// # Ok::<(), proto::Error>(())
/// ```
pub fn to_vec<K: Serialize + ?Sized>(
    value: &K,
    message: &'static Message,
) -> Result<Vec<u8>, Error> {
    let mut writer = Writer::new(Vec::with_capacity(ROOM), DEPTH, Unknown::Refuse);
    value.serialize(ser::Into { writer: &mut writer, target: Target::Root(message) })?;
    Ok(writer.finish().0)
}

#[cfg(test)]
mod tests;
