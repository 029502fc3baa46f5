//! What a value lacks of its object is noticed, and is not lost by an update.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{
    Answer, Collection, FieldPath, Format, Kind, Object as _, ObjectMeta, Operation, PatchKind,
    ResourceType, Scope,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::service;
use super::{POD, pods};
use crate::{
    Client as _, ClientError, Decoded, Dynamic, Encoded, Tracked, Write, decode_object, schema,
    transcode,
};

fn json(text: &str) -> Encoded {
    Encoded::read(&pods(), Format::Json, text.as_bytes(), &[]).unwrap()
}

fn protobuf(message: &[u8]) -> Encoded {
    Encoded::read(&pods(), Format::Protobuf, message, &[]).unwrap()
}

/// The message of a pod given as JSON.
fn message(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    transcode::to_protobuf(text.as_bytes(), schema::kind("", "v1", "Pod").unwrap(), &mut out)
        .unwrap();
    out
}

fn lost(encoded: &Encoded) -> Vec<String> {
    let pod = Tracked::<Pod>::decode(encoded).unwrap();
    let unknown = pod.unknown_fields();
    assert_eq!(pod.is_partial(), unknown.is_some());
    assert_eq!(Decoded::<Pod>::decode(encoded).is_partial(), pod.is_partial());
    unknown.map(|unknown| unknown.paths).unwrap_or_default()
}

const FUTURE: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b",
    "managedFields":[{"manager":"m"}],"selfLink":"","new":"secret"},
    "spec":{"nil":null,"future":{"a":[1,{}]},"containers":[{"name":"c"},{"name":"d","deep":0}],
    "nodeSelector":{"any":"key"}},"status":{"phase":"Running","later":false}}"#;

#[test]
fn json_tells_what_a_type_passes_over() {
    assert_eq!(lost(&json(POD)), [""; 0]);
    assert_eq!(
        lost(&json(FUTURE)),
        ["metadata.new", "spec.future", "spec.containers[1].deep", "status.later"]
    );
    let catch_all = json(FUTURE).decode::<BTreeMap<String, Value>>().unwrap();
    assert_eq!(catch_all.len(), 5);
    assert!(!Dynamic::decode(&json(FUTURE)).unwrap().is_partial(), "a JSON value holds all");
}

#[test]
fn protobuf_tells_what_the_schema_does_not_know() {
    let whole = message(POD);
    assert_eq!(lost(&protobuf(&whole)), [""; 0]);
    // Field 99 at the top, a varint; and field 100 of a new volume, in a message in a list.
    let future = [&whole[..], &[0x98, 0x06, 1]].concat();
    assert_eq!(lost(&protobuf(&future)), ["#99"]);
    let volume = [0x12, 8, 0x0a, 6, 0x0a, 1, b'v', 0xa2, 0x06, 0];
    let nested = [&cut_spec(&message(r#"{"metadata":{"name":"a"}}"#))[..], &volume].concat();
    assert_eq!(lost(&protobuf(&nested)), ["spec.volumes[0].#100"]);
    let dynamic = Dynamic::decode(&protobuf(&future)).unwrap();
    assert!(dynamic.is_partial(), "the JSON value was made by the schema");
}

/// The message of a pod without its spec and status.
fn cut_spec(message: &[u8]) -> Vec<u8> {
    let length = usize::from(message[1]);
    assert!(message[0] == 0x0a && length < 0x80, "metadata comes first, and is short");
    message[..length + 2].to_vec()
}

/// A type of a user who wants little.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Small {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: SmallSpec,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SmallSpec {
    node_name: Option<String>,
    containers: Vec<Value>,
}

#[test]
fn a_small_type_lacks_the_same_in_both_formats() {
    let text = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","managedFields":[{"manager":"m"}]},
        "spec":{"nodeName":"n","containers":[{"name":"c"}],"hostNetwork":true,"activeDeadlineSeconds":0}}"#;
    for encoded in [json(text), protobuf(&message(text))] {
        let (_, count) = crate::decode::object::<Small>(&encoded, &crate::Limits::DEFAULT).unwrap();
        let mut names = crate::decode::lost_fields::<Small>(&encoded);
        names.sort_unstable();
        assert!(count > 0, "{:?}", encoded.format());
        // A zero behind a pointer says something; a status without anything in it, as Go writes it, does not.
        assert!(names.contains(&"spec.hostNetwork".to_owned()), "{names:?}");
        assert!(names.contains(&"spec.activeDeadlineSeconds".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("managedFields")), "{names:?}");
    }
    let plain = r#"{"metadata":{"name":"a"},"spec":{"containers":[]}}"#;
    let (_, count) =
        crate::decode::object::<Small>(&protobuf(&message(plain)), &crate::Limits::DEFAULT)
            .unwrap();
    assert_eq!(count, 0, "what Go writes for nothing is nothing");
}

#[tokio::test]
async fn an_update_with_a_partial_value_is_refused_and_a_patch_is_not() {
    let (client, log) = service(|_| Ok(Answer::Object(json(FUTURE))));
    let mut pod = client.get::<Pod>(&"b/a".parse().unwrap()).await.unwrap();
    pod.metadata.labels = Some([("x".to_owned(), "y".to_owned())].into());
    let error = client.update(&pod).await.unwrap_err();
    let ClientError::UnknownFields(unknown) = &error else { panic!("{error:?}") };
    assert_eq!(unknown.key.as_str(), "b/a");
    assert_eq!(unknown.paths.len(), 4);
    assert!(!unknown.cut);
    let text = unknown.to_string();
    assert!(text.contains("spec.future") && !text.contains("secret"), "{text}");
    assert!(matches!(client.update_status(&pod).await, Err(ClientError::UnknownFields(unknown))
        if unknown.paths == ["metadata.new", "status.later"]));
    assert_eq!(log.lock().unwrap().len(), 1, "nothing was sent but the get");

    let patch = json!({"metadata": {"labels": {"x": "y"}}});
    client.patch::<Pod>(&pod.key(), PatchKind::Merge, &patch).await.unwrap();
    client.apply(&*pod, "me", false).await.unwrap();
    client.create(&*pod).await.unwrap();
    client.update(&Tracked::new(pod.into_inner())).await.unwrap();
    let dynamic = client.get_dynamic(&pods(), &"b/a".parse().unwrap()).await.unwrap();
    client.update(&dynamic).await.unwrap();
    let log = log.lock().unwrap();
    let Operation::Update { body, .. } = &log.last().unwrap().operation else { panic!("{log:?}") };
    assert_eq!(body.format, Format::Json, "protobuf would lose what the schema lacks");
    let sent: Value = serde_json::from_slice(&body.bytes).unwrap();
    assert_eq!(sent, serde_json::from_str::<Value>(FUTURE).unwrap());
}

#[tokio::test]
async fn a_status_can_be_updated_where_only_the_spec_is_newer() {
    let text = r#"{"metadata":{"name":"a","namespace":"b"},"spec":{"future":1,"containers":[]}}"#;
    let (client, log) = service(|_| Ok(Answer::Object(json(text))));
    let pod = client.get::<Pod>(&"b/a".parse().unwrap()).await.unwrap();
    assert!(pod.is_partial());
    client.update_status(&pod).await.unwrap();
    assert!(client.update(&pod).await.is_err());
    assert!(client.update_with(&pod, Write::Update, Default::default()).await.is_err());
    assert_eq!(log.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn what_was_cut_out_is_not_lost_either() {
    let (client, log) = service(|_| Ok(Answer::Object(json(POD))));
    let spec: FieldPath = "spec.nodeName".parse().unwrap();
    let partial = |collection: &Collection| {
        let answer = decode_object(collection, Format::Json, POD.as_bytes()).unwrap();
        let Answer::Object(object) = answer else { panic!("no object") };
        Tracked::<Pod>::decode(&object).unwrap()
    };
    let all = Collection::new(pods());
    for cut in [
        partial(&all.clone().prune([spec.clone()])),
        partial(&all.clone().prune([FieldPath::managed_fields(), spec])),
        partial(&all.clone().metadata_only()),
        partial(&all).into_partial(),
    ] {
        let error = client.update(&cut).await.unwrap_err();
        let ClientError::UnknownFields(unknown) = error else { panic!("{error:?}") };
        assert!(unknown.cut && unknown.paths.is_empty(), "{unknown}");
    }
    // The server keeps its own managed fields.
    client.update(&partial(&all.clone().prune([FieldPath::managed_fields()]))).await.unwrap();
    client.update(&partial(&all)).await.unwrap();
    assert_eq!(log.lock().unwrap().len(), 2);
}

#[test]
fn a_type_of_ones_own_without_type_meta_lacks_nothing() {
    let resource = ResourceType::from_static("example.com", "v1", "W", "ws", Scope::Namespaced);
    let text = br#"{"apiVersion":"example.com/v1","kind":"W","metadata":{"name":"a"},"spec":{"nodeName":"n"}}"#;
    let encoded = Encoded::read(&resource.into(), Format::Json, text, &[]).unwrap();
    assert!(!Tracked::<Small>::decode(&encoded).unwrap().is_partial());
    assert_eq!(Pod::resource().plural, "pods");
}
