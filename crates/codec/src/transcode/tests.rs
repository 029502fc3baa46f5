use super::*;
use crate::proto::Problem;
use crate::schema;

fn message(api_version: &str, kind: &str) -> &'static Message {
    schema::kind_of(api_version, kind).unwrap()
}

/// JSON text through protobuf and back.
fn there_and_back(api_version: &str, kind: &str, json: &str) -> String {
    let message = message(api_version, kind);
    let mut bytes = Vec::new();
    to_protobuf(json.as_bytes(), message, &mut bytes).unwrap();
    let mut text = Vec::new();
    to_json(&bytes, message, &Options::default(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn refused(api_version: &str, kind: &str, json: &str) -> Error {
    let mut out = b"before".to_vec();
    let error = to_protobuf(json.as_bytes(), message(api_version, kind), &mut out).unwrap_err();
    assert_eq!(out, b"before");
    error
}

#[test]
fn text_is_normalised_as_the_server_does() {
    assert_eq!(
        there_and_back(
            "v1",
            "ConfigMap",
            r#" {"data" : {"b":"<\u2028>", "a":"\u00e9\n\u0001"}, "kind":"X", "immutable":null} "#
        ),
        r#"{"metadata":{},"data":{"a":"é\n\u0001","b":"\u003c\u2028\u003e"}}"#
    );
    assert_eq!(
        there_and_back("v1", "Pod", r#"{"spec":{"overhead":{"cpu":0.5,"memory":"1024Ki"}}}"#),
        r#"{"metadata":{},"spec":{"containers":null,"overhead":{"cpu":"500m","memory":"1Mi"}},"status":{}}"#
    );
}

#[test]
fn unordered_and_repeated_fields_are_put_right() {
    let message = message("v1", "ConfigMap");
    // data {"b"}, metadata {name, last of two}, data {"a"}: as an encoder in another order could write it.
    let entry = |key: u8| [0x12, 6, 0x0a, 1, key, 0x12, 1, b'v'];
    let bytes = [&entry(b'b')[..], &[0x0a, 6, 0x0a, 1, b'x', 0x0a, 1, b'y'], &entry(b'a')].concat();
    let mut text = Vec::new();
    to_json(&bytes, message, &Options::default(), &mut text).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        r#"{"metadata":{"name":"y"},"data":{"a":"v","b":"v"}}"#
    );
}

/// Of two entries with one key the last counts, and what is wrong in the first is wrong all the same, as for every decoder.
#[test]
fn entries_that_do_not_count_are_read() {
    let message = message("v1", "ConfigMap");
    let (good, bad) = (b"\x12\x06\x0a\x01k\x12\x01v", b"\x12\x05\x0a\x01k\x10\x01");
    let shown = |bytes: &[u8]| {
        let mut text = Vec::new();
        to_json(bytes, message, &Options::default(), &mut text)
            .map(|_| String::from_utf8(text).unwrap())
    };
    let twice = [&good[..], good].concat();
    assert_eq!(shown(&twice).unwrap(), r#"{"metadata":{},"data":{"k":"v"}}"#);
    let error = shown(&[&bad[..], good].concat()).unwrap_err();
    assert_eq!((error.problem(), &*error.path()), (&Problem::WireType, "data['k']"));
}

#[test]
fn what_the_schema_lacks_is_noted() {
    let text = br#"{"kind":"Deployment","apiVersion":"apps/v1","spec":{"x":[{"y":1}],"replicas":1,
        "template":{"kind":"no","spec":{"containers":[{"name":"a"},{"nme":"b"}]}},"replicas":2}}"#;
    let mut bytes = Vec::new();
    let notes = to_protobuf(text, message("apps/v1", "Deployment"), &mut bytes).unwrap();
    assert_eq!(notes.api_version.as_deref(), Some("apps/v1"));
    assert_eq!(notes.kind.as_deref(), Some("Deployment"));
    assert_eq!(
        notes.unknown,
        ["spec.x", "spec.template.kind", "spec.template.spec.containers[1].nme"]
    );
    assert_eq!(notes.duplicate, ["spec.replicas"]);
    let mut text = Vec::new();
    to_json(&bytes, message("apps/v1", "Deployment"), &Options::default(), &mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains(r#""spec":{"replicas":2,"#));
}

#[test]
fn items_of_lists_may_name_their_kind() {
    let list = r#"{"items":[{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}]}"#;
    let mut bytes = Vec::new();
    let notes = to_protobuf(list.as_bytes(), message("v1", "ConfigMapList"), &mut bytes).unwrap();
    assert_eq!(notes.unknown, [""; 0]);
    assert_eq!(
        there_and_back("v1", "ConfigMapList", list),
        r#"{"metadata":{},"items":[{"metadata":{"name":"a"}}]}"#
    );
    assert_eq!(there_and_back("v1", "ConfigMapList", "{}"), r#"{"metadata":{},"items":null}"#);
}

#[test]
fn values_that_do_not_fit_are_refused_with_their_place() {
    for (json, problem) in [
        (
            r#"{"spec":{"replicas":"1"}}"#,
            "a string where an integer of 32 bits is expected at spec.replicas",
        ),
        (
            r#"{"spec":{"replicas":2147483648}}"#,
            "an integer out of range where an integer of 32 bits is expected at spec.replicas",
        ),
        (
            r#"{"spec":{"template":{"spec":{"containers":[{},{"env":{}}]}}}}"#,
            "an object where a list is expected at spec.template.spec.containers[1].env",
        ),
        (
            r#"{"metadata":{"labels":{"a":1}}}"#,
            "an integer where a string is expected at metadata.labels['a']",
        ),
        (
            r#"{"metadata":{"creationTimestamp":"yesterday"}}"#,
            "a malformed string where a time is expected at metadata.creationTimestamp",
        ),
        (r#"[]"#, "a list where an object is expected"),
        (r#"null"#, "null where an object is expected"),
    ] {
        let error = refused("apps/v1", "Deployment", json);
        let text = error.to_string();
        assert!(text.starts_with(problem), "{text}");
    }
}

#[test]
fn malformed_text_is_refused_with_its_offset() {
    for (json, offset) in
        [("", 0), ("{", 1), ("{\"a\":\n}", 7), ("{} x", 4), (r#"{"spec":{"replicas":1"#, 21)]
    {
        let error = refused("apps/v1", "Deployment", json);
        assert_eq!((error.problem(), error.offset()), (&Problem::Json, Some(offset)), "{json}");
    }
}

#[test]
fn nesting_is_bounded_both_ways() {
    let deep = format!("{}{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    refused("v1", "Pod", &format!(r#"{{"spec":{deep}}}"#));
    let crd = |schema: &str| {
        format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#)
    };
    let schema = format!("{}{}", "{\"not\":".repeat(150), "}".repeat(150));
    refused("apiextensions.k8s.io/v1", "CustomResourceDefinition", &crd(&schema));
    let schema = format!("{}{{}}{}", "{\"not\":".repeat(60), "}".repeat(60));
    let back = there_and_back("apiextensions.k8s.io/v1", "CustomResourceDefinition", &crd(&schema));
    assert_eq!(back.matches("\"not\":").count(), 60);
}

#[test]
fn managed_fields_can_be_left_out() {
    let message = message("v1", "ConfigMap");
    let text = br#"{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:data":{ ".":{}}}}]}}"#;
    let mut bytes = Vec::new();
    to_protobuf(text, message, &mut bytes).unwrap();
    let show = |options: &Options<'_>| {
        let mut out = Vec::new();
        to_json(&bytes, message, options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let all = r#"{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:data":{".":{}}}}]}}"#;
    assert_eq!(show(&Options::default()), all);
    assert_eq!(show(&Options::default().without_managed_fields()), r#"{"metadata":{"name":"a"}}"#);
}

#[test]
fn numbers_are_written_as_go_writes_them() {
    for (value, expected) in [
        (0.0, "0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e-7, "1.5e-7"),
        (0.000_001, "0.000001"),
        (f64::MAX, "1.7976931348623157e+308"),
    ] {
        let mut out = Vec::new();
        text::float(&mut out, value).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    assert!(text::float(&mut Vec::new(), f64::NAN).is_err());
}
