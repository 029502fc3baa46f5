use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{Body, Server};

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Got {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// Code, reason and message of a failure.
    pub(super) fn failure(&self) -> (u16, String, String) {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{status}");
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        (self.code, text("reason"), text("message"))
    }

    pub(super) fn version(&self) -> u64 {
        self.json()["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    }

    /// `namespace/name` of the items.
    pub(super) fn names(&self) -> Vec<String> {
        assert_eq!(self.code, 200, "{}", self.text);
        let list = self.json();
        let items = list["items"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        items
            .map(|item| {
                let metadata = &item["metadata"];
                format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]))
            })
            .collect()
    }
}

pub(super) async fn send(
    server: &Server,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> http::Response<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    server.clone().oneshot(request).await.unwrap()
}

pub(super) async fn read(answer: http::Response<Body>) -> Got {
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Got { code: parts.status.as_u16(), headers: parts.headers, text }
}

pub(super) async fn get(server: &Server, path: &str) -> Got {
    read(send(server, Method::GET, path, &[], "").await).await
}

pub(super) async fn post(server: &Server, path: &str, body: Value) -> Got {
    read(send(server, Method::POST, path, &[], &body.to_string()).await).await
}

pub(super) async fn put(server: &Server, path: &str, body: Value) -> Got {
    read(send(server, Method::PUT, path, &[], &body.to_string()).await).await
}

pub(super) async fn delete(server: &Server, path: &str) -> Got {
    read(send(server, Method::DELETE, path, &[], "").await).await
}

pub(super) async fn patch(server: &Server, path: &str, kind: &str, body: Value) -> Got {
    let content_type = format!("application/{kind}+json");
    let headers = [("content-type", content_type.as_str())];
    read(send(server, Method::PATCH, path, &headers, &body.to_string()).await).await
}

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Creates a ConfigMap in `default`; gives its version.
pub(super) async fn map(server: &Server, name: &str) -> u64 {
    let got = post(server, MAPS, json!({"metadata": {"name": name}})).await;
    assert_eq!(got.code, 201, "{}", got.text);
    got.version()
}

/// A watch, read line by line.
pub(super) struct Watch {
    body: Body,
    text: String,
}

impl Watch {
    pub(super) async fn open(server: &Server, path: &str) -> Self {
        let answer = send(server, Method::GET, path, &[], "").await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/json");
        Self { body: answer.into_body(), text: String::new() }
    }

    /// The next event; `None` at the end of the stream.
    pub(super) async fn event(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                self.text = rest.to_owned();
                return Some(event);
            }
            let frame = self.body.frame().await?.unwrap();
            let data = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    /// `TYPE name@version`, or the message of an ERROR.
    pub(super) async fn next(&mut self) -> String {
        let Some(event) = self.event().await else { return "EOF".to_owned() };
        let kind = event["type"].as_str().unwrap();
        let object = &event["object"];
        if kind == "ERROR" {
            return format!("ERROR {} {}", object["code"], object["message"].as_str().unwrap());
        }
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let end = match &metadata["annotations"]["k8s.io/initial-events-end"] {
            Value::String(value) if kind == "BOOKMARK" => format!(" end={value}"),
            _ => String::new(),
        };
        format!("{kind} {}@{}{end}", text("name"), text("resourceVersion"))
    }

    /// So many events.
    pub(super) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.next().await);
        }
        events
    }
}
