//! The ordered queue beside its predecessor: the same changes of one server, three queues, and what each tells.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubestrata_controller::api_types::{Collection, Update};
use kubestrata_controller::prelude::*;
use kubestrata_controller::realfifo::{
    Consumer, Deleted, Delta, DeltaFifo, KnownObjects, Limits, Merging, Metrics, Producer, Queue,
    RealFifo, over,
};
use kubestrata_controller::reflector::{self, Reflector};
use serde_json::json;
use tokio::time::timeout;

use crate::outcome::{self, Outcome};
use crate::progress::{Step, say};
use crate::{cleanup, target};

/// How long one step may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Width of a column.
const WIDTH: usize = 26;
/// The label of the objects that are followed: a cluster puts others into each namespace.
const LABEL: &str = "kubestrata.dev/demo";

/// Arguments of the demo.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Run on this server, in a namespace of its own, instead of the embedded one.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Runs the demo, and deletes all it made, also after a failure or Ctrl-C.
pub async fn run(options: &Options) -> Result<Outcome, BoxError> {
    let transport = target::connect(options.kubeconfig.as_deref())?;
    let namespace = target::namespace();
    say(&format!("namespace {namespace} on {}", target::place(options.kubeconfig.as_deref())));
    outcome::cleaned(&transport, &namespace, work(&transport, &namespace)).await
}

async fn work(service: &Transport, namespace: &str) -> Result<(), BoxError> {
    cleanup::prepare(service, namespace).await?;
    for name in ["a", "b"] {
        service.create(&config_map(namespace, name, 0)?).await?;
    }
    let mut followers = [
        Follower::new("RealFifo", None, service, namespace),
        Follower::new("DeltaFifo", Some(Merging::Deletions), service, namespace),
        Follower::new("DeltaFifo, to newest", Some(Merging::ToNewest), service, namespace),
    ];
    let step = Step::new("three queues, each with a and b", 3);
    for follower in &mut followers {
        timeout(LIMIT, follower.receive(None)).await.map_err(|_| "the state did not come")??;
        follower.take().await;
        follower.told.clear();
    }
    step.done();

    say("while nobody takes from the queues:");
    let last = changes(service, namespace).await?;
    let step = Step::new("the changes reach the queues", 3);
    for follower in &mut followers {
        let receive = follower.receive(Some(&last));
        timeout(LIMIT, receive).await.map_err(|_| "a change did not come")??;
        follower.waited = follower.consumer.load().items;
        follower.take().await;
    }
    step.done();
    show(&followers);
    check(service, namespace, &followers).await
}

/// Makes quick changes, and says so. Gives the version of the last.
async fn changes(service: &Transport, namespace: &str) -> Result<ResourceVersion, BoxError> {
    say("  a is updated, b is updated, a is updated twice more,");
    service.update(&Tracked::new(config_map(namespace, "a", 1)?)).await?;
    service.update(&Tracked::new(config_map(namespace, "b", 1)?)).await?;
    service.update(&Tracked::new(config_map(namespace, "a", 2)?)).await?;
    service.update(&Tracked::new(config_map(namespace, "a", 3)?)).await?;
    say("  c is made, updated and deleted, b is deleted, d is made");
    service.create(&config_map(namespace, "c", 0)?).await?;
    service.update(&Tracked::new(config_map(namespace, "c", 1)?)).await?;
    for name in ["c", "b"] {
        let key = ObjectKey::namespaced(namespace, name);
        service.delete::<ConfigMap>(&key, DeleteOptions::default()).await?;
    }
    Ok(service.create(&config_map(namespace, "d", 0)?).await?.resource_version())
}

fn config_map(namespace: &str, name: &str, step: u32) -> Result<ConfigMap, BoxError> {
    Ok(serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": namespace, "labels": { LABEL: "realfifo" } },
        "data": { "step": step.to_string() },
    }))?)
}

/// Prints what each queue told, side by side.
fn show(followers: &[Follower]) {
    let row = |cells: Vec<String>| {
        let cells: Vec<_> = cells.iter().map(|cell| format!("{cell:<WIDTH$}")).collect();
        say(cells.join("| ").trim_end());
    };
    say("");
    row(followers.iter().map(|follower| follower.name.to_owned()).collect());
    row(followers.iter().map(|_| "-".repeat(WIDTH - 1)).collect());
    let lines = followers.iter().map(|follower| follower.told.len()).max().unwrap_or_default();
    for line in 0..lines {
        let cell = |follower: &Follower| follower.told.get(line).cloned().unwrap_or_default();
        row(followers.iter().map(cell).collect());
    }
    row(followers
        .iter()
        .map(|follower| format!("({} waited, {} told)", follower.waited, follower.told.len()))
        .collect());
    say("");
}

/// Compares with what the queues promise, and the stores with the server.
async fn check(
    service: &Transport,
    namespace: &str,
    followers: &[Follower],
) -> Result<(), BoxError> {
    let collection = Collection::new(ConfigMap::resource().clone()).in_namespace(namespace);
    let options = ListOptions { labels: labels(), ..ListOptions::default() };
    let live = service.list_encoded(collection, options).await?.items;
    let live: BTreeMap<_, _> =
        live.iter().map(|object| (object.key(), object.resource_version())).collect();
    for follower in followers {
        let stored: BTreeMap<_, _> = follower
            .store
            .lock()
            .iter()
            .map(|(key, object)| (key.clone(), object.resource_version()))
            .collect();
        if stored != live {
            return Err(format!("{}: the store is not what the server has", follower.name).into());
        }
    }
    let updates = |follower: &Follower| {
        follower.told.iter().filter(|line| line.starts_with("update a")).count()
    };
    let counts: Vec<_> = followers.iter().map(updates).collect();
    say(&format!(
        "three quick updates of a: {} notifications, {} and {}; all three stores equal the server",
        counts[0], counts[1], counts[2]
    ));
    if counts == [3, 3, 1] { Ok(()) } else { Err("not what the queues promise".into()) }
}

fn labels() -> LabelSelector {
    LabelSelector::equal(LABEL, "realfifo")
}

/// The objects that a consumer has.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<BTreeMap<ObjectKey, Encoded>>>);

impl Store {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Encoded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownObjects<Encoded> for Store {
    fn for_each_key(&self, f: &mut dyn FnMut(&ObjectKey)) {
        self.lock().keys().for_each(f);
    }

    fn get(&self, key: &ObjectKey) -> Option<Encoded> {
        self.lock().get(key).cloned()
    }
}

/// One queue between a reflector and a store.
struct Follower {
    name: &'static str,
    reflector: Reflector<Encoded>,
    producer: Producer<Encoded>,
    consumer: Consumer<Encoded>,
    store: Store,
    told: Vec<String>,
    /// Changes that waited before any was taken.
    waited: usize,
}

impl Follower {
    fn new(
        name: &'static str,
        predecessor: Option<Merging>,
        service: &Transport,
        namespace: &str,
    ) -> Self {
        let store = Store::default();
        let weigh = |_: &Encoded| size_of::<Encoded>();
        let limits = Limits::default();
        let queue: Box<dyn Queue<Encoded>> = match predecessor {
            None => Box::new(RealFifo::new(limits, weigh)),
            Some(merging) => {
                Box::new(DeltaFifo::new(limits, weigh, Arc::new(store.clone()), merging))
            }
        };
        let (producer, consumer) = over(queue, Metrics::default());
        let config = reflector::Config { labels: labels(), ..reflector::Config::default() };
        let collection = Collection::new(ConfigMap::resource().clone()).in_namespace(namespace);
        let reflector = Reflector::new(service.clone(), collection, config);
        Self { name, reflector, producer, consumer, store, told: Vec::new(), waited: 0 }
    }

    /// Lets the queue have all up to this version, or a whole state.
    async fn receive(&mut self, version: Option<&ResourceVersion>) -> Result<(), BoxError> {
        loop {
            let update = self.reflector.next().await;
            let reached = match &update {
                Update::Replace(state) => Some(state.resource_version.clone()),
                Update::Event(event) => event.object().map(Object::resource_version),
            };
            self.producer.push(update).await.map_err(|_| "the queue has closed")?;
            let enough = match (version, reached) {
                (None, _) => true,
                (Some(version), Some(reached)) => reached.is_at_least(version) == Some(true),
                (Some(_), None) => false,
            };
            if enough {
                return Ok(());
            }
        }
    }

    /// Takes all there is, and tells of it.
    async fn take(&mut self) {
        while self.consumer.load().items > 0 {
            let Some(mut batch) = self.consumer.next_batch().await else { return };
            for delta in batch.take() {
                apply(&self.store, delta, &mut self.told);
            }
        }
    }
}

/// What an informer does: the store first, then the notification.
fn apply(store: &Store, delta: Delta<Encoded>, told: &mut Vec<String>) {
    match delta {
        Delta::Added(object)
        | Delta::Updated(object)
        | Delta::Replaced(object)
        | Delta::Sync(object) => put(store, object, told),
        Delta::Deleted(deleted) => {
            let key = deleted.key();
            store.lock().remove(&key);
            let how = match deleted {
                Deleted::Observed(object) => format!("@{}", object.resource_version()),
                Deleted::Missed(_) => " (missed)".to_owned(),
            };
            told.push(format!("delete {}{how}", key.name()));
        }
        Delta::ReplacedAll(state) => {
            store.lock().clear();
            for object in state.items {
                put(store, object, told);
            }
        }
        Delta::Unreadable(unreadable) => told.push(unreadable.to_string()),
        Delta::SyncAll | Delta::Bookmark(_) => {}
    }
}

fn put(store: &Store, object: Encoded, told: &mut Vec<String>) {
    let (name, version) = (object.name().to_owned(), object.resource_version());
    told.push(match store.lock().insert(object.key(), object) {
        Some(old) => format!("update {name} @{} to @{version}", old.resource_version()),
        None => format!("add {name} @{version}"),
    });
}
