//! Tests across the modules.

mod client;
mod golden;
mod hostile;
mod limits;
mod lists;
mod lossless;
mod recorded;
mod status;

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{
    Answer, Collection, Event, FieldPath, Format, Kind as _, ListMeta, ListPart, Object,
    ResourceType, View,
};

use crate::{Encoded, Limits, ListDecoder, WatchDecoder, WatchError, decode_object};

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
        decoder.push(piece);
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
            decoder.push(part.as_bytes());
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
                decoder.push(part.as_bytes());
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
