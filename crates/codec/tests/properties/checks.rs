//! The properties of one object, each a function that takes any input.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{
    FieldPath, Format, Object, ResourceType, Scope, Segment, Unreadable, View,
};
use kubestrata_codec::schema::{self, Kind, Message};
use kubestrata_codec::{Dynamic, Encoded, proto, transcode};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dice::Dice;
use crate::memory::bounded;

/// The type of a kind's objects.
pub(crate) fn resource(kind: &Kind) -> Arc<ResourceType> {
    Arc::new(ResourceType::new(kind.group, kind.version, kind.kind, "x", Scope::Namespaced))
}

/// All properties of a message. Says how it ended.
pub(crate) fn protobuf(kind: &'static Kind, bytes: &[u8], dice: &mut Dice) -> &'static str {
    let message = kind.message();
    let text = transcoded_is_decoded(message, bytes);
    if let Some(text) = &text {
        what_is_written_is_read(message, text);
        heads_of_both_formats_agree(kind, bytes, text);
    }
    head_is_decoded_head(kind, Format::Protobuf, bytes);
    pruned_is_decoded_and_pruned(kind, Format::Protobuf, bytes, dice);
    if kind.kind == "Pod" {
        a_type_is_written_as_it_is_read(message, bytes);
    }
    if text.is_some() { "read" } else { "refused" }
}

/// All properties of JSON text. Says how it ended.
pub(crate) fn json(kind: &'static Kind, text: &[u8], dice: &mut Dice) -> &'static str {
    let read = stored_text_is_shown_again(kind.message(), text);
    head_is_decoded_head(kind, Format::Json, text);
    pruned_is_decoded_and_pruned(kind, Format::Json, text, dice);
    if read { "read" } else { "refused" }
}

/// How much any operation holds for one byte of input: what a two-byte message that JSON shows with all its zero values costs.
const TEXT: usize = 600;
const TREE: usize = 6_000;
const HEAD: usize = 100;

/// JSON text made of the message and the value decoded from it are the same, or both fail. Gives the text.
pub(crate) fn transcoded_is_decoded(message: &'static Message, bytes: &[u8]) -> Option<Vec<u8>> {
    let options = proto::Options::of("v1", "X");
    let length = bytes.len();
    let mut text = Vec::new();
    let transcoded = bounded("to_json", length, TEXT, || {
        transcode::to_json(bytes, message, &options, &mut text)
    });
    let decoded = bounded("from_slice", length, TREE, || {
        proto::from_slice_lossy::<Value>(bytes, message, &options)
    });
    match (transcoded, decoded) {
        (Ok(lost), Ok((value, lost_too))) => {
            assert_eq!(lost, lost_too);
            let _: &RawValue = serde_json::from_slice(&text).expect("JSON");
            // Raw JSON inside may be nested as deep as a text may be alone.
            if let Some(shown) = shallow(&text) {
                assert!(same(&shown, &value), "{shown} is shown, and {value} decoded");
            }
            Some(text)
        }
        (Err(one), Err(other)) => {
            check_place(&one, length);
            check_place(&other, length);
            None
        }
        // JSON inside that is not UTF-8 is shown with replacement characters, and does not decode.
        (Ok(_), Err(error))
            if *error.problem() == proto::Problem::Json && std::str::from_utf8(bytes).is_err() =>
        {
            None
        }
        (one, other) => panic!("transcoded: {one:?}, decoded: {other:?}"),
    }
}

/// Text that we write can be read, and comes out the same.
pub(crate) fn what_is_written_is_read(message: &'static Message, text: &[u8]) {
    if shallow(text).is_none() {
        return;
    }
    let mut bytes = Vec::new();
    let read = bounded("to_protobuf", text.len(), HEAD, || {
        transcode::to_protobuf(text, message, &mut bytes).map(|notes| notes.unknown)
    });
    let unknown = match read {
        Ok(unknown) => unknown,
        Err(error) => return check_unreadable(&error),
    };
    assert_eq!(unknown, [""; 0]);
    let mut again = Vec::new();
    let options = proto::Options::of("v1", "X");
    transcode::to_json(&bytes, message, &options, &mut again).expect("what we write is right");
    let mut third = Vec::new();
    transcode::to_protobuf(&again, message, &mut third).expect("what we write can be read");
    assert_eq!(bytes, third, "written, read and written again");
}

/// What JSON shows of a message and JSON does not take: quantities of free text, times beyond the years that we know.
fn check_unreadable(error: &proto::Error) {
    let text = error.to_string();
    let known = ["a quantity is expected", "a time is expected"];
    assert!(known.iter().any(|part| text.contains(part)), "{text}");
}

/// What the head scan says is what the decoded object says.
pub(crate) fn head_is_decoded_head(kind: &'static Kind, format: Format, bytes: &[u8]) {
    if !has_object_meta(kind) {
        return;
    }
    let resource = resource(kind);
    let read = bounded("head", bytes.len(), HEAD, || Encoded::read(&resource, format, bytes, &[]));
    // What decodes has a head; the other way round a body may be broken behind a good head.
    let object = match read {
        Ok(object) => object,
        Err(error) => {
            assert!(
                !decodes(kind, format, bytes) || is_stricter(&error),
                "no head, and yet it decodes: {error:?}"
            );
            return;
        }
    };
    let Ok(decoded) = Dynamic::decode(&object) else { return };
    if is_well_typed(&decoded.value) {
        assert_eq!(head(&object), head(&decoded));
    }
    if let Ok(metadata) = object.metadata() {
        assert_eq!(head(&object), head(&metadata));
    }
}

/// Of a field that comes twice the decoders look at the last. The head scan refuses it if either is of the wrong wire type,
/// as Go does.
fn is_stricter(error: &Unreadable) -> bool {
    error.problem.contains("a field of another wire type")
}

/// Whether the object decodes, and its metadata into the type that it must be.
fn decodes(kind: &'static Kind, format: Format, bytes: &[u8]) -> bool {
    match format {
        Format::Protobuf => {
            let options = proto::Options::default();
            let read = proto::from_slice::<Value>(bytes, kind.message(), &options);
            read.is_ok_and(|value| is_well_typed(&value))
        }
        Format::Json => {
            let mut out = Vec::new();
            serde_json::from_slice::<Value>(bytes).is_ok_and(|value| is_well_typed(&value))
                && transcode::to_protobuf(bytes, kind.message(), &mut out).is_ok()
        }
    }
}

/// Whether the parts of the metadata that a head has are of the right types: a `Value` takes any.
fn is_well_typed(value: &Value) -> bool {
    let metadata = &value["metadata"];
    let strings = ["name", "namespace", "uid", "resourceVersion"];
    let is_text = |value: &Value| value.is_null() || value.is_string();
    strings.iter().all(|name| is_text(&metadata[name]))
        && (metadata["generation"].is_null() || metadata["generation"].is_i64())
        && (metadata["deletionTimestamp"]
            .as_str()
            .is_none_or(|text| text.parse::<kubestrata_api_types::Timestamp>().is_ok()))
        && metadata["labels"].as_object().is_none_or(|labels| labels.values().all(is_text))
        && metadata["ownerReferences"].as_array().is_none_or(|owners| {
            owners.iter().all(|owner| {
                ["apiVersion", "kind", "name", "uid"].iter().all(|name| is_text(&owner[name]))
            })
        })
}

fn has_object_meta(kind: &Kind) -> bool {
    let metadata = kind.message().by_name("metadata").and_then(schema::Field::message);
    metadata.is_some_and(|message| message.name() == schema::object_meta().name())
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

/// The head of a message is that of its JSON text.
pub(crate) fn heads_of_both_formats_agree(kind: &'static Kind, bytes: &[u8], text: &[u8]) {
    if !has_object_meta(kind) {
        return;
    }
    let resource = resource(kind);
    let (protobuf, json) = (
        Encoded::read(&resource, Format::Protobuf, bytes, &[]),
        Encoded::read(&resource, Format::Json, text, &[]),
    );
    match (protobuf, json) {
        (Ok(protobuf), Ok(json)) => assert_eq!(head(&protobuf), head(&json)),
        (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) if is_stricter(&error) => {}
        // A text may nest deeper than the message, by the JSON inside.
        (Ok(_), Err(error)) => assert!(error.problem.contains("nested too deep"), "{error:?}"),
        (one, other) => panic!("protobuf: {one:?}, JSON: {other:?}"),
    }
}

/// Cutting a field from the bytes and decoding is decoding and cutting the field.
pub(crate) fn pruned_is_decoded_and_pruned(
    kind: &'static Kind,
    format: Format,
    bytes: &[u8],
    dice: &mut Dice,
) {
    // Lists are no objects: their metadata is another message.
    if kind.message().by_name("metadata").is_some() && !has_object_meta(kind) {
        return;
    }
    let resource = resource(kind);
    let Ok(whole) = Encoded::read(&resource, format, bytes, &[]) else { return };
    let Ok(decoded) = Dynamic::decode(&whole) else { return };
    let Some(path) = a_path(&decoded.value, dice) else { return };
    let (seen, expected) = (view(&whole, &path), view(&decoded, &path));
    assert!(alike(&seen, &expected), "{path} shows {seen:?}, and decoded {expected:?}");
    let prune = std::slice::from_ref(&path);
    let pruned = bounded("prune", bytes.len(), HEAD, || {
        Encoded::read(&resource, format, bytes, prune).expect("what decodes can be pruned")
    });
    let left = Dynamic::decode(&pruned).expect("what is pruned decodes");
    let shown = view(&pruned, &path);
    // A field that JSON always shows is zero when it is gone.
    let zero = |text: &String| matches!(text.as_str(), "" | "0" | "false");
    assert!(shown.iter().all(zero), "{path} still shows {shown:?}");
    let (left, expected) =
        (without(left.into_inner().value, &path), without(decoded.into_inner().value, &path));
    assert!(left == expected, "without {path} {left} is left of {expected}");
}

/// Some path of the object, one that often is pruned or one of its own.
fn a_path(value: &Value, dice: &mut Dice) -> Option<FieldPath> {
    if dice.once_in(4) {
        return Some(FieldPath::managed_fields());
    }
    let mut found = BTreeSet::new();
    paths(value, "", &mut found);
    // These are not the message's, or are what every object has.
    found.retain(|path| path != "kind" && path != "apiVersion" && path != "metadata");
    let count = found.len();
    found.into_iter().nth(dice.below(count)).and_then(|path| path.parse().ok())
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
                let plain = !name.is_empty() && name.chars().all(char::is_alphanumeric);
                let step = match (plain, prefix.is_empty()) {
                    (false, _) => format!("['{name}']"),
                    (true, true) => name.clone(),
                    (true, false) => format!(".{name}"),
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
    object.field(path, &mut |text| found.push(text.to_owned())).expect("what decodes can be seen");
    found
}

/// Equal, but for the text of numbers: what is read from JSON is as it stands there.
fn alike(left: &[String], right: &[String]) -> bool {
    let number = |text: &String| text.parse::<f64>().ok();
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            let near = number(left).zip(number(right)).is_some_and(|pair| close(pair.0, pair.1));
            left == right || near
        })
}

/// Equal, or different in the last place: serde_json does not read each number to the nearest.
fn close(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= one.abs() * 4.0 * f64::EPSILON
}

/// The value without what is at the path; what is empty counts as absent.
fn without(mut value: Value, path: &FieldPath) -> Value {
    fn cut(value: &mut Value, path: &[Segment]) {
        use Segment::{All, Field};
        match (path, value) {
            ([Field(name)], Value::Object(members)) => drop(members.remove(&**name)),
            ([All], Value::Object(members)) => members.clear(),
            ([All], Value::Array(elements)) => elements.clear(),
            ([Field(name), rest @ ..], Value::Object(members)) => {
                if let Some(member) = members.get_mut(&**name) {
                    cut(member, rest);
                }
            }
            ([All, rest @ ..], Value::Object(members)) => {
                members.values_mut().for_each(|member| cut(member, rest));
            }
            ([All, rest @ ..], Value::Array(elements)) => {
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

/// JSON text that can be stored is shown in its normal form, and stored again as the same bytes. Says whether it can.
pub(crate) fn stored_text_is_shown_again(message: &'static Message, text: &[u8]) -> bool {
    let mut bytes = Vec::new();
    let stored = bounded("to_protobuf", text.len(), HEAD, || {
        transcode::to_protobuf(text, message, &mut bytes).map(|_| ())
    });
    if let Err(error) = stored {
        check_place(&error, text.len());
        return false;
    }
    let options = proto::Options::of("v1", "X");
    let (mut shown, mut again) = (Vec::new(), Vec::new());
    transcode::to_json(&bytes, message, &options, &mut shown).expect("what is stored can be shown");
    if shallow(&shown).is_some() {
        transcode::to_protobuf(&shown, message, &mut again).expect("what is shown can be stored");
        assert_eq!(bytes, again, "stored, shown and stored again");
    }
    true
}

/// A type that was read from a message can be written, and is read again as the same.
pub(crate) fn a_type_is_written_as_it_is_read(message: &'static Message, bytes: &[u8]) {
    let options = proto::Options::of("v1", "Pod");
    let read =
        bounded("Pod", bytes.len(), TREE, || proto::from_slice::<Pod>(bytes, message, &options));
    match read {
        Err(error) => check_place(&error, bytes.len()),
        Ok(pod) => match proto::to_vec(&pod, message) {
            Err(error) => check_unreadable(&error),
            Ok(written) => {
                let again: Pod = proto::from_slice(&written, message, &options)
                    .expect("what we write can be read");
                let third = proto::to_vec(&again, message).expect("and written");
                assert_eq!(written, third);
            }
        },
    }
}

/// The text as a value, unless JSON inside it is nested so deep that serde_json does not read it.
fn shallow(text: &[u8]) -> Option<Value> {
    match serde_json::from_slice(text) {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(error.to_string().contains("recursion limit"), "{error}");
            None
        }
    }
}

/// Equal, where a null is as good as nothing, and floating point may differ in the last place by serde_json's reading.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names = left.keys().chain(right.keys());
            names.all(|name| {
                same(
                    left.get(name).unwrap_or(&Value::Null),
                    right.get(name).unwrap_or(&Value::Null),
                )
            })
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|pair| same(pair.0, pair.1))
        }
        (Value::Number(one), Value::Number(other)) if one != other => {
            close(one.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0))
        }
        _ => left == right,
    }
}

/// An error has a place, and the place is in the input.
fn check_place(error: &proto::Error, length: usize) {
    assert!(error.offset().is_none_or(|offset| offset <= length), "{error}");
    if !matches!(error.problem(), proto::Problem::Type(_)) {
        assert!(error.offset().is_some() || !error.path().is_empty(), "{error} has no place");
    }
}
