//! Cutting fields out of an object's bytes.

mod json;

use kubestrata_api_types::{FieldPath, Format, ResourceType, Segment};

use crate::json::ScanError;

/// The object without the fields at `paths`. A path that leads nowhere changes nothing.
pub(crate) fn prune(
    resource: &ResourceType,
    format: Format,
    bytes: &[u8],
    paths: &[FieldPath],
    depth_max: usize,
) -> Result<Vec<u8>, ScanError> {
    let paths: Vec<&[Segment]> = paths.iter().map(FieldPath::segments).collect();
    let _ = resource;
    match format {
        Format::Json => json::prune(bytes, &paths, depth_max),
        Format::Protobuf => Err(ScanError { offset: 0, problem: "protobuf is not read" }),
    }
}
