//! Random writes, straight to the server, and their entry into the history.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kubestrata_apiserver::Server;
use kubestrata_testkit::FakeWorld;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::log::note;
use crate::sim::{KINDS, Kind, Sim};
use crate::truth::Seen;

/// Names of objects: few, so that they are made again and again.
const NAMES: u64 = 6;
const NAMESPACES: [&str; 2] = ["a", "b"];
const APPS: [Option<&str>; 3] = [None, Some("x"), Some("y")];

/// Writes, one after the other. It speaks to the server past the network, in words of its own: what it notes must not
/// depend on what is under test.
pub(crate) struct Writer {
    sim: Arc<Sim>,
    world: FakeWorld,
    /// Number of the last write.
    number: u64,
}

impl Writer {
    /// A writer with randomness of its own.
    pub(crate) fn new(sim: Arc<Sim>, world: FakeWorld) -> Self {
        Self { sim, world, number: 0 }
    }

    /// Makes one random change, or two: a deletion and a creation under the same name.
    pub(crate) async fn write(&mut self, server: &Server) {
        let kind = KINDS[self.pick(KINDS.len())];
        let namespace = NAMESPACES[self.pick(NAMESPACES.len())];
        let name = format!("o{}", self.world.below(NAMES));
        let key = format!("{namespace}/{name}");
        let existing = self.sim.truth(kind).now().get(&key).cloned();
        match (existing, self.world.below(10)) {
            (None, _) => self.create(server, kind, namespace, &name).await,
            (Some(old), 0..=3) => {
                self.patch(server, kind, (namespace, &name), old.app.as_deref()).await;
            }
            (Some(_), 4..=5) => {
                let app = APPS[self.pick(APPS.len())];
                self.patch(server, kind, (namespace, &name), app).await;
            }
            (Some(_), 6..=7) => self.delete(server, kind, namespace, &name).await,
            (Some(_), _) => {
                self.delete(server, kind, namespace, &name).await;
                self.create(server, kind, namespace, &name).await;
            }
        }
    }

    fn pick(&self, length: usize) -> usize {
        usize::try_from(self.world.below(length as u64)).unwrap_or(0)
    }

    fn labels(&mut self, app: Option<&str>) -> Value {
        self.number += 1;
        serde_json::json!({"n": self.number.to_string(), "app": app})
    }

    async fn create(&mut self, server: &Server, kind: Kind, namespace: &str, name: &str) {
        let app = APPS[self.pick(APPS.len())];
        let mut labels = self.labels(app);
        if app.is_none() {
            labels.as_object_mut().expect("labels are an object").remove("app");
        }
        let body = serde_json::json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind(),
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
        });
        let object = send(server, Method::POST, &kind.path(namespace, ""), "json", &body).await;
        self.put("create", kind, namespace, &object);
    }

    async fn patch(
        &mut self,
        server: &Server,
        kind: Kind,
        (namespace, name): (&str, &str),
        app: Option<&str>,
    ) {
        let body = serde_json::json!({"metadata": {"labels": self.labels(app)}});
        let path = kind.path(namespace, name);
        let object = send(server, Method::PATCH, &path, "merge-patch+json", &body).await;
        self.put("update", kind, namespace, &object);
    }

    fn put(&self, verb: &'static str, kind: Kind, namespace: &str, object: &Value) {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let seen = Seen {
            version: text(&metadata["resourceVersion"]).unwrap().parse().unwrap(),
            uid: text(&metadata["uid"]).unwrap(),
            app: text(&metadata["labels"]["app"]),
            number: self.number,
        };
        let key = format!("{namespace}/{}", metadata["name"].as_str().unwrap());
        note!(self.sim.log, "{verb} {kind:?} {key}@{} app={:?}", seen.version, seen.app);
        self.sim.log.count(verb);
        self.sim.truth(kind).put(&key, seen);
    }

    async fn delete(&self, server: &Server, kind: Kind, namespace: &str, name: &str) {
        send(server, Method::DELETE, &kind.path(namespace, name), "json", &Value::Null).await;
        let revision = server.revision().await.unwrap();
        note!(self.sim.log, "delete {kind:?} {namespace}/{name}@{revision}");
        self.sim.log.count("delete");
        self.sim.truth(kind).delete(&format!("{namespace}/{name}"), revision);
    }
}

async fn send(server: &Server, method: Method, path: &str, form: &str, body: &Value) -> Value {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", format!("application/{form}"))
        .body(Full::new(Bytes::from(text)))
        .unwrap();
    let answer = server.clone().oneshot(request).await.unwrap();
    let status = answer.status();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&bytes));
    serde_json::from_slice(&bytes).unwrap()
}
