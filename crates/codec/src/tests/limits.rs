//! Every limit is a typed error with its place, and shows nothing of the contents.

use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubestrata_api_types::Scope::{Cluster, Namespaced};
use kubestrata_api_types::{
    Collection, Event, FieldPath, Format, Kind, ListMeta, ListPart, ResourceType, Undecodable,
    View as _,
};
use serde_json::{Value, json};

use crate::collection::{self, JsonStyle};
use crate::frame::{self, EventType};
use crate::proto::{Options, Problem};
use crate::{
    Encoded, Limits, ListDecoder, ListError, WatchDecoder, WatchError, envelope, schema, transcode,
    wire,
};

fn config_map(format: Format, text: &str) -> Encoded {
    let resource = ConfigMap::resource().clone().into();
    let mut message = Vec::new();
    let bytes = match format {
        Format::Json => text.as_bytes(),
        Format::Protobuf => {
            let table = schema::kind("", "v1", "ConfigMap").unwrap();
            transcode::to_protobuf(text.as_bytes(), table, &mut message).unwrap();
            &message
        }
    };
    Encoded::read(&resource, format, bytes, &[]).unwrap()
}

#[test]
fn strings_are_bounded() {
    let long = "s3cret".repeat(20);
    for format in [Format::Json, Format::Protobuf] {
        for text in [
            format!(r#"{{"metadata":{{"name":"a"}},"data":{{"k":"{long}"}}}}"#),
            format!(r#"{{"metadata":{{"name":"a"}},"data":{{"{long}":"v"}}}}"#),
            format!(
                r#"{{"metadata":{{"name":"a"}},"binaryData":{{"k":"{}"}}}}"#,
                "AAAA".repeat(50)
            ),
        ] {
            let object = config_map(format, &text);
            let limits = |string_bytes| Limits { string_bytes, ..Limits::default() };
            object.decode_within::<ConfigMap>(&limits(200)).unwrap();
            let error: Undecodable = object.decode_within::<ConfigMap>(&limits(119)).unwrap_err();
            assert!(error.problem.contains("longer than the limit"), "{error}");
            assert!(error.offset > 0 && error.offset <= object.bytes().len());
            assert!(!error.problem.contains("s3cret"), "{error}");
        }
    }
}

/// Each limit ends what is one beyond it, and nothing that is at it.
#[test]
fn frames_items_depth_and_strings_end_exactly_at_their_limit() {
    let (pods, name) = (Arc::new(Pod::resource().clone()), "n".repeat(100));
    let text = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"a":[{{}}]}}}}"#);
    let mut message = b"\x0a\x66".to_vec();
    wire::put_bytes(&mut message, 1, name.as_bytes());
    for (format, object) in [(Format::Json, text.as_bytes()), (Format::Protobuf, &message[..])] {
        let event = frame::encode(EventType::Added, format, &pods, object);
        // The line feed of JSON and the length of protobuf are not the event's.
        let size = event.len() - if format == Format::Json { 1 } else { 4 };
        let watch = |limits: Limits| {
            let mut decoder = WatchDecoder::new(Collection::new(pods.clone()), format, limits);
            decoder.push(Bytes::copy_from_slice(&event));
            decoder.next().map(Option::unwrap)
        };
        let frames = |frame_bytes| Limits { frame_bytes, ..Limits::DEFAULT };
        assert!(matches!(watch(frames(size)), Ok(Event::Added(_))), "{format:?}");
        let Err(WatchError::TooLarge { limit }) = watch(frames(size - 1)) else {
            panic!("{format:?}: a frame beyond its limit")
        };
        assert_eq!(limit, size - 1);

        let list = |item_bytes| {
            let limits = Limits { item_bytes, ..Limits::DEFAULT };
            let mut decoder = ListDecoder::new(Collection::new(pods.clone()), format, limits);
            let meta = ListMeta::default();
            decoder.push(Bytes::from(match format {
                Format::Json => {
                    let list = collection::json(JsonStyle::Typed, "v1", "PodList", &meta);
                    [&list.head, object, &list.tail].concat()
                }
                Format::Protobuf => {
                    let size = collection::protobuf_item_size(object.len());
                    let head = collection::protobuf_head("v1", "PodList", &meta, size);
                    let item = collection::protobuf_item_head(object.len());
                    [&head, &item, object, collection::PROTOBUF_TAIL].concat()
                }
            }));
            while let Some(part) = decoder.next()? {
                assert!(!matches!(part, ListPart::Unreadable(_)));
            }
            decoder.finish()
        };
        list(object.len()).unwrap();
        let limit = object.len() - 1;
        let error = list(limit).unwrap_err();
        assert!(matches!(error, ListError::TooLarge { limit: at } if at == limit), "{error:?}");

        let strings = |string_bytes| Limits { string_bytes, ..Limits::DEFAULT };
        assert!(matches!(watch(strings(100)), Ok(Event::Added(_))), "{format:?}");
        let Ok(Event::Unreadable(error)) = watch(strings(99)) else {
            panic!("{format:?}: a name beyond its limit")
        };
        assert!(error.problem.contains("longer than the limit"), "{error:?}");
    }
    // The text nests four deep, the object itself included.
    let read = |depth| {
        let limits = Limits { depth, ..Limits::DEFAULT };
        let mut decoder = WatchDecoder::new(Collection::new(pods.clone()), Format::Json, limits);
        let frame = frame::encode(EventType::Added, Format::Json, &pods, text.as_bytes());
        decoder.push(Bytes::from(frame));
        decoder.next().unwrap().unwrap()
    };
    assert!(matches!(read(4), Event::Added(_)));
    let Event::Unreadable(error) = read(3) else { panic!("nested beyond the limit") };
    assert!(error.problem.contains("nested too deep"), "{error:?}");
}

#[test]
fn depth_is_bounded_where_a_value_is_made() {
    let text =
        format!(r#"{{"metadata":{{"name":"a"}},"x":{}1{}}}"#, "[".repeat(60), "]".repeat(60));
    let object = config_map(Format::Json, &text);
    object.decode::<Value>().unwrap();
    let shallow = Limits { depth: 1, ..Limits::default() };
    let object = config_map(Format::Protobuf, r#"{"metadata":{"name":"a"}}"#);
    let error = object.decode_within::<ConfigMap>(&shallow).unwrap_err();
    assert_eq!((&*error.problem, &*error.path), ("nested too deep", "metadata"));
}

/// Where and why a text or message does not decode as a `K`; it must not show `s3cret`.
fn refused<K: Kind + serde::de::DeserializeOwned>(format: Format, bytes: &[u8]) -> String {
    let resource = K::resource().clone().into();
    let error = match Encoded::read(&resource, format, bytes, &[]) {
        Err(unreadable) => format!("unreadable: {}", unreadable.problem),
        Ok(object) => match object.decode::<K>() {
            Ok(_) => "fine".to_owned(),
            Err(error) => {
                assert!(error.offset <= bytes.len());
                format!("{}: {}", error.path, error.problem)
            }
        },
    };
    assert!(!error.contains("s3cret"), "{error}");
    error
}

#[test]
fn malformed_json_is_named_by_place_and_not_shown() {
    let pod = |rest: &str| {
        let text = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"containers":[],{rest}}}}}"#);
        refused::<Pod>(Format::Json, text.as_bytes())
    };
    for (text, error) in [
        (
            r#""priority":9223372036854775808"#,
            "spec.priority: invalid value: integer, expected i32",
        ),
        (r#""priority":1e999"#, "spec.priority: malformed JSON"),
        (r#""priority":NaN"#, "spec.priority: malformed JSON"),
        (r#""priority":"s3cret""#, "spec.priority: invalid type: string, expected i32"),
        (r#""nodeName":["s3cret"]"#, "spec.nodeName: invalid type: sequence, expected a string"),
        // Of equal keys the last counts, as in Go.
        (r#""nodeName":"a","nodeName":"b""#, "fine"),
    ] {
        assert_eq!(pod(text), error, "{text}");
    }
    let bytes =
        b"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[],\"nodeName\":\"s3cret\xff\"}}";
    assert_eq!(refused::<Pod>(Format::Json, bytes), "spec.nodeName: malformed JSON");
    let bomb = format!(r#"{{"metadata":{{"name":"a"}},"x":{}"#, "[".repeat(1 << 20));
    assert!(refused::<Pod>(Format::Json, bomb.as_bytes()).contains("nested too deep"));
}

#[test]
fn malformed_protobuf_is_named_by_place_and_not_shown() {
    let metadata = b"\x0a\x03\x0a\x01a".as_slice();
    let pod = |spec: &[u8]| {
        let spec_length = [0x12, u8::try_from(spec.len()).unwrap()];
        refused::<Pod>(Format::Protobuf, &[metadata, &spec_length, spec].concat())
    };
    // A container that ends before its name does.
    assert_eq!(pod(b"\x12\x04\x0a\x07s3"), "spec.containers[0]: the input ends early");
    // A length of 2^63, of which nothing may be reserved.
    let lie = b"\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
    assert_eq!(pod(lie), "spec: the input ends early");
    // A varint of eleven bytes, one without end, and a field number zero.
    assert_eq!(pod(&[&b"\xc8\x01"[..], &[0xff; 10], &[1]].concat()), "spec: a number is too long");
    assert_eq!(pod(b"\xc8\x01\xff"), "spec: the input ends early");
    assert_eq!(pod(b"\x02\x01s"), "spec: invalid tag");
    // A priority (field 25) of 2^63: Go cuts it to 32 bits too.
    let large = b"\xc8\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x12\x00";
    assert_eq!(pod(large), "fine");
    // The node's name as a number.
    assert_eq!(pod(b"\x50\x01"), "spec.nodeName: the wire type is not that of the schema");
    let strange = b"\x52\x07s3cret\xff";
    assert_eq!(pod(&[&b"\x12\x00"[..], strange].concat()), "fine", "as Go shows it in JSON");
    assert!(
        refused::<Pod>(Format::Protobuf, &[metadata, metadata].concat()).contains("metadata twice")
    );
    assert_eq!(
        refused::<Pod>(Format::Protobuf, &[metadata, b"\x12\x02\x12\x00\x12\x02\x12\x00"].concat()),
        ": a single message comes in several parts"
    );
}

#[test]
fn numbers_that_json_has_no_word_for_are_refused_in_both_directions() {
    let message = schema::kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    let schema_of = |value: &str| {
        format!(
            r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{{"maximum":{value}}}}}}}]}}}}"#
        )
    };
    let mut bytes = Vec::new();
    for value in ["1e999", "-1e999"] {
        let text = schema_of(value);
        let error = transcode::to_protobuf(text.as_bytes(), message, &mut bytes).unwrap_err();
        assert_eq!(*error.problem(), Problem::Range, "{value}");
        assert!(bytes.is_empty(), "nothing is left behind");
    }
    transcode::to_protobuf(schema_of("1.5").as_bytes(), message, &mut bytes).unwrap();
    let at = bytes.windows(8).position(|window| window == 1.5_f64.to_le_bytes()).unwrap();
    bytes[at..at + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    let error =
        transcode::to_json(&bytes, message, &Options::default(), &mut Vec::new()).unwrap_err();
    assert_eq!(*error.problem(), Problem::Range);
    assert!(error.path().ends_with("openAPIV3Schema.maximum"), "{error}");
}

#[test]
fn pruning_reaches_wherever_json_shows_something() {
    let crd = r#"{"metadata":{"name":"a"},"spec":{"versions":[{"schema":{"openAPIV3Schema":{
        "properties":{"x":{"description":"d","items":{"description":"d","type":"t"},
        "additionalProperties":{"description":"d","type":"t"},
        "dependencies":{"p":{"description":"d","type":"t"},"q":["s"]},"default":{"description":"d","a":1}}}}}}]}}"#;
    let kind = "CustomResourceDefinition";
    let resource = ResourceType::from_static("apiextensions.k8s.io", "v1", kind, "crds", Cluster);
    let message = schema::resource(&resource).unwrap();
    let mut bytes = Vec::new();
    transcode::to_protobuf(crd.as_bytes(), message, &mut bytes).unwrap();
    let resource = Arc::new(resource);
    let x = "spec.versions[*].schema.openAPIV3Schema.properties.x";
    for (path, left) in [
        ("items.description", 4),
        ("additionalProperties.description", 4),
        ("dependencies.p.description", 4),
        ("dependencies[*].description", 4),
        ("default.description", 4),
        ("description", 4),
        ("dependencies", 4),
        ("[*].description", 2),
        ("nowhere.description", 5),
    ] {
        let dot = if path.starts_with('[') { "" } else { "." };
        let path: FieldPath = format!("{x}{dot}{path}").parse().unwrap();
        let decode = |format, bytes: &[u8]| {
            let prune = std::slice::from_ref(&path);
            Encoded::read(&resource, format, bytes, prune).unwrap().decode::<Value>().unwrap()
        };
        let value = decode(Format::Json, crd.as_bytes());
        let protobuf = decode(Format::Protobuf, &bytes);
        let x = |value: &Value| {
            let x = "/spec/versions/0/schema/openAPIV3Schema/properties/x";
            value.pointer(x).unwrap().to_string().matches("description").count()
        };
        assert_eq!((x(&value), x(&protobuf)), (left, left), "{path}");
        let seen = |format, bytes: &[u8]| {
            let mut seen = Vec::new();
            let object = Encoded::read(&resource, format, bytes, &[]).unwrap();
            object.field(&path, &mut |text| seen.push(text.to_owned())).unwrap();
            seen
        };
        let (json, protobuf) = (seen(Format::Json, crd.as_bytes()), seen(Format::Protobuf, &bytes));
        assert_eq!(json, protobuf, "{path}");
        assert_eq!(json.is_empty(), left == 5 || path.to_string().ends_with("dependencies"));
    }
}

#[test]
fn pruning_reaches_into_an_object_in_a_raw_extension() {
    // A controller revision that holds a whole config map in its envelope.
    let map = b"\x0a\x03\x0a\x01m\x12\x06\x0a\x01k\x12\x01v\x12\x06\x0a\x01l\x12\x01w";
    let object = envelope::close("v1", "ConfigMap", map);
    let mut data = Vec::new();
    wire::put_bytes(&mut data, 1, &object);
    let mut message = b"\x0a\x03\x0a\x01a".to_vec();
    wire::put_bytes(&mut message, 2, &data);
    let kind = "ControllerRevision";
    let resource = ResourceType::from_static("apps", "v1", kind, "controllerrevisions", Namespaced);
    let resource = Arc::new(resource);
    let path: FieldPath = "data.data.k".parse().unwrap();
    let whole = Encoded::read(&resource, Format::Protobuf, &message, &[]).unwrap();
    let pruned = Encoded::read(&resource, Format::Protobuf, &message, &[path]).unwrap();
    let data = |object: &Encoded| object.decode::<Value>().unwrap()["data"]["data"].clone();
    assert_eq!(data(&whole), json!({"k": "v", "l": "w"}));
    assert_eq!(data(&pruned), json!({"l": "w"}));
    assert!(whole.is_whole() && !pruned.is_whole());
}
