//! Reading one field from protobuf: by the decoder itself, so that a value reads as it decodes.

use kubestrata_api_types::{ResourceType, Segment};
use serde::de::DeserializeSeed as _;

use super::pick::Pick;
use crate::proto::value::decode;
use crate::proto::{self, Options};
use crate::{decode as objects, schema};

/// Calls `out` for each value at `path` of a whole object.
pub(super) fn field(
    resource: &ResourceType,
    bytes: &[u8],
    path: &[Segment],
    out: &mut dyn FnMut(&str),
) -> Result<(), proto::Error> {
    let api_version = resource.api_version();
    let options = Options::of(&api_version, &resource.kind);
    pick(objects::message_of(resource), bytes, &options, path, out)
}

/// The same for `path` below the metadata, whose message `bytes` are.
pub(super) fn metadata(
    bytes: &[u8],
    path: &[Segment],
    out: &mut dyn FnMut(&str),
) -> Result<(), proto::Error> {
    pick(schema::object_meta(), bytes, &Options::default(), path, out)
}

fn pick(
    message: &'static schema::Message,
    bytes: &[u8],
    options: &Options<'_>,
    path: &[Segment],
    out: &mut dyn FnMut(&str),
) -> Result<(), proto::Error> {
    let mut found = Vec::new();
    decode(message, bytes, options, |value| {
        // It may be called twice.
        found.clear();
        Pick { path, found: &mut found }.deserialize(value)
    })?;
    found.iter().for_each(|text| out(text));
    Ok(())
}
