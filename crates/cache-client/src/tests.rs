//! Tests of the cache client: two scripted servers, one behind the informers and one behind the writes.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubestrata_api_types::{
    ApiRequest, ApiResponse, Bookmark, BoxError, Collection, Event, Format, GetOptions, Kind,
    ListOptions, Object as _, ObjectKey, Operation, Payload, ResourceVersion, Status,
    StatusDetails, cause_ref,
};
use kubestrata_codec::{Client, Encoded};
use kubestrata_informer::InformerFactory;
use kubestrata_testkit::{Reply, Scripted, Step, WatchStep};
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::{Cache, CacheClient, CacheError, CacheLayer, Config};

mod errors;
mod lister;
mod vectors;
mod writes;

/// A config map: `ns/name@version`, then `key=value` labels and `.key=value` data.
fn map(text: &str) -> Encoded {
    let mut words = text.split(' ');
    let (key, version) = words.next().unwrap().split_once('@').unwrap();
    let key: ObjectKey = key.parse().unwrap();
    let (mut labels, mut data) = (Vec::new(), Vec::new());
    for word in words {
        let (name, value) = word.split_once('=').unwrap();
        match name.strip_prefix('.') {
            Some(name) => data.push(format!("{name:?}:{value:?}")),
            None => labels.push(format!("{name:?}:{value:?}")),
        }
    }
    let json = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":{:?},"namespace":{:?},
            "uid":"uid-{key}","resourceVersion":{version:?},"labels":{{{}}}}},"data":{{{}}}}}"#,
        key.name(),
        key.namespace().unwrap(),
        labels.join(","),
        data.join(","),
    );
    let resource = Arc::new(ConfigMap::resource().clone());
    Encoded::read(&resource, Format::Json, json.as_bytes(), &[]).unwrap()
}

fn maps() -> Collection {
    Collection::new(ConfigMap::resource().clone())
}

/// A step of a watch: `+`, `~` or `-` and a map; `end@5`, `bookmark@5`, `wait=500ms`, `hang`.
fn step(text: &str) -> WatchStep<Event<Encoded>> {
    if let Some(millis) = text.strip_prefix("wait=") {
        return WatchStep::Wait(Duration::from_millis(millis.parse().unwrap()));
    }
    if let Some((word, version)) = text.split_once('@').filter(|(word, _)| !word.contains('/')) {
        return WatchStep::Item(Event::Bookmark(Bookmark {
            resource_version: ResourceVersion::new(version),
            initial_events_end: word == "end",
        }));
    }
    let object = map(&text[1..]);
    WatchStep::Item(match &text[..1] {
        "+" => Event::Added(object),
        "~" => Event::Modified(object),
        "-" => Event::Deleted(object),
        other => panic!("{other:?} is no event"),
    })
}

fn watch(steps: &[&str]) -> Step<Encoded> {
    Reply::Watch(steps.iter().map(|text| step(text)).collect()).into()
}

/// A cache whose informers follow these watches, and the server that they ask.
fn cache(watches: &[&[&str]], config: Config) -> (Cache, Scripted<Encoded>) {
    let server = Scripted::new(watches.iter().map(|steps| watch(steps)));
    let factory = InformerFactory::new(Arc::new(server.clone()), Default::default());
    (Cache::new(factory, config), server)
}

/// A started cache and a client that reads its own writes, over a server with these answers to writes.
fn client(
    watches: &[&[&str]],
    answers: Vec<Step<Encoded>>,
) -> (CacheClient<Scripted<Encoded>>, Scripted<Encoded>) {
    let (cache, _) = cache(watches, Config::default());
    cache.start();
    let live = Scripted::new(answers);
    let layer = CacheLayer::new(cache).read_your_writes();
    (tower::Layer::layer(&layer, live.clone()), live)
}

fn object(text: &str) -> Step<Encoded> {
    Reply::Object(map(text)).into()
}

fn slow(millis: u64, step: Step<Encoded>) -> Step<Encoded> {
    Step { delay: Duration::from_millis(millis), ..step }
}

fn gone(uid: &str) -> Step<Encoded> {
    let details = StatusDetails { uid: uid.to_owned(), ..StatusDetails::default() };
    let status = Status {
        status: "Success".to_owned(),
        details: Some(details),
        code: 200,
        ..Status::default()
    };
    Reply::Status(status).into()
}

async fn get<S: Client>(client: &S, key: &str) -> Result<Encoded, BoxError> {
    let key: ObjectKey = key.parse()?;
    let collection = maps().in_namespace(key.namespace().unwrap());
    let name = Arc::from(key.name());
    let operation = Operation::Get { name, options: GetOptions::default() };
    let response = client.clone().oneshot(ApiRequest::new(collection, operation)).await;
    Ok(response.map_err(Into::into)?.into_object()?)
}

/// Sorted keys and versions of a list, with `…` if there is more.
async fn list<S: Client>(
    client: &S,
    namespace: &str,
    options: ListOptions,
) -> Result<String, kubestrata_codec::ClientError> {
    let list = client.list_encoded(maps().in_namespace(namespace), options).await?;
    let mut lines: Vec<_> = list
        .items
        .iter()
        .map(|item| format!("{}@{}", item.key(), item.resource_version()))
        .collect();
    lines.sort_unstable();
    Ok(lines.join(" "))
}

async fn send<S: Client>(
    client: &S,
    namespace: &str,
    operation: Operation,
) -> Result<ApiResponse<Encoded>, BoxError> {
    let request = ApiRequest::new(maps().in_namespace(namespace), operation);
    client.clone().oneshot(request).await.map_err(Into::into)
}

fn update(text: &str) -> Operation {
    let object = map(text);
    let body = Payload::json(object.bytes().to_vec());
    Operation::Update { name: Arc::from(object.name()), body, options: Default::default() }
}

fn create(text: &str) -> Operation {
    let body = Payload::json(map(text).bytes().to_vec());
    Operation::Create { name: None, body, options: Default::default() }
}

fn delete(name: &str) -> Operation {
    Operation::Delete { name: Arc::from(name), options: Default::default() }
}

fn cache_error(error: &BoxError) -> &CacheError {
    cause_ref::<CacheError>(&**error).unwrap_or_else(|| panic!("{error:?} is no cache error"))
}

fn version(encoded: &Encoded) -> String {
    encoded.resource_version().to_string()
}

/// Milliseconds that a future takes, and what it gives.
async fn timed<T>(future: impl Future<Output = T>) -> (u128, T) {
    let start = Instant::now();
    let output = future.await;
    (start.elapsed().as_millis(), output)
}
