use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kubestrata_codec::{envelope, proto, schema, transcode};
use serde_json::json;
use tower::ServiceExt as _;

use super::harness::{MAPS, get, map, post};
use crate::Server;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn send(
    server: &Server,
    method: Method,
    path: &str,
    accept: &str,
    body: Vec<u8>,
) -> http::Response<crate::Body> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("accept", accept).header("content-type", PROTOBUF);
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    server.clone().oneshot(request).await.unwrap()
}

async fn bytes(server: &Server, path: &str, accept: &str) -> Bytes {
    let answer = send(server, Method::GET, path, accept, Vec::new()).await;
    assert_eq!(answer.status(), 200, "{path}");
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with(PROTOBUF));
    answer.into_body().collect().await.unwrap().to_bytes()
}

/// The JSON text of an enveloped message.
fn text(bytes: &[u8]) -> String {
    let envelope = envelope::open(bytes).unwrap();
    let message = schema::kind_of(envelope.api_version, envelope.kind).unwrap();
    let options = proto::Options::of(envelope.api_version, envelope.kind);
    let mut text = Vec::new();
    transcode::to_json(envelope.message, message, &options, &mut text).unwrap();
    String::from_utf8(text).unwrap() + "\n"
}

/// Type and object of each frame of a watch.
fn frames(mut bytes: &[u8]) -> Vec<(String, String)> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let (frame, rest) = rest.split_at(length);
        bytes = rest;
        // Field 1 is the type, field 2 a message of one field: the enveloped object.
        let kind = &frame[2..2 + usize::from(frame[1])];
        let at = frame.windows(4).position(|window| window == b"k8s\0").unwrap();
        frames.push((String::from_utf8(kind.to_vec()).unwrap(), text(&frame[at..])));
    }
    frames
}

async fn some(server: &Server) {
    for index in 0..40 {
        let data = "x".repeat(if index == 7 { 40_000 } else { 4000 });
        let body = json!({"metadata": {"name": format!("p{index}"), "labels": {"a": "b"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "command": [data]}]}});
        assert_eq!(post(server, PODS, body).await.code, 201);
    }
}

#[tokio::test(start_paused = true)]
async fn both_formats_say_the_same() {
    let server = Server::start_default();
    some(&server).await;
    for path in [PODS, &format!("{PODS}?limit=3"), &format!("{PODS}/p7"), "/api/v1/secrets"] {
        let json = get(&server, path).await.text;
        // Protobuf cannot tell an empty list from none.
        let protobuf = text(&bytes(&server, path, PROTOBUF).await).replace("null}", "[]}");
        assert_eq!(protobuf, json, "{path}");
    }
    let partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let partial = text(&bytes(&server, &format!("{PODS}/p1"), partial).await);
    assert!(partial.starts_with("{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"p1\""));
    assert!(!partial.contains("\"spec\""));
}

#[tokio::test(start_paused = true)]
async fn watches_say_the_same_in_both_formats() {
    let server = Server::start_default();
    some(&server).await;
    let path = format!("{PODS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=1");
    let json = get(&server, &path).await.text;
    let lines: Vec<(String, String)> = json
        .lines()
        .map(|line| {
            let (kind, object) =
                line.strip_prefix("{\"type\":\"").unwrap().split_once("\",\"object\":").unwrap();
            (kind.to_owned(), object.strip_suffix('}').unwrap().to_owned() + "\n")
        })
        .collect();
    assert_eq!(lines.len(), 41);
    let answer = send(&server, Method::GET, &path, PROTOBUF, Vec::new()).await;
    assert_eq!(
        answer.headers()["content-type"],
        "application/vnd.kubernetes.protobuf;stream=watch"
    );
    assert_eq!(frames(&answer.into_body().collect().await.unwrap().to_bytes()), lines);
    // Go shows the zero fields of the kind beside a bookmark's metadata.
    let bookmark = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"45\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}},\"spec\":{\"containers\":null},\"status\":{}}\n";
    assert_eq!(lines[40], ("BOOKMARK".to_owned(), bookmark.to_owned()));

    server.compact().await;
    map(&server, "a").await;
    server.compact().await;
    let old = bytes(&server, &format!("{MAPS}?watch=1&resourceVersion=6"), PROTOBUF).await;
    let (kind, status) = frames(&old).remove(0);
    assert_eq!(kind, "ERROR");
    assert!(
        status.contains("\"reason\":\"Expired\"") && status.contains("\"code\":410"),
        "{status}"
    );
}

#[tokio::test(start_paused = true)]
async fn bodies_may_be_protobuf() {
    let server = Server::start_default();
    let encode = |api_version: &str, kind: &str, json: &str| {
        let mut raw = Vec::new();
        let message = schema::kind_of(api_version, kind).unwrap();
        transcode::to_protobuf(json.as_bytes(), message, &mut raw).unwrap();
        envelope::close(api_version, kind, &raw)
    };
    let body = encode(
        "v1",
        "ConfigMap",
        r#"{"metadata":{"name":"a","finalizers":["x/y"]},"data":{"k":"v"}}"#,
    );
    let both = "application/vnd.kubernetes.protobuf,application/json";
    let made = send(&server, Method::POST, MAPS, both, body).await;
    assert_eq!(made.status(), 201);
    let made = text(&made.into_body().collect().await.unwrap().to_bytes());
    assert_eq!(made, get(&server, &format!("{MAPS}/a")).await.text);
    let options = encode("v1", "DeleteOptions", r#"{"preconditions":{"uid":"other"}}"#);
    let refused = send(&server, Method::DELETE, &format!("{MAPS}/a"), both, options).await;
    assert_eq!(refused.status(), 409);
    let options = encode("v1", "DeleteOptions", r#"{"propagationPolicy":"Background"}"#);
    let marked = send(&server, Method::DELETE, &format!("{MAPS}/a"), both, options).await;
    assert_eq!(marked.status(), 200);
    let broken = send(&server, Method::POST, MAPS, both, b"k8s\0nonsense".to_vec()).await;
    assert_eq!(broken.status(), 400);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_speak_protobuf_for_metadata_only() {
    use kubestrata_api_types::{ResourceType, Scope};
    let server = Server::start_default();
    server.declare(ResourceType::new("test.io", "v1", "Thing", "things", Scope::Cluster));
    let path = "/apis/test.io/v1/things";
    post(
        &server,
        path,
        json!({"apiVersion": "test.io/v1", "kind": "Thing", "metadata": {"name": "t"}}),
    )
    .await;
    let answer = send(&server, Method::GET, path, PROTOBUF, Vec::new()).await;
    assert_eq!(answer.status(), 406);
    let partial =
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = bytes(&server, path, partial).await;
    assert!(text(&list).contains("\"name\":\"t\""));
}

#[tokio::test(start_paused = true)]
async fn failures_speak_protobuf_to_those_who_prefer_it() {
    use kubestrata_api_types::{ResourceType, Scope};
    let server = Server::start_default();
    server.declare(ResourceType::new("test.io", "v1", "Thing", "things", Scope::Cluster));
    let missing = format!("{MAPS}/none");
    let json = get(&server, &missing).await.text;
    let both = "application/vnd.kubernetes.protobuf,application/json";
    for accept in
        [PROTOBUF, both, "text/plain;q=0.9,application/vnd.kubernetes.protobuf;stream=watch"]
    {
        let answer = send(&server, Method::GET, &missing, accept, Vec::new()).await;
        assert_eq!(answer.status(), 404);
        assert_eq!(answer.headers()["content-type"], PROTOBUF);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let status = text(&body);
        assert!(status.contains("\"message\":\"configmaps \\\"none\\\" not found\""), "{status}");
        assert_eq!(
            kubestrata_codec::decode_status(Some(PROTOBUF), 404, None, &body).reason,
            "NotFound"
        );
    }
    // The bytes that kube-apiserver sends.
    let body = send(&server, Method::GET, &missing, PROTOBUF, Vec::new()).await.into_body();
    let go = b"k8s\0\n\x0c\n\x02v1\x12\x06Status\x12U\n\x06\n\0\x12\0\x1a\0\x12\x07Failure\x1a\x1bconfigmaps \"none\" not found\"\x08NotFound*\x18\n\x04none\x12\0\x1a\nconfigmaps(\x002\x000\x94\x03\x1a\0\"\0";
    assert_eq!(body.collect().await.unwrap().to_bytes(), go[..]);
    let partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    for accept in ["application/json,application/vnd.kubernetes.protobuf", partial] {
        let answer = send(&server, Method::GET, &missing, accept, Vec::new()).await;
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), json, "{accept}");
    }
    // Of a kind without a schema too.
    let custom = "/apis/test.io/v1/things/none";
    let answer = send(&server, Method::GET, custom, both, Vec::new()).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (404, &PROTOBUF.parse().unwrap())
    );
    map(&server, "a").await;
    let gone = send(&server, Method::DELETE, &format!("{MAPS}/a"), PROTOBUF, Vec::new()).await;
    let gone = text(&gone.into_body().collect().await.unwrap().to_bytes());
    assert!(gone.contains("\"status\":\"Success\""), "{gone}");
}
