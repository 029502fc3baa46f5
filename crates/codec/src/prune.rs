//! Cutting fields out of an object's bytes.

mod json;
mod protobuf;

use std::ops::Range;

use kubestrata_api_types::{FieldPath, Format, ResourceType, Segment};

use crate::head::Head;
use crate::json::ScanError;
use crate::{decode, wire};

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

/// A message without `cut`, a part of its metadata, whose length is put right. `field` is where the metadata's tag
/// stands. `head` follows.
pub(crate) fn cut_metadata(
    head: &mut Head,
    bytes: &[u8],
    field: usize,
    cut: &Range<usize>,
) -> Vec<u8> {
    let (start, end) = (head.metadata.start as usize, head.metadata.end as usize);
    let mut tag_and_length = Vec::with_capacity(6);
    wire::put_head(&mut tag_and_length, 1, end - start - cut.len());
    // What a server writes does not grow; what somebody wrote with a longer tag or length shrinks to the shortest.
    head.cut(cut, start - field - tag_and_length.len());
    [&bytes[..field], &tag_and_length, &bytes[start..cut.start], &bytes[cut.end..]].concat()
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
