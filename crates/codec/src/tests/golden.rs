//! Both encodings of the same objects: heads, views and pruning must agree.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kubestrata_api_types::{
    Collection, Event, FieldPath, Format, Kind as _, ListMeta, ListPart, Object, ResourceType,
    ResourceVersion, Scope, View,
};
use serde_json::Value;

use super::head;
use crate::frame::EventType;
use crate::{Decoded, Encoded, Limits, ListDecoder, WatchDecoder, collection, envelope, frame};

/// One object in both encodings.
pub(super) struct Golden {
    pub(super) resource: Arc<ResourceType>,
    pub(super) message: Vec<u8>,
    pub(super) json: Vec<u8>,
}

impl Golden {
    pub(super) fn read(&self, format: Format, prune: &[FieldPath]) -> Encoded {
        let bytes = match format {
            Format::Json => &self.json,
            Format::Protobuf => &self.message,
        };
        Encoded::read(&self.resource, format, bytes, prune).unwrap()
    }
}

pub(super) fn all() -> Vec<Golden> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pb") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let outer = envelope::open(&bytes).unwrap();
        let (group, version) = outer.api_version.split_once('/').unwrap_or(("", outer.api_version));
        let resource = ResourceType::new(group, version, outer.kind, "x", Scope::Namespaced);
        found.push(Golden {
            resource: Arc::new(resource),
            message: outer.message.to_vec(),
            json: std::fs::read(path.with_extension("json")).unwrap(),
        });
    }
    assert!(found.len() > 10);
    found
}

/// Every path that leads somewhere, lists by `[*]`.
fn paths(value: &Value, prefix: &str, out: &mut BTreeSet<String>) {
    let mut child = |step: String, inner: &Value| {
        let path = format!("{prefix}{step}");
        paths(inner, &path, out);
        out.insert(path);
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let step = match (name.contains(['.', '[']), prefix.is_empty()) {
                    (true, _) => format!("['{name}']"),
                    (false, true) => name.clone(),
                    (false, false) => format!(".{name}"),
                };
                child(step, member);
            }
        }
        Value::Array(elements) => {
            elements.iter().for_each(|element| child("[*]".to_owned(), element));
        }
        _ => {}
    }
}

fn view(object: &impl View, path: &FieldPath) -> Vec<String> {
    let mut found = Vec::new();
    object.field(path, &mut |text| found.push(text.to_owned())).unwrap();
    found
}

/// The value without what is at the path; zero values in its place count as nothing.
fn without(mut value: Value, path: &FieldPath) -> Value {
    fn cut(value: &mut Value, path: &[kubestrata_api_types::Segment]) {
        use kubestrata_api_types::Segment::{All, Field};
        match (path, value) {
            ([Field(name)], Value::Object(members)) => {
                members.remove(&**name);
            }
            ([All], Value::Object(members)) => members.clear(),
            ([All], Value::Array(elements)) => elements.clear(),
            ([Field(name), rest @ ..], Value::Object(members)) => {
                if let Some(member) = members.get_mut(&**name) {
                    cut(member, rest);
                }
            }
            ([_, rest @ ..], Value::Array(elements)) => {
                elements.iter_mut().for_each(|element| cut(element, rest));
            }
            _ => {}
        }
    }
    cut(&mut value, path.segments());
    normal(&mut value);
    value
}

/// An empty list or map of protobuf is no list or map at all.
fn normal(value: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        other => other.is_null(),
    };
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(normal);
            members.retain(|_, member| !is_empty(member));
        }
        Value::Array(elements) => elements.iter_mut().for_each(normal),
        _ => {}
    }
}

#[test]
fn heads_agree() {
    for golden in all() {
        let json = golden.read(Format::Json, &[]);
        let protobuf = golden.read(Format::Protobuf, &[]);
        assert_eq!(head(&json), head(&protobuf), "{}", golden.resource.kind);
        let metadata = (json.metadata().unwrap(), protobuf.metadata().unwrap());
        assert_eq!(metadata.0, metadata.1, "{}", golden.resource.kind);
        if !golden.resource.kind.ends_with("Review") {
            assert_eq!(head(&json), head(&metadata.0), "{}", golden.resource.kind);
            assert!(!json.name().is_empty());
        }
    }
    let pods = all().into_iter().find(|golden| golden.resource.kind == "Pod").unwrap();
    let pod: Pod = pods.read(Format::Protobuf, &[]).decode().unwrap();
    assert_eq!(head(&pods.read(Format::Protobuf, &[])), head(&pod));
}

#[test]
fn views_agree() {
    for golden in all() {
        let json = golden.read(Format::Json, &[]);
        let protobuf = golden.read(Format::Protobuf, &[]);
        let value: Value = json.decode().unwrap();
        let mut found = BTreeSet::new();
        paths(&value, "", &mut found);
        assert!(found.len() > 10);
        for path in found.iter().step_by(found.len() / 60 + 1) {
            let path: FieldPath = path.parse().unwrap();
            let mut expected = Vec::new();
            crate::view::value(&value, path.segments(), &mut |text| expected.push(text.to_owned()));
            assert_eq!(view(&json, &path), expected, "{} {path}", golden.resource.kind);
            assert_eq!(view(&protobuf, &path), expected, "{} {path}", golden.resource.kind);
        }
    }
}

#[test]
fn a_decoded_object_is_seen_as_it_serializes() {
    fn check<K: Object + serde::Serialize + serde::de::DeserializeOwned>(kind: &str) {
        let golden = all().into_iter().find(|golden| golden.resource.kind == kind).unwrap();
        let decoded = Decoded::<K>::decode(&golden.read(Format::Protobuf, &[]));
        let value = serde_json::to_value(&**decoded.object().unwrap()).unwrap();
        let mut found = BTreeSet::new();
        paths(&value, "", &mut found);
        for path in found.iter().step_by(found.len() / 60 + 1) {
            let path: FieldPath = path.parse().unwrap();
            let mut expected = Vec::new();
            crate::view::value(&value, path.segments(), &mut |text| expected.push(text.to_owned()));
            assert_eq!(view(&decoded, &path), expected, "{kind} {path}");
        }
    }
    check::<Pod>("Pod");
    check::<Node>("Node");
    check::<ConfigMap>("ConfigMap");
    check::<Lease>("Lease");
}

#[test]
fn pruning_commutes_with_decoding_in_both_encodings() {
    for golden in all() {
        let json: Value = golden.read(Format::Json, &[]).decode().unwrap();
        let protobuf: Value = golden.read(Format::Protobuf, &[]).decode().unwrap();
        let mut found = BTreeSet::new();
        paths(&json, "", &mut found);
        found.retain(|path| path != "kind" && path != "apiVersion" && path != "metadata");
        // Each path costs four decodes: a part of them, spread over the object, is enough.
        for path in found.iter().step_by(found.len() / 20 + 1) {
            let path: FieldPath = path.parse().unwrap();
            let prune = std::slice::from_ref(&path);
            let pruned: Value = golden.read(Format::Json, prune).decode().unwrap();
            let mut normal_pruned = pruned.clone();
            normal(&mut normal_pruned);
            assert_eq!(normal_pruned, without(json.clone(), &path), "{path}");

            let object = golden.read(Format::Protobuf, prune);
            let pruned: Value = object.decode().unwrap();
            let left = view(&object, &path);
            assert!(
                left.iter().all(|text| matches!(text.as_str(), "" | "0" | "false")),
                "{} {path}: {left:?}",
                golden.resource.kind
            );
            assert_eq!(without(pruned, &path), without(protobuf.clone(), &path), "{path}");
        }
    }
}

/// The fast way for the frequent request gives what the general way gives, for all sizes of the length in front.
#[test]
fn managed_fields_are_cut_in_one_pass() {
    let fast = [FieldPath::managed_fields()];
    let general = [FieldPath::managed_fields(), "x.y".parse().unwrap()];
    let mut with_fields = 0;
    for golden in all() {
        let whole = golden.read(Format::Protobuf, &[]);
        for prune in [&fast[..], &general] {
            let cut = golden.read(Format::Protobuf, prune);
            with_fields += usize::from(cut.bytes().len() < whole.bytes().len());
            assert_eq!(cut, golden.read(Format::Protobuf, &fast), "{}", golden.resource.kind);
            assert_eq!(head(&cut), head(&whole), "{}", golden.resource.kind);
            assert_eq!(cut.metadata().unwrap(), whole.metadata().unwrap());
        }
    }
    assert!(with_fields > 10);
    for padding in [0, 1, 5, 90, 100, 110, 126, 127, 128, 200, 16_300, 16_400] {
        // Name, labels behind and before the cut, and a length that is ten bytes long.
        let entry = [&[0x8a, 0x01, 0x7f][..], &[b'x'; 127]].concat();
        let label = b"\x5a\x06\x0a\x01k\x12\x01v";
        let filler = "y".repeat(padding);
        let mut metadata = Vec::new();
        crate::wire::put_bytes(&mut metadata, 1, b"a");
        // The controller of the object, of which the head keeps a flag.
        metadata.extend([&label[..], b"\x6a\x02\x30\x01", &entry, &entry].concat());
        crate::wire::put_bytes(&mut metadata, 5, filler.as_bytes());
        let mut message = Vec::new();
        crate::wire::put_bytes(&mut message, 2, b"");
        crate::wire::put_bytes(&mut message, 1, &metadata);
        crate::wire::put_bytes(&mut message, 3, b"");
        let read = |prune| Encoded::read(&nodes().0, Format::Protobuf, &message, prune).unwrap();
        let (fast, general) = (read(&fast), read(&general));
        assert_eq!(fast, general, "{padding}");
        assert_eq!(head(&fast), head(&general), "{padding}");
        assert_eq!(fast.label("k"), Some("v"));
        assert_eq!(fast.uid().unwrap_or_default(), filler);
    }
}

fn nodes() -> (Arc<ResourceType>, Vec<u8>) {
    let golden = all().into_iter().find(|golden| golden.resource.kind == "Node").unwrap();
    (Arc::new(Node::resource().clone()), golden.message)
}

/// The vector of a bookmark of a ConfigMap at version 123.
const BOOKMARK: &[u8] = b"\x00\x00\x00\x3e\x0a\x08BOOKMARK\x12\x32\x0a\x30k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x15\x0a\x13\x0a\0\x12\0\x1a\0\x22\0\x2a\0\x32\x03123\x38\0\x42\0\x1a\0\x22\0";

#[test]
fn a_protobuf_frame_is_as_go_writes_it() {
    let message = b"\x0a\x13\x0a\0\x12\0\x1a\0\x22\0\x2a\0\x32\x03123\x38\0\x42\0";
    let resource =
        ResourceType::from_static("", "v1", "ConfigMap", "configmaps", Scope::Namespaced);
    let frame = frame::encode(EventType::Bookmark, Format::Protobuf, &resource, message);
    assert_eq!(frame, BOOKMARK);
    let mut decoder =
        WatchDecoder::new(Collection::new(resource), Format::Protobuf, Limits::default());
    decoder.push(Bytes::copy_from_slice(BOOKMARK));
    let Ok(Some(Event::Bookmark(bookmark))) = decoder.next() else { panic!("no bookmark") };
    assert_eq!(bookmark.resource_version, ResourceVersion::new("123"));
    assert!(!bookmark.initial_events_end);
}

#[test]
fn a_protobuf_watch_may_be_cut_anywhere() {
    let (nodes, message) = nodes();
    let mut stream = frame::encode(EventType::Added, Format::Protobuf, &nodes, &message);
    stream.extend(BOOKMARK);
    stream.extend(frame::encode(EventType::Deleted, Format::Protobuf, &nodes, &message));
    for cut in 0..stream.len() {
        let mut decoder =
            WatchDecoder::new(Collection::new(nodes.clone()), Format::Protobuf, Limits::default());
        let mut log = Vec::new();
        for part in [&stream[..cut], &stream[cut..]] {
            decoder.push(Bytes::copy_from_slice(part));
            while let Some(event) = decoder.next().unwrap() {
                log.push(match event {
                    Event::Added(node) => format!("+{}", node.bytes() == message),
                    Event::Deleted(node) => format!("-{}", node.bytes() == message),
                    // A bookmark of another kind is no bookmark.
                    Event::Unreadable(error) => error.problem,
                    other => format!("{other:?}"),
                });
            }
        }
        assert_eq!(log, ["+true", "foreign kind ConfigMap of v1", "-true"], "cut at {cut}");
        decoder.finish().unwrap();
    }
}

#[test]
fn a_protobuf_list_may_be_cut_anywhere() {
    let (nodes, message) = nodes();
    let meta = ListMeta {
        resource_version: ResourceVersion::new("9"),
        continue_token: Some("t".to_owned()),
        remaining_item_count: Some(300),
    };
    let size = collection::protobuf_item_size(message.len());
    let mut stream = collection::protobuf_head("v1", "NodeList", &meta, 2 * size);
    for _ in 0..2 {
        stream.extend(collection::protobuf_item_head(message.len()));
        stream.extend(&message);
    }
    stream.extend(collection::PROTOBUF_TAIL);
    assert_eq!(envelope::open(&stream).unwrap().kind, "NodeList");
    for cut in 0..stream.len() {
        let mut decoder =
            ListDecoder::new(Collection::new(nodes.clone()), Format::Protobuf, Limits::default());
        let (mut items, mut metas) = (0, Vec::new());
        for part in [&stream[..cut], &stream[cut..]] {
            decoder.push(Bytes::copy_from_slice(part));
            while let Some(part) = decoder.next().unwrap() {
                match part {
                    ListPart::Item(node) => items += usize::from(node.bytes() == message),
                    ListPart::Meta(meta) => metas.push(meta),
                    ListPart::Unreadable(error) => panic!("{error}"),
                }
            }
        }
        assert_eq!((items, metas.as_slice()), (2, std::slice::from_ref(&meta)), "cut at {cut}");
        decoder.finish().unwrap();
    }
    let mut decoder = ListDecoder::new(Collection::new(nodes), Format::Protobuf, Limits::default());
    decoder.push(Bytes::copy_from_slice(&stream[..stream.len() / 2]));
    while decoder.next().unwrap().is_some() {}
    assert!(decoder.finish().is_err());
}
