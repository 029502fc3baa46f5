//! What a real server sent is read, and written again byte for byte.

use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kubestrata_api_types::{
    Answer, Collection, Event, Format, Kind as _, ListMeta, Object as _, ResourceType, Scope,
};

use super::{head, read_list, recorded};
use crate::collection::{self, JsonStyle};
use crate::frame::{self, EventType};
use crate::proto::Options;
use crate::{
    Encoded, Limits, WatchDecoder, WatchError, decode_object, decode_status, schema, transcode,
};

fn format_of(name: &str) -> Format {
    if name.ends_with(".pb") { Format::Protobuf } else { Format::Json }
}

fn maps() -> Collection {
    Collection::new(ConfigMap::resource().clone())
}

fn foos() -> Collection {
    Collection::new(ResourceType::from_static(
        "example.com",
        "v1",
        "Foo",
        "foos",
        Scope::Namespaced,
    ))
}

fn list(name: &str, collection: Collection) -> (Vec<Encoded>, ListMeta) {
    read_list(collection, format_of(name), &recorded(name), usize::MAX)
}

#[test]
fn lists() {
    for (name, collection, style, api_version, kind, count) in [
        ("list.json", maps(), JsonStyle::Typed, "v1", "ConfigMapList", 3),
        ("page.json", maps(), JsonStyle::Typed, "v1", "ConfigMapList", 2),
        ("foos.json", foos(), JsonStyle::Unstructured, "example.com/v1", "FooList", 1),
    ] {
        let (items, meta) = list(name, collection);
        assert_eq!(items.len(), count, "{name}");
        let frame = collection::json(style, api_version, kind, &meta);
        let items: Vec<&[u8]> = items.iter().map(Encoded::bytes).collect();
        let text = [&frame.head[..], &items.join(collection::JSON_SEPARATOR), &frame.tail].concat();
        assert_eq!(String::from_utf8(text), String::from_utf8(recorded(name)), "{name}");
    }
    for (name, collection, api_version, kind, count) in [
        ("list.pb", maps(), "v1", "ConfigMapList", 3),
        ("page.pb", maps(), "v1", "ConfigMapList", 2),
        ("foosmeta.pb", foos().metadata_only(), "meta.k8s.io/v1", "PartialObjectMetadataList", 1),
    ] {
        let (items, meta) = list(name, collection);
        assert_eq!(items.len(), count, "{name}");
        let size = items.iter().map(|item| collection::protobuf_item_size(item.bytes().len()));
        let mut bytes = collection::protobuf_head(api_version, kind, &meta, size.sum());
        for item in &items {
            bytes.extend(collection::protobuf_item_head(item.bytes().len()));
            bytes.extend(item.bytes());
        }
        bytes.extend(collection::PROTOBUF_TAIL);
        assert_eq!(bytes, recorded(name), "{name}");
    }
    let json = list("page.json", maps());
    let protobuf = list("page.pb", maps());
    assert_eq!(json.1.remaining_item_count, Some(1));
    assert_eq!(json.1.remaining_item_count, protobuf.1.remaining_item_count);
    for (json, protobuf) in json.0.iter().zip(&protobuf.0) {
        assert_eq!(head(json), head(protobuf));
        assert_eq!(json.decode::<ConfigMap>(), protobuf.decode::<ConfigMap>());
    }
}

#[test]
fn watches() {
    for (name, collection, own, count) in [
        ("watch.json", maps(), ("", "v1", "ConfigMap"), 3),
        ("watch.pb", maps(), ("", "v1", "ConfigMap"), 3),
        (
            "foosmeta.watch.pb",
            foos().metadata_only(),
            ("meta.k8s.io", "v1", "PartialObjectMetadata"),
            1,
        ),
    ] {
        let format = format_of(name);
        let stream = recorded(name);
        let mut decoder = WatchDecoder::new(collection, format, Limits::default());
        decoder.push(Bytes::copy_from_slice(&stream));
        let resource = ResourceType::from_static(own.0, own.1, own.2, "x", Scope::Namespaced);
        let (mut written, mut ends, mut added) = (Vec::new(), 0, 0);
        while let Some(event) = decoder.next().unwrap() {
            match event {
                Event::Added(object) => {
                    added += 1;
                    assert!(object.metadata().is_ok());
                    let event = EventType::Added;
                    written.extend(frame::encode(event, format, &resource, object.bytes()));
                }
                Event::Bookmark(bookmark) => ends += usize::from(bookmark.initial_events_end),
                other => panic!("{other:?}"),
            }
        }
        decoder.finish().unwrap();
        assert_eq!((added, ends), (count, 1), "{name}");
        assert!(stream.starts_with(&written), "{name}");
    }
}

/// A frame is a message of the table as well: whole streams are transcoded frame by frame, without a look at the objects.
#[test]
fn watch_frames_become_lines_and_frames_again() {
    let stream = recorded("watch.pb");
    let message = schema::kind_of("v1", "WatchEvent").unwrap();
    let (mut rest, mut lines, mut frames) = (&stream[..], Vec::new(), Vec::new());
    while let Some((prefix, after)) = rest.split_first_chunk::<4>() {
        let (frame, after) = after.split_at(u32::from_be_bytes(*prefix) as usize);
        rest = after;
        let (start, mut back) = (lines.len(), Vec::new());
        transcode::to_json(frame, message, &Options::default(), &mut lines).unwrap();
        transcode::to_protobuf(&lines[start..], message, &mut back).unwrap();
        lines.push(b'\n');
        frames.extend(u32::try_from(back.len()).unwrap().to_be_bytes());
        frames.extend(back);
    }
    let events = |format, bytes: &[u8]| {
        let mut decoder = WatchDecoder::new(maps(), format, Limits::default());
        decoder.push(Bytes::copy_from_slice(bytes));
        let mut log = Vec::new();
        while let Some(event) = decoder.next().unwrap() {
            log.push(event.object().map_or_else(|| format!("{event:?}"), head));
        }
        decoder.finish().unwrap();
        log
    };
    let expected = events(Format::Protobuf, &stream);
    assert!(expected.len() > 3 && lines.starts_with(br#"{"type":"ADDED","object":{"kind":"#));
    assert_eq!(events(Format::Json, &lines), expected);
    assert_eq!(events(Format::Protobuf, &frames), expected);
}

#[test]
fn errors() {
    for name in ["old.json", "old.pb", "err.pb"] {
        let mut decoder = WatchDecoder::new(maps(), format_of(name), Limits::default());
        decoder.push(Bytes::copy_from_slice(&recorded(name)));
        let Err(WatchError::Status(status)) = decoder.next() else { panic!("{name}: no Status") };
        assert_eq!(status.is_expired(), name != "err.pb", "{name}");
        assert_eq!(status.is_too_large_resource_version(), name == "err.pb", "{name}");
    }
    let json = decode_status(Some("application/json"), 404, None, &recorded("404.json"));
    let content_type = Some("application/vnd.kubernetes.protobuf");
    let protobuf = decode_status(content_type, 404, None, &recorded("404.pb"));
    assert_eq!(json, protobuf);
    assert!(json.is_not_found());
    assert_eq!(json.message, "configmaps \"nope\" not found");
}

#[test]
fn one_object() {
    let get = |name: &str| match decode_object(&maps(), format_of(name), &recorded(name)).unwrap() {
        Answer::Object(object) => object,
        other => panic!("{other:?}"),
    };
    let (json, protobuf) = (get("get.json"), get("get.pb"));
    assert_eq!(head(&json), head(&protobuf));
    assert_eq!(json.decode::<ConfigMap>(), protobuf.decode::<ConfigMap>());
    assert_eq!(json.key(), protobuf.key());
    assert!(Arc::ptr_eq(json.resource(), json.clone().resource()));
}
