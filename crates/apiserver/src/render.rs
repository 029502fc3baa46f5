//! How objects, lists and events go out.

use std::sync::Arc;

use bytes::Bytes;
use kubestrata_api_types::Format;

use crate::catalog::Resource;
use crate::media::{Media, Shape};
use crate::out::Out;
use crate::record::Item;

const PARTIAL: &[u8] = b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",";

/// The metadata of a list.
#[derive(Debug, Default)]
pub(crate) struct ListHead {
    pub(crate) revision: u64,
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<usize>,
}

/// Writes one resource in one form.
#[derive(Debug, Clone)]
pub(crate) struct Renderer {
    pub(crate) resource: Arc<Resource>,
    pub(crate) media: Media,
}

impl Renderer {
    pub(crate) fn new(resource: &Arc<Resource>, media: Media) -> Self {
        Self { resource: resource.clone(), media }
    }

    /// Whether the objects of a resource can go out as protobuf.
    pub(crate) fn speaks_protobuf(_resource: &Resource) -> bool {
        false
    }

    /// `Content-Type` of an object or a list.
    pub(crate) fn content_type(&self) -> &'static str {
        match self.media.format {
            Format::Json => "application/json",
            Format::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// `Content-Type` of a watch.
    pub(crate) fn watch_content_type(&self) -> &'static str {
        match self.media.format {
            Format::Json => "application/json",
            Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// One object as an answer.
    pub(crate) fn object(&self, item: &Item) -> Bytes {
        let mut out = Vec::with_capacity(item.json().len() + 128);
        self.json(item, &mut out);
        out.push(b'\n');
        out.into()
    }

    fn json(&self, item: &Item, out: &mut Vec<u8>) {
        match self.media.shape {
            Shape::Metadata => {
                out.extend_from_slice(PARTIAL);
                out.extend_from_slice(&item.metadata_json()[1..]);
                out.push(b'}');
            }
            Shape::Object | Shape::Aggregated => {
                out.extend_from_slice(&self.resource.type_json);
                out.extend_from_slice(&item.json()[1..]);
            }
        }
    }

    /// What stands before the items of a list.
    pub(crate) fn list_head(&self, head: &ListHead, out: &mut Out) {
        let mut metadata = format!("{{\"resourceVersion\":\"{}\"", head.revision);
        if !head.continue_token.is_empty() {
            metadata.push_str(&format!(",\"continue\":\"{}\"", head.continue_token));
        }
        if let Some(remaining) = head.remaining {
            metadata.push_str(&format!(",\"remainingItemCount\":{remaining}"));
        }
        metadata.push('}');
        let ty = &self.resource.ty;
        let text = match self.media.shape {
            Shape::Metadata => format!(
                "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"items\":["
            ),
            _ if self.resource.info.builtin => format!(
                "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
                ty.kind,
                ty.api_version()
            ),
            // The order of an unstructured list: sorted keys, so the rest follows the items.
            _ => format!("{{\"apiVersion\":\"{}\",\"items\":[", ty.api_version()),
        };
        out.put(text.as_bytes());
    }

    /// One item of a list; `index` counts from 0.
    pub(crate) fn list_item(&self, item: &Item, index: usize, out: &mut Out) {
        if index > 0 {
            out.put(b",");
        }
        match self.media.shape {
            Shape::Metadata => {
                out.put(PARTIAL);
                out.put(&item.metadata_json()[1..]);
                out.put(b"}");
            }
            // Items of a built-in list carry no type.
            _ if self.resource.info.builtin => out.put_shared(item.json(), 0),
            _ => {
                out.put(&self.resource.type_json);
                out.put_shared(item.json(), 1);
            }
        }
    }

    /// What stands after the items.
    pub(crate) fn list_tail(&self, head: &ListHead, out: &mut Out) {
        if self.resource.info.builtin || self.media.shape == Shape::Metadata {
            out.put(b"]}\n");
            return;
        }
        let mut text = format!("],\"kind\":\"{}List\",\"metadata\":{{", self.resource.ty.kind);
        if !head.continue_token.is_empty() {
            text.push_str(&format!("\"continue\":\"{}\",", head.continue_token));
        }
        if let Some(remaining) = head.remaining {
            text.push_str(&format!("\"remainingItemCount\":{remaining},"));
        }
        text.push_str(&format!("\"resourceVersion\":\"{}\"}}}}\n", head.revision));
        out.put(text.as_bytes());
    }

    /// An event about an object.
    pub(crate) fn event(&self, kind: &str, item: &Item, out: &mut Out) {
        out.put(b"{\"type\":\"");
        out.put(kind.as_bytes());
        out.put(b"\",\"object\":");
        match self.media.shape {
            Shape::Metadata => {
                out.put(PARTIAL);
                out.put(&item.metadata_json()[1..]);
                out.put(b"}");
            }
            _ => {
                out.put(&self.resource.type_json);
                out.put_shared(item.json(), 1);
            }
        }
        out.put(b"}\n");
    }

    /// A bookmark.
    pub(crate) fn bookmark(&self, revision: u64, initial_end: bool, out: &mut Out) {
        let type_json = match self.media.shape {
            Shape::Metadata => PARTIAL,
            _ => &self.resource.type_json[..],
        };
        out.put(b"{\"type\":\"BOOKMARK\",\"object\":");
        out.put(type_json);
        out.put(format!("\"metadata\":{{\"resourceVersion\":\"{revision}\"").as_bytes());
        if initial_end {
            out.put(b",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}");
        }
        out.put(b"}}}\n");
    }

    /// An ERROR event; the stream ends after it.
    pub(crate) fn error(&self, status: &[u8], out: &mut Out) {
        out.put(b"{\"type\":\"ERROR\",\"object\":");
        out.put(status);
        out.put(b"}\n");
    }
}
