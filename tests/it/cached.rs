//! Reads from a cache, and controllers over one.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{DeleteOptions, ListOptions, PatchKind};
use kubestrata_cache_client::{Cache, CacheLayer, Config};
use kubestrata_codec::{Client as _, ClientError, Encoded, Item};
use kubestrata_informer::InformerFactory;
use kubestrata_manager::{Action, Controller, Manager, TerminalError};
use libtest_mimic::Trial;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tower::Layer as _;

use crate::bed::{Bed, SOON, eventually, scenarios};
use crate::kinds::Sample;

pub(crate) fn trials() -> Vec<Trial> {
    scenarios![a_cached_client_reads_its_own_writes, a_controller_keeps_what_it_is_told,].collect()
}

async fn a_cached_client_reads_its_own_writes<K: Sample>(bed: Bed<K>)
where
    Encoded: Item<K>,
{
    let factory = InformerFactory::new(Arc::new(bed.stack.clone()), Default::default());
    let cache = Cache::new(factory, Config { wait_timeout: SOON, ..Config::default() });
    let client = CacheLayer::new(cache.clone()).read_your_writes().layer(bed.stack.clone());
    cache.start();
    let key = bed.key("a");
    let missing = client.get::<K>(&key).await.expect_err("nothing is there yet");
    assert!(missing.is_not_found(), "{missing:?}");

    let mut object = client.create(&bed.sample("a", &[("app", "x")])).await.unwrap();
    // Each read follows its write at once; without the wait the cache would still hold the state before.
    for replicas in 2..12 {
        object.set_replicas(replicas);
        object = client.update(&object).await.unwrap();
        let read = client.get::<K>(&key).await.unwrap();
        assert_eq!(read.replicas(), replicas);
        assert_eq!(read.resource_version(), object.resource_version());
    }
    let options = ListOptions { labels: "app=x".parse().unwrap(), ..ListOptions::default() };
    let list = client.list::<K>(Some(&bed.namespace), options.clone()).await.unwrap();
    assert_eq!(list.items.iter().map(|item| item.name()).collect::<Vec<_>>(), ["a"]);
    client.delete::<K>(&key, DeleteOptions::default()).await.unwrap();
    let gone = client.get::<K>(&key).await.expect_err("it was deleted by this client");
    assert!(matches!(&gone, ClientError::Status(status) if status.code == 404), "{gone:?}");
    assert!(client.list::<K>(Some(&bed.namespace), options).await.unwrap().items.is_empty());
}

/// The controller writes into the status what the spec wants; a person changes the spec, and once the status.
async fn a_controller_keeps_what_it_is_told<K: Sample>(bed: Bed<K>)
where
    Encoded: Item<K>,
{
    let mut manager =
        Manager::builder(bed.stack.clone()).namespaces([bed.namespace.clone()]).build();
    let controller = Controller::builder("echo").for_kind::<K>().workers(4);
    manager
        .add(controller.reconcile(async |context, key| {
            let Some(object) = context.client().get_opt::<K>(&key).await? else {
                return Ok(Action::done());
            };
            if object.name() == "refused" {
                return Err(TerminalError::new("this one is not for us").into());
            }
            if object.observed() != object.replicas() {
                let patch = json!({"status": {"replicas": object.replicas()}});
                context.client().patch_status::<K>(&key, PatchKind::Merge, &patch).await?;
            }
            Ok(Action::done())
        }))
        .unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut running = JoinSet::new();
    running.spawn(manager.run(async move {
        let _ = stopped.await;
    }));

    let told = async |name: &str| bed.get(name).await.unwrap().observed();
    for name in ["a", "b", "refused", "c"] {
        bed.create(&bed.sample(name, &[])).await.unwrap();
    }
    for name in ["a", "b", "c"] {
        eventually("the status says what the spec wants", async || told(name).await == 1).await;
    }
    bed.patch("b", PatchKind::Merge, json!({"spec": {"replicas": 5}}), None).await.unwrap();
    eventually("the status follows the spec", async || told("b").await == 5).await;
    bed.patch("a", PatchKind::Merge, json!({"status": {"replicas": 9}}), Some("status"))
        .await
        .unwrap();
    eventually("a foreign status is put right", async || told("a").await == 1).await;
    bed.delete("c").await.unwrap();
    assert_eq!(told("refused").await, 0, "the reconciler refuses it");

    drop(stop);
    let ended = tokio::time::timeout(SOON, running.join_next()).await.expect("a stop is soon over");
    ended.unwrap().unwrap().unwrap();
    // Nobody is there any more to put it right.
    bed.patch("b", PatchKind::Merge, json!({"spec": {"replicas": 6}}), None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(told("b").await, 5);
}
