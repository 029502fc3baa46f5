//! Bad input: every decoder ends in an error or a report, never in a panic, a hang or more memory than its limits.

use bytes::Bytes;
use kubestrata_api_types::{Answer, Collection, Event, Format, ListPart, Object, View};
use serde_json::Value;

use super::golden::{Golden, all};
use super::{POD, pods};
use crate::frame::EventType;
use crate::{
    Encoded, Limits, ListDecoder, ListError, WatchDecoder, WatchError, collection, decode_object,
    decode_status, envelope, frame,
};

fn watch(format: Format, limits: Limits, bytes: &[u8]) -> (Vec<String>, Option<WatchError>) {
    let mut decoder = WatchDecoder::new(Collection::new(pods()), format, limits);
    decoder.push(Bytes::copy_from_slice(bytes));
    let mut log = Vec::new();
    loop {
        match decoder.next() {
            Ok(Some(Event::Unreadable(error))) => log.push(format!("?{:?}", error.key)),
            Ok(Some(event)) => {
                log.push(event.object().map_or_else(|| "=".to_owned(), |pod| pod.key().to_string()))
            }
            Ok(None) => return (log, decoder.finish().err()),
            Err(error) => {
                assert!(matches!(decoder.next(), Ok(None)), "nothing comes after an error");
                return (log, Some(error));
            }
        }
    }
}

fn added(object: &str) -> String {
    format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")
}

#[test]
fn an_object_whose_head_cannot_be_read_costs_itself_alone() {
    let deep = format!(
        r#"{{"metadata":{{"name":"deep","namespace":"b"}},"spec":{}{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    for (bad, reported) in [
        (r#"{"metadata":{"name":5}}"#, "?None"),
        (r#"{"metadata":{"namespace":"b","name":"x","labels":[]}}"#, "?Some(\"b/x\")"),
        (r#"{"metadata":{"name":"x","generation":1.5}}"#, "?Some(\"x\")"),
        (r#"{"metadata":{"name":"x","deletionTimestamp":"soon"}}"#, "?Some(\"x\")"),
        (r#"{"metadata":{"labels":{"a":"b"}}}"#, "?None"),
        (r#"{"metadata":[]}"#, "?None"),
        (r#"{"kind":"Pod"}"#, "?None"),
        (r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}}"#, "?None"),
        (&deep, "?Some(\"b/deep\")"),
    ] {
        let stream = [added(POD), added(bad), added(POD)].concat();
        let (log, error) = watch(Format::Json, Limits::default(), stream.as_bytes());
        assert_eq!(log, ["b/a", reported, "b/a"], "{bad:.80}");
        assert!(error.is_none(), "{bad:.80}: {error:?}");
    }
}

#[test]
fn a_broken_stream_is_an_error() {
    let limits = Limits { frame_bytes: 100, ..Limits::default() };
    let long = added(&format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "x".repeat(100)));
    type Check = fn(&WatchError) -> bool;
    let malformed: Check = |error| matches!(error, WatchError::Malformed { .. });
    let too_large: Check = |error| matches!(error, WatchError::TooLarge { limit: 100 });
    let truncated: Check = |error| matches!(error, WatchError::Truncated { .. });
    for (format, bytes, check) in [
        (Format::Json, &b"[]"[..], malformed),
        (Format::Json, b"<html>", malformed),
        (Format::Json, b"{}", malformed),
        (Format::Json, br#"{"type":"ADDED"}"#, malformed),
        (Format::Json, br#"{"type":1,"object":{}}"#, malformed),
        (Format::Json, br#"{"type":"ERROR","object":{"kind":"Pod"}}"#, malformed),
        (Format::Json, br#"{"type":"ADDED","object":{"#, truncated),
        (Format::Json, long.as_bytes(), too_large),
        (Format::Json, &long.as_bytes()[..120], too_large),
        (Format::Protobuf, b"\0\0\0\x65", too_large),
        (Format::Protobuf, b"\xff\xff\xff\xff\0", too_large),
        (Format::Protobuf, b"\0\0", truncated),
        (Format::Protobuf, b"\0\0\0\x02\x0a\x05", malformed),
        (Format::Protobuf, b"\0\0\0\0", malformed),
        (Format::Protobuf, b"\0\0\0\x07\x0a\x05ADDED", malformed),
    ] {
        let (_, error) = watch(format, limits, bytes);
        let error = error.unwrap_or_else(|| panic!("{:?} gives no error", bytes.escape_ascii()));
        assert!(check(&error), "{:?} gives {error:?}", bytes.escape_ascii().to_string());
    }
}

pub(super) fn list(format: Format, limits: Limits, bytes: &[u8]) -> Result<usize, ListError> {
    let mut decoder = ListDecoder::new(Collection::new(pods()), format, limits);
    decoder.push(Bytes::copy_from_slice(bytes));
    let mut items = 0;
    while let Some(part) = decoder.next()? {
        items += usize::from(!matches!(part, ListPart::Meta(_)));
    }
    decoder.finish().map(|()| items)
}

#[test]
fn a_broken_list_is_an_error() {
    let limits = Limits { item_bytes: 100, ..Limits::default() };
    let long = format!(r#"{{"items":[{{"x":"{}"}}]}}"#, "x".repeat(100));
    for bytes in [
        &br#"[]"#[..],
        br#"{"items":[}"#,
        br#"{"items":{}}"#,
        br#"{"items":[1]}"#,
        br#"{"items":[]"#,
        br#"{"items":[]} x"#,
        br#"{"metadata":{},"metadata":{}}"#,
        br#"{"metadata":5}"#,
        br#"{"kind":"NodeList","apiVersion":"apps/v1","items":[]}"#,
        br#"{"kind":"Table","apiVersion":"v1","items":[]}"#,
        br#"{"items" []}"#,
        long.as_bytes(),
    ] {
        assert!(list(Format::Json, limits, bytes).is_err(), "{}", bytes.escape_ascii());
    }
    assert_eq!(list(Format::Json, limits, br#"{"items":null}"#).unwrap(), 0);
    assert_eq!(list(Format::Json, limits, br#"{"items":[{},{}],"metadata":null}"#).unwrap(), 2);
    for bytes in [
        &b"{}"[..],
        b"k8s\0",
        b"k8s\0\x12\x05\x0a\x00",
        b"k8s\0\x12\x02\x12\x05",
        b"k8s\0\x12\x04\x0a\x00\x0a\x00",
        b"k8s\0\x12\x02\x10\x01",
        b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"k8s\0\x12\x80\x80\x80\x80\x08\x12\x80\x80\x80\x80\x04",
        b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07PodLisX\x12\x02\x0a\x00",
    ] {
        assert!(list(Format::Protobuf, limits, bytes).is_err(), "{}", bytes.escape_ascii());
    }
    assert_eq!(list(Format::Protobuf, limits, b"k8s\0\x12\x00\x1a\x00\x22\x00").unwrap(), 0);
}

/// A small generator with a seed: xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    /// Changes some bytes, and sometimes cuts the end off or repeats a part.
    fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(out.len());
            match self.below(5) {
                0 => out.truncate(at + 1),
                1 => out[at] = b"\"\\{}[],:0n\0\x7f\xff"[self.below(13)],
                2 => drop(out.remove(at)),
                3 => {
                    let part = out[at..out.len().min(at + 20)].to_vec();
                    out.splice(at..at, part);
                }
                _ => out[at] = out[at].wrapping_add(1),
            }
            if out.is_empty() {
                out.push(0);
            }
        }
        out
    }
}

/// Whatever can be done with an object is done.
fn use_up(object: &Encoded) {
    let _ = object.metadata();
    let decoded = object.decode::<Value>();
    object.for_each_label(&mut |key, value| assert_eq!(object.label(key), Some(value)));
    object.for_each_owner(&mut |_| {});
    assert!(object.uid().is_none_or(|uid| !uid.is_empty()));
    let _ = object.field(&"spec.containers[*].name".parse().unwrap(), &mut |_| {});
    if let (Ok(value), Format::Json) = (decoded, object.format()) {
        // A head that reads is that of the object that decodes.
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        assert_eq!(object.name(), name.rsplit('/').next().unwrap_or_default());
    }
}

#[test]
fn mutated_input_never_panics() {
    let prune = [
        kubestrata_api_types::FieldPath::managed_fields(),
        "spec.template.spec.containers[*].env".parse().unwrap(),
        "metadata.annotations".parse().unwrap(),
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let small: Vec<Golden> = all().into_iter().filter(|golden| golden.json.len() < 8000).collect();
    let (mut read, mut refused) = (0, 0);
    for round in 0..150 {
        for golden in &small {
            for (format, bytes) in
                [(Format::Json, &golden.json), (Format::Protobuf, &golden.message)]
            {
                let bytes = random.mutate(bytes);
                let prune = &prune[..round % 4];
                match Encoded::read(&golden.resource, format, &bytes, prune) {
                    Ok(object) => {
                        read += 1;
                        use_up(&object);
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn mutated_streams_never_panic() {
    let mut random = Random(0xd1b5_4a32_d192_ed03);
    let message =
        all().into_iter().find(|golden| golden.resource.kind == "ConfigMap").unwrap().message;
    let pods = pods();
    let mut watch_bytes = frame::encode(EventType::Added, Format::Protobuf, &pods, &message);
    watch_bytes.extend(frame::encode(EventType::Bookmark, Format::Protobuf, &pods, &message));
    let size = collection::protobuf_item_size(message.len());
    let mut list_bytes = collection::protobuf_head("v1", "PodList", &Default::default(), size);
    list_bytes.extend(collection::protobuf_item_head(message.len()));
    list_bytes.extend(&message);
    list_bytes.extend(collection::PROTOBUF_TAIL);
    let json_list =
        format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"items":[{POD}]}}"#);
    let one = envelope::close("v1", "Pod", &message);
    let status =
        br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410}"#;
    for _ in 0..2000 {
        watch(Format::Protobuf, Limits::default(), &random.mutate(&watch_bytes));
        watch(Format::Json, Limits::default(), &random.mutate(added(POD).as_bytes()));
        let _ = list(Format::Protobuf, Limits::default(), &random.mutate(&list_bytes));
        let _ = list(Format::Json, Limits::default(), &random.mutate(json_list.as_bytes()));
        let collection = Collection::new(pods.clone());
        let answer = decode_object(&collection, Format::Protobuf, &random.mutate(&one));
        if let Ok(Answer::Object(object)) = answer {
            use_up(&object);
        }
        let status = random.mutate(status);
        decode_status(Some("application/json"), 500, None, &status);
        decode_status(Some("application/vnd.kubernetes.protobuf"), 500, None, &status);
    }
}
