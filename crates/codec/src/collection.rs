//! Lists as a server writes them, around items that are encoded already (KEP-5116).
//!
//! A list is a head, the items with something small before each, and a tail: a server that keeps each object encoded
//! sends a list of any size as a chain of shared slices. The bytes are those of Go's encoders, buffered or streaming.

use kubestrata_api_types::ListMeta;
use serde::Serialize;

use crate::{envelope, wire};

/// In which order a JSON list has its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "Go has these two kinds of list")]
pub enum JsonStyle {
    /// Built-in kinds: `kind`, `apiVersion`, `metadata`, `items`.
    Typed,
    /// Custom resources: sorted.
    Unstructured,
}

/// What stands between two JSON items.
pub const JSON_SEPARATOR: &[u8] = b",";

/// What stands before and after the items of a JSON list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair of two fields")]
pub struct JsonList {
    /// Up to and with the `[`.
    pub head: Vec<u8>,
    /// From the `]` to the end, with the line feed.
    pub tail: Vec<u8>,
}

/// The frame of a JSON list. `kind` is the list's, as in `PodList`.
pub fn json(style: JsonStyle, api_version: &str, kind: &str, meta: &ListMeta) -> JsonList {
    // Go's order, and its `omitempty`.
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed<'a> {
        #[serde(skip_serializing_if = "str::is_empty")]
        resource_version: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        r#continue: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        remaining_item_count: Option<u64>,
    }
    // Sorted, and with the two strings even if they are empty: setters have put them there.
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Sorted<'a> {
        r#continue: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        remaining_item_count: Option<u64>,
        resource_version: &'a str,
    }
    let resource_version = meta.resource_version.to_string();
    let resource_version = resource_version.as_str();
    let r#continue = meta.continue_token.as_deref().unwrap_or_default();
    let remaining_item_count = meta.remaining_item_count;
    let (api_version, kind) = (to_json(&api_version), to_json(&kind));
    match style {
        JsonStyle::Typed => {
            let metadata = to_json(&Typed { resource_version, r#continue, remaining_item_count });
            let head = format!(
                r#"{{"kind":{kind},"apiVersion":{api_version},"metadata":{metadata},"items":["#
            );
            JsonList { head: head.into_bytes(), tail: b"]}\n".to_vec() }
        }
        JsonStyle::Unstructured => {
            let metadata = to_json(&Sorted { resource_version, r#continue, remaining_item_count });
            JsonList {
                head: format!(r#"{{"apiVersion":{api_version},"items":["#).into_bytes(),
                tail: format!("],\"kind\":{kind},\"metadata\":{metadata}}}\n").into_bytes(),
            }
        }
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings and numbers serialize")
}

/// The head of a protobuf list: envelope, list metadata. `items_bytes` is the sum of [`protobuf_item_size`] over all
/// items: the envelope tells the length of the whole list before its first item.
///
/// `kind` is the list's, as in `PodList`. Each item follows as [`protobuf_item_head`] and its message; after the last
/// comes [`PROTOBUF_TAIL`].
pub fn protobuf_head(
    api_version: &str,
    kind: &str,
    meta: &ListMeta,
    items_bytes: usize,
) -> Vec<u8> {
    let mut metadata = Vec::new();
    wire::put_bytes(&mut metadata, 1, b"");
    wire::put_bytes(&mut metadata, 2, meta.resource_version.to_string().as_bytes());
    wire::put_bytes(
        &mut metadata,
        3,
        meta.continue_token.as_deref().unwrap_or_default().as_bytes(),
    );
    if let Some(count) = meta.remaining_item_count {
        wire::put_number(&mut metadata, 4, count);
    }
    let length = wire::field_size(metadata.len()) + items_bytes;
    let mut out = envelope::head(api_version, kind, length);
    wire::put_bytes(&mut out, 1, &metadata);
    out
}

/// What stands before the message of an item of `length` bytes.
pub fn protobuf_item_head(length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(6);
    wire::put_head(&mut out, 2, length);
    out
}

/// How many bytes an item of `length` bytes takes in the list.
pub fn protobuf_item_size(length: usize) -> usize {
    wire::field_size(length)
}

/// What stands after the last item.
pub const PROTOBUF_TAIL: &[u8] = &envelope::TAIL;
