//! How objects, lists and events go out.

mod json;
mod protobuf;

use std::sync::Arc;

use bytes::Bytes;
use kubestrata_api_types::{Format, ListMeta, Status};
use kubestrata_codec::frame::EventType;

use crate::catalog::Resource;
use crate::media::{Media, Shape};
use crate::out::Out;
use crate::record::Item;

/// The group and version of metadata-only objects.
const META: &str = "meta.k8s.io/v1";
const PARTIAL: &str = "PartialObjectMetadata";

/// The metadata of a list.
#[derive(Debug, Default)]
pub(crate) struct ListHead {
    pub(crate) revision: u64,
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<usize>,
}

impl ListHead {
    fn meta(&self) -> ListMeta {
        let token = &self.continue_token;
        ListMeta {
            resource_version: self.revision.into(),
            continue_token: (!token.is_empty()).then(|| token.clone()),
            remaining_item_count: self.remaining.map(|count| count as u64),
        }
    }
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

    fn is_partial(&self) -> bool {
        self.media.shape == Shape::Metadata
    }

    /// `apiVersion` and kind of what goes out.
    fn sent_type(&self) -> (String, String) {
        if self.is_partial() {
            return (META.to_owned(), PARTIAL.to_owned());
        }
        let ty = &self.resource.ty;
        (ty.api_version().into_owned(), ty.kind.to_string())
    }

    /// One object as an answer.
    pub(crate) fn object(&self, item: &Item) -> Bytes {
        match self.media.format {
            Format::Json => json::object(self, item),
            Format::Protobuf => protobuf::object(self, item),
        }
    }

    /// What stands before the items of a list. A protobuf list tells the size of all its items first.
    pub(crate) fn list_head(
        &self,
        head: &ListHead,
        items: impl Iterator<Item = Item>,
        out: &mut Out,
    ) {
        match self.media.format {
            Format::Json => out.put(&json::list(self, head).head),
            Format::Protobuf => protobuf::list_head(self, head, items, out),
        }
    }

    /// One item of a list; `index` counts from 0.
    pub(crate) fn list_item(&self, item: &Item, index: usize, out: &mut Out) {
        match self.media.format {
            Format::Json => json::list_item(self, item, index, out),
            Format::Protobuf => protobuf::list_item(self, item, out),
        }
    }

    /// What stands after the items.
    pub(crate) fn list_tail(&self, head: &ListHead, out: &mut Out) {
        match self.media.format {
            Format::Json => out.put(&json::list(self, head).tail),
            Format::Protobuf => out.put(kubestrata_codec::collection::PROTOBUF_TAIL),
        }
    }

    /// An event about an object.
    pub(crate) fn event(&self, event: EventType, item: &Item, out: &mut Out) {
        match self.media.format {
            Format::Json => json::event(self, event, item, out),
            Format::Protobuf => protobuf::event(self, event, item, out),
        }
    }

    /// A bookmark.
    pub(crate) fn bookmark(&self, revision: u64, initial_end: bool, out: &mut Out) {
        let version = format!("\"resourceVersion\":\"{revision}\"");
        let end = "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}";
        let object = if !initial_end {
            format!("{{\"metadata\":{{{version}}}}}")
        } else if self.resource.info.builtin || self.is_partial() {
            format!("{{\"metadata\":{{{version},{end}}}}}")
        } else {
            format!("{{\"metadata\":{{{end},{version}}}}}")
        };
        match self.media.format {
            Format::Json => json::bookmark(self, &object, out),
            Format::Protobuf => protobuf::bookmark(self, &object, out),
        }
    }

    /// An ERROR event; the stream ends after it.
    pub(crate) fn error(&self, status: &Status, out: &mut Out) {
        match self.media.format {
            Format::Json => json::error(&crate::answer::status_json(status), out),
            Format::Protobuf => protobuf::error(status, out),
        }
    }
}
