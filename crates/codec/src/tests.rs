//! Tests across the modules.

mod client;
mod golden;
pub(crate) mod hostile;
mod limits;
mod lists;
mod lossless;
mod recorded;
mod status;
mod strict;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{
    Answer, Collection, Event, FieldPath, Format, Kind as _, ListMeta, ListPart, Object,
    ObjectMeta, PartialObjectMetadata, ResourceType, ResourceVersion, View,
};

use crate::{
    Decoded, Dynamic, Encoded, Limits, ListDecoder, WatchDecoder, WatchError, decode_object,
};

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b",
  "uid":"u-1","resourceVersion":"42","generation":3,"deletionTimestamp":"2026-01-02T03:04:05Z",
  "labels":{"app":"w\u0065b","z":""},"annotations":{"x":"{\"a\":[1]}"},
  "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u-2","controller":true,"blockOwnerDeletion":true}],
  "managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]},
  "spec":{"nodeName":"n","containers":[{"name":"c","image":"i1"},{"name":"d","image":"i2"}]},"status":{"phase":"Running"}}"#;

fn pods() -> Arc<ResourceType> {
    Arc::new(Pod::resource().clone())
}

/// What a real server sent.
fn recorded(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    std::fs::read(folder.join(name)).unwrap()
}

/// Reads a list that arrives in pieces of `size` bytes.
fn read_list(
    collection: Collection,
    format: Format,
    body: &[u8],
    size: usize,
) -> (Vec<Encoded>, ListMeta) {
    let mut decoder = ListDecoder::new(collection, format, Limits::default());
    let (mut items, mut found) = (Vec::new(), None);
    for piece in body.chunks(size) {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(part) = decoder.next().unwrap() {
            match part {
                ListPart::Item(item) => items.push(item),
                ListPart::Meta(meta) => found = Some(meta),
                ListPart::Unreadable(error) => panic!("{error}"),
            }
        }
    }
    decoder.finish().unwrap();
    (items, found.unwrap())
}

/// What `Object` tells, as text.
fn head(object: &impl Object) -> String {
    let mut out = format!(
        "{} {:?} {:?} {:?} {:?}",
        object.key(),
        object.uid(),
        object.resource_version(),
        object.generation(),
        object.deletion_timestamp()
    );
    object.for_each_label(&mut |key, value| {
        assert_eq!(object.label(key), Some(value));
        out += &format!(" {key}={value}");
    });
    object.for_each_owner(&mut |owner| out += &format!(" {owner:?}"));
    out
}

#[test]
fn head_equals_decoded_head() {
    let encoded = Encoded::read(&pods(), Format::Json, POD.as_bytes(), &[]).unwrap();
    assert_eq!(head(&encoded), head(&encoded.decode::<Pod>().unwrap()));
    assert_eq!(head(&encoded), head(&encoded.metadata().unwrap()));
    assert_eq!(encoded.label("app"), Some("web"));
}

/// Go has one value for absent and zero, and writes neither: an object tells the same however it came.
#[test]
fn an_empty_uid_and_a_generation_of_zero_are_none() {
    let message = b"\x0a\x07\x0a\x01a\x2a\x00\x38\x00";
    let text = br#"{"metadata":{"name":"a","uid":"","generation":0}}"#;
    for (format, bytes) in [(Format::Protobuf, &message[..]), (Format::Json, text)] {
        let encoded = Encoded::read(&pods(), format, bytes, &[]).unwrap();
        let expected = "a None \"\" None None";
        assert_eq!(head(&encoded), expected, "{format:?}");
        assert_eq!(head(&encoded.metadata().unwrap()), expected);
        assert_eq!(head(&encoded.decode::<Pod>().unwrap()), expected);
        assert_eq!(head(&Dynamic::decode(&encoded).unwrap()), expected);
        assert_eq!(head(&Decoded::<Pod>::decode(&encoded)), expected);
    }
    let own = PartialObjectMetadata {
        metadata: ObjectMeta {
            uid: Some(String::new()),
            generation: Some(0),
            ..Default::default()
        },
        ..Default::default()
    };
    assert_eq!((own.uid(), own.generation()), (None, None));
}

/// No bytes at all are no time, and so is the year 1; whatever else there is has seconds, if only zero.
#[test]
fn times_of_deletion_are_those_of_go() {
    for (time, expected) in [
        (&b""[..], None),
        (b"\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01", None),
        (b"\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01\x10\x80\x89\x7a", None),
        (b"\x10\x80\x89\x7a", Some("1970-01-01T00:00:00Z")),
        (b"\x80\x03\x01", Some("1970-01-01T00:00:00Z")),
        (b"\x08\x05\x10\x80\x89\x7a", Some("1970-01-01T00:00:05Z")),
    ] {
        let mut metadata = b"\x0a\x01a".to_vec();
        crate::wire::put_bytes(&mut metadata, 9, time);
        let mut message = Vec::new();
        crate::wire::put_bytes(&mut message, 1, &metadata);
        let encoded = Encoded::read(&pods(), Format::Protobuf, &message, &[]).unwrap();
        let expected = expected.map(|time| time.parse().unwrap());
        assert_eq!(encoded.deletion_timestamp(), expected, "{}", time.escape_ascii());
        let decoded = Dynamic::decode(&encoded).unwrap();
        assert_eq!(decoded.deletion_timestamp(), expected, "{}", time.escape_ascii());
        assert_eq!(encoded.decode::<Pod>().unwrap().deletion_timestamp(), expected);
    }
}

#[test]
fn pruning_commutes_with_decoding() {
    let prune = [FieldPath::managed_fields(), "spec.containers[*].image".parse().unwrap()];
    let pruned = Encoded::read(&pods(), Format::Json, POD.as_bytes(), &prune).unwrap();
    let mut expected: Pod = serde_json::from_str(POD).unwrap();
    expected.metadata.managed_fields = None;
    for container in &mut expected.spec.as_mut().unwrap().containers {
        container.image = None;
    }
    assert_eq!(pruned.decode::<Pod>().unwrap(), expected);
}

#[test]
fn view_reads_scalars() {
    let encoded = Encoded::read(&pods(), Format::Json, POD.as_bytes(), &[]).unwrap();
    for (path, expected) in [
        ("spec.nodeName", "n"),
        ("spec.containers[*].image", "i1 i2"),
        ("metadata.labels.app", "web"),
        ("metadata.generation", "3"),
        ("metadata.labels", ""),
        ("spec.nothing.at.all", ""),
    ] {
        let mut found = Vec::new();
        encoded.field(&path.parse().unwrap(), &mut |text| found.push(text.to_owned())).unwrap();
        assert_eq!(found.join(" "), expected, "{path}");
    }
}

#[test]
fn a_watch_may_be_cut_anywhere() {
    let text = format!(
        "{{\"type\":\"ADDED\",\"object\":{POD}}}\n {{\"object\":{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"7\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}},\"type\":\"BOOKMARK\"}}{{\"type\":\"ERROR\",\"object\":{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}}}}"
    );
    for cut in 0..text.len() {
        let mut decoder =
            WatchDecoder::new(Collection::new(pods()), Format::Json, Limits::default());
        let mut log = Vec::new();
        for part in [&text[..cut], &text[cut..]] {
            decoder.push(Bytes::copy_from_slice(part.as_bytes()));
            loop {
                match decoder.next() {
                    Ok(Some(Event::Added(pod))) => log.push(format!("+{}", pod.key())),
                    Ok(Some(Event::Bookmark(b))) => {
                        log.push(format!("={:?}{}", b.resource_version, b.initial_events_end));
                    }
                    Ok(Some(other)) => log.push(format!("{other:?}")),
                    Ok(None) => break,
                    Err(WatchError::Status(status)) => {
                        log.push(format!("!{}", status.is_expired()))
                    }
                    Err(error) => log.push(error.to_string()),
                }
            }
        }
        assert_eq!(log, ["+b/a", "=\"7\"true", "!true"], "cut at {cut}");
    }
}

#[test]
fn a_list_may_be_cut_anywhere_and_have_any_key_order() {
    let meta = r#""metadata":{"resourceVersion":"9","continue":"t","remainingItemCount":2}"#;
    let items = format!(r#""items":[{POD} , {POD}]"#);
    let kind = r#""kind":"PodList","apiVersion":"v1""#;
    for text in [
        format!("{{{kind},{meta},{items}}}\n"),
        format!(" {{ {items} ,{meta}, {kind}}} "),
        format!("{{\"x\":[{{}}],{meta},{items},{kind}}}"),
    ] {
        for cut in 0..text.len() {
            let mut decoder =
                ListDecoder::new(Collection::new(pods()), Format::Json, Limits::default());
            let (mut items, mut metas) = (0, 0);
            for part in [&text[..cut], &text[cut..]] {
                decoder.push(Bytes::copy_from_slice(part.as_bytes()));
                while let Some(part) = decoder.next().unwrap() {
                    match part {
                        ListPart::Item(pod) => {
                            assert_eq!(pod.key().as_str(), "b/a");
                            items += 1;
                        }
                        ListPart::Meta(meta) => {
                            assert_eq!(meta.continue_token.as_deref(), Some("t"));
                            metas += 1;
                        }
                        ListPart::Unreadable(error) => panic!("{error}"),
                    }
                }
            }
            assert_eq!((items, metas), (2, 1), "cut at {cut} of {text}");
            decoder.finish().unwrap();
        }
    }
}

#[test]
fn answers_are_objects_or_status() {
    let collection = Collection::new(pods());
    let answer = decode_object(&collection, Format::Json, POD.as_bytes()).unwrap();
    assert!(matches!(answer, Answer::Object(pod) if pod.name() == "a"));
    let status = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;
    let answer = decode_object(&collection, Format::Json, status).unwrap();
    assert!(matches!(answer, Answer::Status(status) if status.is_success()));
    let scale = br#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a"}}"#;
    let answer = decode_object(&collection, Format::Json, scale).unwrap();
    assert!(matches!(answer, Answer::Object(scale) if scale.resource().kind == "Scale"));
}

#[test]
fn an_object_that_does_not_decode_is_named_without_contents() {
    let text = POD.replace("\"image\":\"i2\"", "\"image\":{\"secret\":1}");
    let encoded = Encoded::read(&pods(), Format::Json, text.as_bytes(), &[]).unwrap();
    let error = encoded.decode::<Pod>().unwrap_err();
    assert_eq!(error.key.as_str(), "b/a");
    assert_eq!(error.path, "spec.containers[1].image");
    assert_eq!(error.problem, "invalid type: map, expected a string");
    let text = POD.replace("\"nodeName\":\"n\"", "\"nodeName\":\"n\",\"priority\":\"secret\"");
    let encoded = Encoded::read(&pods(), Format::Json, text.as_bytes(), &[]).unwrap();
    let error = encoded.decode::<Pod>().unwrap_err();
    assert_eq!(error.to_string().find("secret"), None);
    assert_eq!(error.path, "spec.priority");
}

/// The fast way for the frequent request gives what the general way gives.
#[test]
fn managed_fields_are_cut_wherever_they_stand() {
    let prune = [FieldPath::managed_fields()];
    let general = [FieldPath::managed_fields(), "x.y".parse().unwrap()];
    for metadata in [
        r#"{"managedFields":[{"a":"},]\""}],"name":"a","uid":"u"}"#,
        r#"{ "managedFields" : [] , "name":"a" , "labels":{"k":"v"}}"#,
        r#"{"name":"a","managedFields":null,"labels":{"k":"v","l":"\u0041"},"uid":"u"}"#,
        r#"{"labels":{"k":"v"},"name":"a","managedFields":[{}]}"#,
        r#"{"managedFields":[{}]}"#,
        r#"{"managedFields":[{}],"name":"a","managedFields":[{}],"uid":"u"}"#,
        r#"{"name":"a"}"#,
    ] {
        let text = format!(r#"{{"metadata":{metadata},"spec":{{"managedFields":1}}}}"#);
        let read = |prune: &[FieldPath]| {
            Encoded::read(&pods(), Format::Json, text.as_bytes(), prune).unwrap()
        };
        let (fast, slow) = (read(&prune), read(&general));
        assert_eq!(head(&fast), head(&slow), "{text}");
        let value = |object: &Encoded| object.decode::<serde_json::Value>().unwrap();
        assert_eq!(value(&fast), value(&slow), "{text}");
        assert_eq!(value(&fast)["metadata"].get("managedFields"), None, "{text}");
        assert_eq!(value(&fast)["spec"]["managedFields"], 1, "{text}");
        if !fast.name().is_empty() {
            assert_eq!(head(&fast), head(&fast.metadata().unwrap()), "{text}");
        }
    }
}

/// A cut may take a byte from the length in front of the metadata, and then moves what stands before it, too.
#[test]
fn a_head_stays_the_same_when_managed_fields_are_cut() {
    let prune = [FieldPath::managed_fields()];
    let general = [FieldPath::managed_fields(), "x.y".parse().unwrap()];
    let message = crate::schema::kind("", "v1", "Pod").unwrap();
    for note in (0..300).step_by(7) {
        for managed in [0, 1, 90, 130, 17_000] {
            let (note, managed) = ("n".repeat(note), "m".repeat(managed));
            let text = format!(
                r#"{{"metadata":{{"name":"a","namespace":"b","uid":"u","resourceVersion":"1x","generation":3,
                "labels":{{"k":"v","l":"w"}},"annotations":{{"note":"{note}"}},
                "ownerReferences":[{{"apiVersion":"apps/v1","kind":"X","name":"o","uid":"p","controller":true}}],
                "managedFields":[{{"manager":"{managed}"}}]}}}}"#
            );
            let mut bytes = Vec::new();
            crate::transcode::to_protobuf(text.as_bytes(), message, &mut bytes).unwrap();
            for (format, bytes) in [(Format::Json, text.as_bytes()), (Format::Protobuf, &bytes)] {
                let read =
                    |prune: &[FieldPath]| Encoded::read(&pods(), format, bytes, prune).unwrap();
                let (whole, cut) = (read(&[]), read(&prune));
                assert_eq!(head(&cut), head(&whole));
                // In JSON the general way writes no white space.
                if format == Format::Protobuf {
                    assert_eq!(cut.bytes(), read(&general).bytes());
                }
                assert_eq!(head(&cut), head(&cut.metadata().unwrap()));
            }
        }
    }
}

/// Texts beyond the first 64 KiB, and those that the bytes do not have as they read.
#[test]
fn heads_of_large_objects_and_of_escaped_texts_are_whole() {
    for size in [0, 65_500, 65_530, 70_000] {
        let text = format!(
            r#"{{"data":{{"k":"{}"}},"metadata":{{"name":"\u0061b","namespace":"n\u0073","resourceVersion":"0\u0031",
            "deletionTimestamp":"2026-01-02T03:04:05.5Z","generation":0,"labels":{{"\u006b":"\u0076","l":""}},
            "ownerReferences":[{{"apiVersion":"v1","kind":"\u004b","name":"o","uid":"p"}}]}}}}"#,
            "x".repeat(size)
        );
        let read = |text: &str| Encoded::read(&pods(), Format::Json, text.as_bytes(), &[]).unwrap();
        let object = read(&text);
        assert_eq!(object.bytes(), text.as_bytes());
        assert_eq!((object.key_ref().to_string(), object.label("k")), ("ns/ab".into(), Some("v")));
        assert_eq!(object.resource_version(), ResourceVersion::new("01"));
        assert_eq!(head(&object), head(&object.metadata().unwrap()));
        assert_eq!(object, read(&text));
        assert_ne!(object, read(&text.replace("2026", "2027")));
    }
}
