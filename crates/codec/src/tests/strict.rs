//! What no encoder writes is refused, or read as a decoder of the whole object reads it.

use super::hostile::list;
use super::*;
use crate::ListError;
use crate::envelope;
use crate::wire::{put_bytes, put_head, put_number};

const ITEM: &str = r#"{"metadata":{"name":"a"}}"#;

fn read(text: &str) -> Result<Encoded, kubestrata_api_types::Unreadable> {
    Encoded::read(&pods(), Format::Json, text.as_bytes(), &[FieldPath::managed_fields()])
}

#[test]
fn json_lists_have_their_commas_and_nothing_twice() {
    let json = |text: &str| list(Format::Json, Limits::default(), text.as_bytes());
    for (text, items) in [
        (format!(r#"{{"items":[{ITEM} , {ITEM}],"kind":"PodList","apiVersion":"v1"}}"#), 2),
        (r#"{"items":[],"metadata":{}}"#.to_owned(), 0),
        (
            r#"{"metadata":{"resourceVersion":null,"remainingItemCount":-1},"items":null}"#
                .to_owned(),
            0,
        ),
        ("{}".to_owned(), 0),
    ] {
        assert_eq!(json(&text).unwrap(), items, "{text}");
    }
    for (text, problem) in [
        (format!(r#"{{"items":[{ITEM}{ITEM}]}}"#), "no comma between items"),
        (format!(r#"{{"items":[,{ITEM}]}}"#), "an item must be a JSON object"),
        (format!(r#"{{"items":[{ITEM},,{ITEM}]}}"#), "an item must be a JSON object"),
        (format!(r#"{{"items":[{ITEM},]}}"#), "an item must be a JSON object"),
        (r#"{"items":[]"kind":"PodList"}"#.to_owned(), "no comma between members"),
        (r#"{"kind":"PodList",,"apiVersion":"v1"}"#.to_owned(), "no key"),
        (r#"{"kind":"PodList",}"#.to_owned(), "no key"),
        (r#"{"items":[],"items":[]}"#.to_owned(), "items twice"),
        (r#"{"metadata":{},"metadata":{}}"#.to_owned(), "metadata twice"),
    ] {
        match json(&text).unwrap_err() {
            ListError::Malformed { problem: found, .. } => assert_eq!(found, problem, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn protobuf_lists_are_read_as_strictly_as_their_items() {
    let types = |kind: &str| {
        let mut out = Vec::new();
        put_bytes(&mut out, 1, b"v1");
        put_bytes(&mut out, 2, kind.as_bytes());
        out
    };
    let body = |fields: &[(u32, &[u8])]| {
        let mut out = envelope::MAGIC.to_vec();
        fields.iter().for_each(|(number, bytes)| put_bytes(&mut out, *number, bytes));
        out
    };
    let run = |bytes: &[u8]| list(Format::Protobuf, Limits::default(), bytes);
    let pods = types("PodList");
    run(&body(&[(1, &pods), (2, b""), (3, b""), (4, b"")])).unwrap();
    run(&body(&[(2, b""), (1, &pods)])).unwrap();

    let mut version = Vec::new();
    put_number(&mut version, 2, 5);
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, &version);
    let mut nameless = b"\x02\x00".to_vec();
    let mut far = Vec::new();
    put_head(&mut far, 1, 0);
    // Field 2^32 + 2, which is not field 2.
    far.splice(..1, [0x92, 0x80, 0x80, 0x80, 0x80, 0x01]);
    nameless.extend_from_slice(&far);
    for (bytes, problem) in [
        (body(&[(1, &pods), (2, &meta)]), "a field of another wire type"),
        (body(&[(1, &pods), (2, &nameless)]), "no field has this number"),
        (body(&[(1, &pods), (2, &far)]), "no field has this number"),
        (body(&[(1, &pods), (2, b""), (3, b"gzip")]), "encoding of their own"),
    ] {
        match run(&bytes).unwrap_err() {
            ListError::Malformed { problem: found, .. } => {
                assert!(found.contains(problem), "{found}, not {problem}");
            }
            other => panic!("{problem}: {other:?}"),
        }
    }
    let foreign = run(&body(&[(2, b""), (1, &types("Secret"))])).unwrap_err();
    assert!(matches!(foreign, ListError::Foreign { .. }), "{foreign:?}");
    let mut cut = body(&[(1, &pods), (2, b""), (4, b"type")]);
    cut.pop();
    assert!(matches!(run(&cut).unwrap_err(), ListError::Truncated { .. }));
    // Of a name that could be of any length an error shows a part.
    let error = run(&body(&[(1, &types(&"k".repeat(100_000))), (2, b"")])).unwrap_err();
    assert!(error.to_string().len() < 600);
}

#[test]
fn a_stream_with_an_error_never_counts_as_complete() {
    let mut decoder = ListDecoder::new(Collection::new(pods()), Format::Json, Limits::default());
    decoder.push(Bytes::from_static(b"[]"));
    decoder.next().unwrap_err();
    assert!(matches!(decoder.next(), Ok(None)));
    assert!(matches!(decoder.finish(), Err(ListError::Broken)));
    let mut decoder = WatchDecoder::new(Collection::new(pods()), Format::Json, Limits::default());
    decoder.push(Bytes::from_static(b"[]"));
    decoder.next().unwrap_err();
    assert!(matches!(decoder.finish(), Err(WatchError::Broken)));
}

#[test]
fn the_last_metadata_counts_in_the_head_too() {
    let gone = read(r#"{"metadata":{"name":"a","labels":{"k":"v"}},"metadata":null}"#).unwrap();
    let whole = gone.decode::<Pod>().unwrap();
    assert_eq!((whole.metadata.name, whole.metadata.labels), (None, None));
    assert_eq!(gone.label("k"), None);
    assert_eq!(gone.name(), "");
    let cut = read(r#"{"metadata":{"managedFields":[1]},"metadata":{},"metadata":{"name":"a"}}"#);
    let cut = cut.unwrap();
    assert_eq!(cut.name(), "a");
    assert!(!String::from_utf8_lossy(cut.bytes()).contains("managedFields"));
}

#[test]
fn a_head_reads_what_a_decoder_reads() {
    for text in [
        r#"{"metadata":{"name":"a","generation":007}}"#,
        r#"{"metadata":{"name":"a","generation":-0}}"#,
        r#"{"metadata":{"name":"a","generation":1.5}}"#,
        "{\"metadata\":{\"name\":\"a\nb\"}}",
        "{\"metadata\":{\"name\":\"\u{e4}\tb\"}}",
        "{\"kind\":\"P\no\",\"metadata\":{\"name\":\"a\"}}",
    ] {
        read(text).unwrap_err();
    }
    assert_eq!(
        read(r#"{"metadata":{"name":"a","generation":-7}}"#).unwrap().generation(),
        Some(-7)
    );
}

#[test]
fn every_text_of_a_head_is_bounded() {
    let long = "7".repeat(200);
    for text in [
        format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{long}"}}}}"#),
        format!(r#"{{"metadata":{{"name":"a"}},"kind":"{long}"}}"#),
        format!(r#"{{"metadata":{{"name":"a"}},"apiVersion":"{long}"}}"#),
    ] {
        let limits = |string_bytes| Limits { string_bytes, ..Limits::default() };
        let event = |limits| {
            let mut decoder = WatchDecoder::new(Collection::new(pods()), Format::Json, limits);
            decoder.push(Bytes::from(format!(r#"{{"type":"ADDED","object":{text}}}"#)));
            decoder.next().unwrap().unwrap()
        };
        let Event::Unreadable(error) = event(limits(199)) else { panic!("{text}") };
        assert!(error.problem.contains("longer than the limit"), "{error:?}");
        assert!(error.problem.len() < 200);
    }
}

/// Events stand in lines or not, one by one or many in a piece.
#[test]
fn line_feeds_between_events_change_nothing() {
    let event =
        |name: usize| format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"n{name}"}}}}}}"#);
    for spaces in ["\n", "", " ", "\n\n", "\n "] {
        for rest in ["\n", "", " \n"] {
            let mut text = String::new();
            for name in 0..100 {
                text.push_str(&event(name));
                text.push_str(if name % 7 == 3 { rest } else { spaces });
            }
            for size in [text.len(), 1000, 57, 1] {
                let collection = Collection::new(pods());
                let mut decoder = WatchDecoder::new(collection, Format::Json, Limits::default());
                let mut names = Vec::new();
                for piece in text.as_bytes().chunks(size) {
                    decoder.push(Bytes::copy_from_slice(piece));
                    while let Some(event) = decoder.next().unwrap() {
                        let Event::Added(pod) = event else { panic!("{event:?}") };
                        names.push(pod.name().to_owned());
                    }
                }
                decoder.finish().unwrap();
                let expected: Vec<_> = (0..100).map(|name| format!("n{name}")).collect();
                assert_eq!(names, expected, "{spaces:?}, {rest:?}, pieces of {size}");
            }
        }
    }
}

fn view(object: &Encoded, path: &str) -> Result<Vec<String>, kubestrata_api_types::ViewError> {
    let mut found = Vec::new();
    object.field(&path.parse().unwrap(), &mut |text| found.push(text.to_owned()))?;
    Ok(found)
}

/// In the order of the keys, and each once, as `Dynamic` has them.
#[test]
fn a_view_of_a_whole_map_is_that_of_the_decoded_object() {
    let json = read(r#"{"metadata":{"name":"a","labels":{"z":"3","k":"1","b":"0","k":"2"}}}"#);
    let mut metadata = Vec::new();
    put_bytes(&mut metadata, 1, b"a");
    for (key, value) in [("z", "3"), ("k", "1"), ("b", "0"), ("k", "2")] {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, key.as_bytes());
        put_bytes(&mut entry, 2, value.as_bytes());
        put_bytes(&mut metadata, 11, &entry);
    }
    let mut message = Vec::new();
    put_bytes(&mut message, 1, &metadata);
    let protobuf = Encoded::read(&pods(), Format::Protobuf, &message, &[]);
    for object in [json.unwrap(), protobuf.unwrap()] {
        assert_eq!(view(&object, "metadata.labels[*]").unwrap(), ["0", "2", "3"]);
        assert_eq!(object.decode::<Pod>().unwrap().metadata.labels.unwrap()["k"], "2");
    }
}

#[test]
fn a_view_hands_out_no_malformed_value() {
    for value in [
        "truee", "tru", "01", "-", "1-2", "1.", "1e", "1e999", "nullx", "xyz", "\"a\nb\"",
        "\"\\x\"",
    ] {
        let text = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"x":{value}}}}}"#);
        let error = view(&read(&text).unwrap(), "spec.x").unwrap_err();
        assert!(!error.to_string().contains(value), "{error}");
    }
    let text = r#"{"metadata":{"name":"a"},"spec":{"x":-1.5e3,"y":true,"z":null}}"#;
    assert_eq!(view(&read(text).unwrap(), "spec.x").unwrap(), ["-1.5e3"]);
    assert_eq!(view(&read(text).unwrap(), "spec.y").unwrap(), ["true"]);
    assert!(view(&read(text).unwrap(), "spec.z").unwrap().is_empty());
}
