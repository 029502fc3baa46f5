//! `Status` from whatever answers, and the JSON that a server writes.

use std::time::Duration;

use bytes::Bytes;
use kubestrata_api_types::{Collection, Format, ListMeta, ListPart, ResourceVersion, Status};

use super::{POD, pods};
use crate::collection::JsonStyle;
use crate::frame::EventType;
use crate::{Limits, ListDecoder, collection, decode_status, envelope, frame};

const JSON: Option<&str> = Some("application/json");

#[test]
fn a_status_is_read_from_either_format() {
    let text = br#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"t"},"status":"Failure",
        "message":"m","reason":"Timeout","code":504,"details":{"name":"n","kind":"pods","retryAfterSeconds":1,
        "causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}"#;
    let json = decode_status(JSON, 504, None, text);
    assert!(json.is_too_large_resource_version());
    assert_eq!(json.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(json.continue_token.as_deref(), Some("t"));
    // The same as the Go encoder writes it.
    let message = b"\x0a\x07\x0a\0\x12\0\x1a\x01t\x12\x07Failure\x1a\x01m\x22\x07Timeout\x2a\x48\x0a\x01n\x12\0\x1a\x04pods\x22\x37\x0a\x17ResourceVersionTooLarge\x12\x1aToo large resource version\x1a\0\x28\x01\x32\0\x30\xf8\x03";
    let body = envelope::close("v1", "Status", message);
    let protobuf = decode_status(Some("application/vnd.kubernetes.protobuf"), 504, None, &body);
    assert_eq!(protobuf, json);
}

#[test]
fn what_is_no_status_gives_a_generic_one() {
    let text = decode_status(
        Some("text/plain; charset=utf-8"),
        429,
        Some(Duration::from_millis(1500)),
        b"Too many requests, please try again later.\n",
    );
    let said = "Too many requests, please try again later.";
    let generic = "the server has received too many requests and has asked us to try again later";
    assert_eq!(text.message, format!("{generic}: {said}"));
    let causes = &text.details.as_ref().unwrap().causes;
    assert_eq!((&*causes[0].reason, &*causes[0].message), ("UnexpectedServerResponse", said));
    assert_eq!(text.retry_after(), Some(Duration::from_secs(2)));
    assert_eq!((text.reason.as_str(), text.code), ("TooManyRequests", 429));
    for (content_type, body) in [
        (JSON, &b"{"[..]),
        (JSON, br#"{"kind":"Pod"}"#),
        (JSON, b"\xff\0"),
        (None, b""),
        (Some("application/vnd.kubernetes.protobuf"), b"k8s\0\x0a"),
    ] {
        let status = decode_status(content_type, 404, None, body);
        assert!(status.is_not_found() && !status.message.is_empty(), "{}", body.escape_ascii());
    }
    let long = decode_status(None, 502, None, "é".repeat(5000).as_bytes());
    assert!(long.message.len() < 500);
    let zero = decode_status(JSON, 409, None, br#"{"kind":"Status","apiVersion":"v1"}"#);
    assert_eq!(zero, Status { code: 409, ..Status::default() });
}

#[test]
fn a_page_is_not_quoted_but_for_its_title() {
    let page = b"<!DOCTYPE html>\n<HTML><head><Title lang=en>\n 502 Bad Gateway </title></head>
        <body>Authorization: Bearer s3cret</body></html>";
    for content_type in
        [Some("text/html; charset=utf-8"), Some("TEXT/HTML"), Some("text/plain"), None]
    {
        let status = decode_status(content_type, 502, None, page);
        let text = format!("{status:?}");
        assert!(text.contains("502 Bad Gateway"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
        assert_eq!(status.reason, "InternalError");
    }
    for (content_type, body) in [
        (Some("text/html"), &b"<p>s3cret</p>"[..]),
        (Some("text/html"), b"<title>s3cret without end"),
        (Some("application/json"), br#"{"error":"s3cret"}"#),
        (Some("application/octet-stream"), b"s3cret"),
        (Some("text/plain"), b"\nfirst\ns3cret\n"),
        (Some("text/plain"), b"\x1b[31ms3cret"),
        (None, b"\0s3cret"),
    ] {
        let status = decode_status(content_type, 503, None, body);
        let text = format!("{status:?}");
        assert!(!text.contains("s3cret"), "{text}");
        assert!(text.contains("currently unable to handle the request"), "{text}");
    }
}

#[test]
fn json_lists_are_as_go_writes_them() {
    let meta = ListMeta { resource_version: ResourceVersion::new("9"), ..ListMeta::default() };
    let list = |style| {
        let frame = collection::json(style, "v1", "PodList", &meta);
        let text =
            [&frame.head, POD.as_bytes(), collection::JSON_SEPARATOR, POD.as_bytes(), &frame.tail]
                .concat();
        String::from_utf8(text).unwrap()
    };
    let typed = list(JsonStyle::Typed);
    assert_eq!(
        typed.replace(POD, "P"),
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[P,P]}\n"
    );
    let unstructured = list(JsonStyle::Unstructured);
    assert_eq!(
        unstructured.replace(POD, "P"),
        "{\"apiVersion\":\"v1\",\"items\":[P,P],\"kind\":\"PodList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"9\"}}\n"
    );
    for text in [typed, unstructured] {
        let mut decoder =
            ListDecoder::new(Collection::new(pods()), Format::Json, Limits::default());
        decoder.push(Bytes::copy_from_slice(text.as_bytes()));
        let mut items = 0;
        while let Some(part) = decoder.next().unwrap() {
            match part {
                ListPart::Item(_) => items += 1,
                other => assert_eq!(other, ListPart::Meta(meta.clone())),
            }
        }
        decoder.finish().unwrap();
        assert_eq!(items, 2);
    }
    let event = frame::encode(EventType::Modified, Format::Json, &pods(), b"{}");
    assert_eq!(event, b"{\"type\":\"MODIFIED\",\"object\":{}}\n");
}
