//! Cutting fields out of an object's bytes.

mod json;
mod protobuf;

use kubestrata_api_types::{FieldPath, Format, ResourceType, Segment};

use crate::decode;
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
    match format {
        Format::Json => json::prune(bytes, &paths, depth_max),
        Format::Protobuf => protobuf::prune(bytes, decode::message_of(resource), &paths),
    }
}

type Paths<'a> = [&'a [Segment]];

/// What is left of the paths whose first segment fits.
fn step<'a>(paths: &Paths<'a>, fits: impl Fn(&Segment) -> bool) -> Vec<&'a [Segment]> {
    paths
        .iter()
        .filter_map(|path| path.split_first())
        .filter(|(first, _)| fits(first))
        .map(|(_, rest)| rest)
        .collect()
}

/// Whether a path ends here, so that the value goes as a whole.
fn ends(paths: &Paths<'_>) -> bool {
    paths.iter().any(|path| path.is_empty())
}
