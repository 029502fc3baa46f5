//! A scripted server of several kinds, and a reconciler that keeps a log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use kubestrata_api_types::{
    Answer, ApiRequest, ApiResponse, BoxError, Format, Kind as _, ListPart, Object as _, ObjectKey,
    ObjectMeta, ResourceType,
};
use kubestrata_codec::{Encoded, EncodedService};
use kubestrata_derive::{Kind, Object};
use kubestrata_testkit::{Scripted, Thing};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tower::ServiceExt as _;

use crate::{Action, Context, Manager, Reconciler, RunError};

/// A kind that owns others.
#[derive(Debug, Clone, Serialize, Deserialize, Object, Kind)]
#[kubestrata(group = "test", version = "v1", plural = "sets", scope = "Namespaced")]
pub(super) struct Set {
    pub(super) metadata: ObjectMeta,
}

/// A kind that is owned.
#[derive(Debug, Clone, Serialize, Deserialize, Object, Kind)]
#[kubestrata(group = "test", version = "v1", plural = "members", scope = "Namespaced")]
pub(super) struct Member {
    pub(super) metadata: ObjectMeta,
}

/// A kind without namespaces.
#[derive(Debug, Clone, Serialize, Deserialize, Object, Kind)]
#[kubestrata(group = "test", version = "v1", plural = "hosts", scope = "Cluster")]
pub(super) struct Host {
    pub(super) metadata: ObjectMeta,
}

/// A scripted server, with a script for each plural name.
#[derive(Clone)]
pub(super) struct Server(Arc<BTreeMap<&'static str, Scripted<Thing>>>);

impl Server {
    pub(super) fn new(scripts: &[(&'static str, &str)]) -> Self {
        let servers = scripts
            .iter()
            .map(|(plural, script)| (*plural, Scripted::<Thing>::parse(script).expect("a script")));
        Self(Arc::new(servers.collect()))
    }

    /// The scripted service of one kind.
    pub(super) fn of(&self, plural: &str) -> &Scripted<Thing> {
        &self.0[plural]
    }

    pub(super) fn service(&self) -> impl EncodedService + use<> {
        let server = self.clone();
        tower::service_fn(move |request: ApiRequest| {
            let resource = Arc::clone(&request.collection.resource);
            let scripted = server.of(&resource.plural).clone();
            async move { Ok::<_, BoxError>(encoded(scripted.oneshot(request).await?, resource)) }
        })
    }
}

/// An object as this server sends it. The field `owner` is written `Kind:name`, as for things; `gen` is the generation.
pub(super) fn encode(thing: &Thing, resource: &Arc<ResourceType>) -> Encoded {
    let owner = thing.fields.get("owner").and_then(|owner| owner.split_once(':'));
    let owners = owner.map(|(kind, name)| {
        serde_json::json!([{
            "apiVersion": "test/v9", "kind": kind, "name": name, "uid": format!("uid-{name}"),
            "controller": !thing.fields.contains_key("loose"),
        }])
    });
    let object = serde_json::json!({
        "metadata": {
            "name": thing.name, "namespace": thing.namespace, "labels": thing.labels,
            "uid": thing.uid, "resourceVersion": thing.resource_version.to_string(),
            "generation": thing.fields.get("gen").and_then(|text| text.parse::<i64>().ok()),
            "annotations": thing.fields.get("note").map(|note| serde_json::json!({ "note": note })),
            "ownerReferences": owners,
        },
    });
    Encoded::read(resource, Format::Json, object.to_string().as_bytes(), &[]).expect("an object")
}

fn encoded(response: ApiResponse<Thing>, resource: Arc<ResourceType>) -> ApiResponse<Encoded> {
    ApiResponse::new(match response.answer {
        Answer::Object(thing) => Answer::Object(encode(&thing, &resource)),
        Answer::List(list) => Answer::List(Box::pin(list.map(move |part| {
            Ok(match part? {
                ListPart::Item(thing) => ListPart::Item(encode(&thing, &resource)),
                ListPart::Unreadable(unreadable) => ListPart::Unreadable(unreadable),
                ListPart::Meta(meta) => ListPart::Meta(meta),
            })
        }))),
        Answer::Watch(watch) => Answer::Watch(Box::pin(watch.map(move |event| {
            event.map(|event| event.map(|thing: Thing| encode(&thing, &resource)))
        }))),
        Answer::Status(status) => Answer::Status(status),
    })
}

/// Reconciles by doing nothing for a while, and keeps a log: second, key, and what the cache has.
#[derive(Clone)]
pub(super) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    origin: Instant,
    takes: Duration,
}

impl Log {
    pub(super) fn new() -> Self {
        Self::taking(Duration::ZERO)
    }

    pub(super) fn taking(takes: Duration) -> Self {
        Self { lines: Arc::default(), origin: Instant::now(), takes }
    }

    pub(super) fn note(&self, text: &str) {
        let line = format!("{:.1} {text}", self.origin.elapsed().as_secs_f64());
        self.lines.lock().expect("no panic while locked").push(line);
    }

    pub(super) fn lines(&self) -> String {
        self.lines.lock().expect("no panic while locked").join("\n")
    }
}

#[async_trait]
impl Reconciler for Log {
    async fn reconcile(&self, context: &Context, key: ObjectKey) -> Result<Action, BoxError> {
        let found = context
            .cache()
            .informers(Set::resource())
            .iter()
            .find_map(|sets| sets.reader().get(&key));
        let version = found.map(|set| set.resource_version().to_string());
        self.note(&format!("{key}@{}", version.as_deref().unwrap_or("gone")));
        sleep(self.takes).await;
        Ok(Action::done())
    }
}

/// Runs a manager for some seconds.
pub(super) async fn run_for(manager: Manager, seconds: f64) -> Result<(), RunError> {
    manager.run(sleep(Duration::from_secs_f64(seconds))).await
}
