//! Protobuf, put together from messages that are made once for each version of an object.

use bytes::Bytes;
use kubestrata_api_types::Status;
use kubestrata_codec::frame::{self, EventType};
use kubestrata_codec::schema::{self, Message};
use kubestrata_codec::{collection, envelope, transcode};

use super::{ListHead, META, PARTIAL, Renderer};
use crate::out::Out;
use crate::record::Item;

/// The schema of what goes out.
fn message(renderer: &Renderer) -> Option<&'static Message> {
    if renderer.is_partial() {
        return schema::kind_of(META, PARTIAL);
    }
    renderer.resource.message
}

/// The message of an item, without envelope.
fn raw(renderer: &Renderer, item: &Item) -> Bytes {
    let bytes = message(renderer).and_then(|message| {
        if !renderer.is_partial() {
            return item.protobuf(message).cloned();
        }
        let mut text = item.metadata_json().to_vec();
        text.push(b'}');
        encode(&text, message)
    });
    bytes.unwrap_or_else(|| {
        // Negotiation has seen the schema, and every write fits it.
        tracing::error!(key = %item.key, "a stored object does not fit its schema");
        Bytes::new()
    })
}

fn encode(text: &[u8], message: &'static Message) -> Option<Bytes> {
    let mut out = Vec::new();
    transcode::to_protobuf(text, message, &mut out).ok()?;
    Some(out.into())
}

pub(super) fn object(renderer: &Renderer, item: &Item) -> Bytes {
    let (api_version, kind) = renderer.sent_type();
    envelope::close(&api_version, &kind, &raw(renderer, item)).into()
}

pub(super) fn list_head(
    renderer: &Renderer,
    head: &ListHead,
    items: impl Iterator<Item = Item>,
    out: &mut Out,
) {
    let sizes = items.map(|item| collection::protobuf_item_size(raw(renderer, &item).len()));
    let total = sizes.sum();
    let meta = head.meta();
    let (api_version, kind) = renderer.sent_type();
    out.put(&collection::protobuf_head(&api_version, &format!("{kind}List"), &meta, total));
}

pub(super) fn list_item(renderer: &Renderer, item: &Item, out: &mut Out) {
    let raw = raw(renderer, item);
    out.put(&collection::protobuf_item_head(raw.len()));
    out.put_shared(&raw, 0);
}

pub(super) fn event(renderer: &Renderer, event: EventType, item: &Item, out: &mut Out) {
    framed(renderer, event, &raw(renderer, item), out);
}

fn framed(renderer: &Renderer, event: EventType, raw: &Bytes, out: &mut Out) {
    let (api_version, kind) = renderer.sent_type();
    out.put(&frame::protobuf_head(event, &api_version, &kind, raw.len()));
    out.put_shared(raw, 0);
    out.put(frame::PROTOBUF_TAIL);
}

/// `object` is JSON that has only metadata.
pub(super) fn bookmark(renderer: &Renderer, object: &str, out: &mut Out) {
    let raw = message(renderer).and_then(|message| encode(object.as_bytes(), message));
    framed(renderer, EventType::Bookmark, &raw.unwrap_or_default(), out);
}

pub(super) fn error(status: &Status, out: &mut Out) {
    let raw = crate::answer::status_protobuf(status);
    out.put(&frame::protobuf_head(EventType::Error, "v1", "Status", raw.len()));
    out.put(&raw);
    out.put(frame::PROTOBUF_TAIL);
}
