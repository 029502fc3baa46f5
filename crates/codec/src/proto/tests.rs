use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Volume};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Deserialize;

use super::*;
use crate::schema;

fn message(api_version: &str, kind: &str) -> &'static Message {
    schema::kind_of(api_version, kind).unwrap()
}

/// A field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length as u8) | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

fn pod(bytes: &[u8]) -> Result<Pod, Error> {
    from_slice(bytes, message("v1", "Pod"), &Options::of("v1", "Pod"))
}

#[test]
fn a_list_in_separate_places_is_one_list() {
    let volume = |name: &str| field(1, &field(1, name.as_bytes()));
    let node_name = field(10, b"node");
    let spec = [volume("a"), node_name.clone(), volume("b"), volume("c"), node_name].concat();
    let pod = pod(&field(2, &spec)).unwrap();
    let spec = pod.spec.unwrap();
    let names: Vec<String> =
        spec.volumes.unwrap().into_iter().map(|volume: Volume| volume.name).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(spec.node_name.as_deref(), Some("node"));
}

#[test]
fn the_last_of_several_scalars_counts_wherever_it_is() {
    let host = |name: &[u8]| field(16, name);
    for spec in [
        [[0x82, 0x01, 1, b'a'].to_vec(), [0x82, 0x01, 1, b'b'].to_vec()].concat(),
        [[0x82, 0x01, 1, b'a'].to_vec(), field(10, b"n"), [0x82, 0x01, 1, b'b'].to_vec()].concat(),
    ] {
        assert_eq!(pod(&field(2, &spec)).unwrap().spec.unwrap().hostname.as_deref(), Some("b"));
    }
    assert_eq!(host(b"a")[0], 0x82, "sixteen needs a tag of two bytes");
}

#[test]
fn parts_of_one_message_are_refused() {
    let error = pod(&[field(2, b""), field(2, b"")].concat()).unwrap_err();
    assert_eq!(error.problem(), &Problem::Split);
    assert_eq!(error.offset(), Some(2));
}

#[test]
fn zero_and_absent_differ_where_go_tells_them_apart() {
    // hostNetwork (11) is omitted when empty; activeDeadlineSeconds (5) is a pointer; nodeName (10) is omitted.
    let spec = [vec![0x58, 0, 0x28, 0], field(10, b"")].concat();
    let spec = pod(&field(2, &spec)).unwrap().spec.unwrap();
    assert_eq!((spec.host_network, spec.active_deadline_seconds), (None, Some(0)));
    assert_eq!(spec.node_name, None);
    assert!(spec.containers.is_empty());
}

#[test]
fn what_json_always_shows_is_there_without_the_wire() {
    #[derive(Deserialize)]
    struct Container {
        name: String,
        resources: BTreeMap<String, serde_json::Value>,
    }
    #[derive(Deserialize)]
    struct Spec {
        containers: Vec<Container>,
    }
    #[derive(Deserialize)]
    struct Pod {
        #[serde(rename = "apiVersion")]
        api_version: String,
        kind: String,
        spec: Spec,
    }
    let bytes = field(2, &field(2, b""));
    let pod: Pod = from_slice(&bytes, message("v1", "Pod"), &Options::of("v1", "Pod")).unwrap();
    assert_eq!((pod.api_version.as_str(), pod.kind.as_str()), ("v1", "Pod"));
    assert_eq!(pod.spec.containers[0].name, "");
    assert!(pod.spec.containers[0].resources.is_empty());
}

#[test]
fn numbers_may_be_packed() {
    // supplementalGroups is field 4 of the security context, which is field 14 of the spec.
    let groups = [field(4, &[1, 0x96, 0x01]), vec![0x20, 7]].concat();
    let spec = field(14, &groups);
    let context = pod(&field(2, &spec)).unwrap().spec.unwrap().security_context.unwrap();
    assert_eq!(context.supplemental_groups, Some(vec![1, 150, 7]));
}

#[test]
fn managed_fields_are_skipped_on_demand() {
    let entry = [0x8a, 0x01, 3, 0x0a, 1, b'm'];
    let bytes = field(1, &entry);
    let options = Options::of("v1", "Pod");
    let kept: Pod = from_slice(&bytes, message("v1", "Pod"), &options).unwrap();
    assert_eq!(kept.metadata.managed_fields.unwrap()[0].manager.as_deref(), Some("m"));
    let cut: Pod =
        from_slice(&bytes, message("v1", "Pod"), &options.without_managed_fields()).unwrap();
    assert_eq!(cut.metadata.managed_fields, None);
}

#[test]
fn what_a_type_lacks_is_counted() {
    #[derive(Deserialize)]
    struct Named {
        metadata: serde_json::Value,
    }
    let known = [field(1, &field(1, b"a")), field(2, &field(10, b"n"))].concat();
    let unknown = [known.clone(), field(15, b"?")].concat();
    let read = |bytes: &[u8]| {
        from_slice_lossy::<Named>(bytes, message("v1", "Pod"), &Options::of("v1", "Pod"))
            .map(|(named, lost)| (named.metadata["name"].clone(), lost))
            .unwrap()
    };
    assert_eq!(read(&known), ("a".into(), Lost { unknown: 0, ignored: 1 }));
    assert_eq!(read(&unknown), ("a".into(), Lost { unknown: 1, ignored: 1 }));
    let (_, lost) =
        from_slice_lossy::<Pod>(&unknown, message("v1", "Pod"), &Options::default()).unwrap();
    assert_eq!(lost, Lost { unknown: 1, ignored: 0 });
}

#[test]
fn a_second_look_at_fields_out_of_order_counts_nothing_twice() {
    let (name, unknown) = (field(1, &field(1, b"a")), field(15, b"x"));
    for parts in [[&name, &unknown, &unknown], [&unknown, &name, &unknown]] {
        let bytes = parts.map(Vec::as_slice).concat();
        let options = Options::default();
        let (map, lost) =
            from_slice_lossy::<ConfigMap>(&bytes, message("v1", "ConfigMap"), &options).unwrap();
        assert_eq!((map.metadata.name.as_deref(), lost.unknown), (Some("a"), 2));
    }
}

#[test]
fn errors_tell_the_place_and_not_the_value() {
    // dnsPolicy of the wrong wire type, in the second container's name; and a secret where a number belongs.
    let spec = [field(2, &field(1, b"a")), field(2, &[0x08, 1])].concat();
    let error = pod(&field(2, &spec)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the wire type is not that of the schema at spec.containers[1].name"
    );

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "never decoded")]
    struct Wrong {
        data: BTreeMap<String, u32>,
    }
    let bytes = field(2, &[field(1, b"key"), field(2, b"hunter2")].concat());
    let error = from_slice::<Wrong>(&bytes, message("v1", "ConfigMap"), &Options::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "a string where u32 is expected at data['key'] (byte 9)"
    );
}

#[test]
fn nesting_is_bounded() {
    let mut schema = field(1, b"id");
    for _ in 0..100_000 {
        // `not` is field 28: a tag of two bytes.
        let mut outer = vec![0xe2, 0x01];
        outer.extend_from_slice(&field(0, &schema)[1..]);
        schema = outer;
        if schema.len() > 300_000 {
            break;
        }
    }
    let version = field(4, &field(1, &schema));
    let bytes = field(2, &field(7, &version));
    let message = message("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let error = from_slice::<CustomResourceDefinition>(&bytes, message, &Options::default());
    assert_eq!(error.unwrap_err().problem(), &Problem::Depth);
}

#[test]
fn an_enum_of_the_users_own_is_read() {
    #[derive(Debug, PartialEq, Deserialize)]
    enum Policy {
        Always,
        Never,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Source {
        HostPath { path: String },
        Secret(BTreeMap<String, String>),
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Volume {
        name: String,
        #[serde(flatten)]
        source: Source,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        restart_policy: Policy,
        volumes: Vec<Volume>,
    }
    #[derive(Deserialize)]
    struct Pod {
        spec: Spec,
    }
    let volume = |source: Vec<u8>| field(1, &[field(1, b"v"), field(2, &source)].concat());
    let spec =
        [volume(field(1, &field(1, b"/p"))), volume(field(6, &field(1, b"s"))), field(3, b"Never")]
            .concat();
    let bytes = field(2, &spec);
    let pod: Pod = from_slice(&bytes, message("v1", "Pod"), &Options::default()).unwrap();
    assert_eq!(pod.spec.restart_policy, Policy::Never);
    assert_eq!(pod.spec.volumes[0].name, "v");
    assert_eq!(pod.spec.volumes[0].source, Source::HostPath { path: "/p".to_owned() });
    let secret = BTreeMap::from([("secretName".to_owned(), "s".to_owned())]);
    assert_eq!(pod.spec.volumes[1].source, Source::Secret(secret));
}

#[test]
fn text_can_be_borrowed() {
    #[derive(Deserialize)]
    struct Map<'a> {
        #[serde(borrow)]
        data: BTreeMap<&'a str, &'a str>,
    }
    let bytes = field(2, &[field(1, b"k"), field(2, b"v")].concat());
    let map: Map<'_> = from_slice(&bytes, message("v1", "ConfigMap"), &Options::default()).unwrap();
    assert!(std::ptr::eq(map.data["k"].as_ptr(), &raw const bytes[7]));
}

#[test]
fn text_that_is_no_utf8_is_shown_with_replacements() {
    let bytes = field(2, &[field(1, b"k"), field(2, b"v\xff")].concat());
    let map: ConfigMap =
        from_slice(&bytes, message("v1", "ConfigMap"), &Options::default()).unwrap();
    assert_eq!(map.data.unwrap()["k"], "v\u{fffd}");
}

#[test]
fn a_raw_extension_may_hold_protobuf_or_json() {
    let event = message("v1", "WatchEvent");
    let config_map = field(1, &field(1, b"a"));
    let types = field(1, &[field(1, b"v1"), field(2, b"ConfigMap")].concat());
    let envelope = [b"k8s\0".to_vec(), types, field(2, &config_map)].concat();
    let read = |raw: &[u8]| {
        let bytes = [field(1, b"ADDED"), field(2, &field(1, raw))].concat();
        from_slice::<serde_json::Value>(&bytes, event, &Options::default())
            .map(|value| value["object"].clone())
    };
    assert_eq!(
        read(&envelope).unwrap(),
        serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    );
    assert_eq!(read(br#"{"a":[1]}"#).unwrap(), serde_json::json!({"a": [1]}));
    assert_eq!(read(b"").unwrap(), serde_json::Value::Null);
    assert_eq!(read(b"{").unwrap_err().problem(), &Problem::Json);
    assert_eq!(read(b"k8s\0").unwrap_err().problem(), &Problem::UnknownKind);
}
