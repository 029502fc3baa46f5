//! JSON, put together from stored text.

use bytes::Bytes;
use kubestrata_codec::collection::{self, JsonList, JsonStyle};
use kubestrata_codec::frame::{self, EventType};
use kubestrata_codec::{proto, transcode};

use super::{ListHead, Renderer};
use crate::out::Out;
use crate::record::Item;

/// `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`
const PARTIAL_TYPE: &[u8] =
    b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",";

fn with_type(renderer: &Renderer, item: &Item, out: &mut Out) {
    if renderer.is_partial() {
        out.put(PARTIAL_TYPE);
        out.put(&item.metadata_json()[1..]);
        out.put(b"}");
    } else {
        out.put(&renderer.resource.type_json);
        out.put_shared(item.json(), 1);
    }
}

pub(super) fn object(renderer: &Renderer, item: &Item) -> Bytes {
    let mut whole = Vec::with_capacity(item.json().len() + 128);
    if renderer.is_partial() {
        whole.extend_from_slice(PARTIAL_TYPE);
        whole.extend_from_slice(&item.metadata_json()[1..]);
        whole.push(b'}');
    } else {
        whole.extend_from_slice(&renderer.resource.type_json);
        whole.extend_from_slice(&item.json()[1..]);
    }
    whole.push(b'\n');
    whole.into()
}

pub(super) fn list(renderer: &Renderer, head: &ListHead) -> JsonList {
    let meta = head.meta();
    let builtin = renderer.resource.info.builtin;
    let style =
        if builtin || renderer.is_partial() { JsonStyle::Typed } else { JsonStyle::Unstructured };
    let (api_version, kind) = renderer.sent_type();
    collection::json(style, &api_version, &format!("{kind}List"), &meta)
}

pub(super) fn list_item(renderer: &Renderer, item: &Item, index: usize, out: &mut Out) {
    if index > 0 {
        out.put(collection::JSON_SEPARATOR);
    }
    if renderer.is_partial() || !renderer.resource.info.builtin {
        with_type(renderer, item, out);
    } else {
        // Items of a built-in list carry no type.
        out.put_shared(item.json(), 0);
    }
}

pub(super) fn event(renderer: &Renderer, event: EventType, item: &Item, out: &mut Out) {
    out.put(frame::json_head(event));
    with_type(renderer, item, out);
    out.put(frame::JSON_TAIL);
}

/// `object` has only metadata. A built-in kind shows its zero fields beside them, as Go does.
pub(super) fn bookmark(renderer: &Renderer, object: &str, out: &mut Out) {
    out.put(frame::json_head(EventType::Bookmark));
    match zero_fields(renderer, object) {
        Some(text) => out.put(&text),
        None => {
            let type_json: &[u8] =
                if renderer.is_partial() { PARTIAL_TYPE } else { &renderer.resource.type_json };
            out.put(type_json);
            out.put(&object.as_bytes()[1..]);
        }
    }
    out.put(frame::JSON_TAIL);
}

fn zero_fields(renderer: &Renderer, object: &str) -> Option<Vec<u8>> {
    if renderer.is_partial() {
        return None;
    }
    let message = renderer.resource.message?;
    let mut bytes = Vec::new();
    transcode::to_protobuf(object.as_bytes(), message, &mut bytes).ok()?;
    let ty = &renderer.resource.ty;
    let api_version = ty.api_version();
    let options = proto::Options::of(&api_version, &ty.kind);
    let mut text = Vec::new();
    transcode::to_json(&bytes, message, &options, &mut text).ok()?;
    Some(text)
}

pub(super) fn error(status: &[u8], out: &mut Out) {
    out.put(frame::json_head(EventType::Error));
    out.put(status);
    out.put(frame::JSON_TAIL);
}
