//! A ReplicaSet controller on the facade: as many pods as the ReplicaSet wants, and a status that says how many there are.
//!
//! It is right although its reads come from a cache that may be older than its own writes:
//!
//! - A key is reconciled again only when the caches have all that its last reconcile wrote through `context.client()`.
//!   So pods that were created a moment ago are counted, and are never created twice.
//! - What others do meanwhile may be missing in the cache, but it comes as an event and brings the key back.
//! - A create whose answer got lost is not known to have happened. Then a pod too many may be made; the event of the first
//!   one brings the key back, and the surplus goes.
//! - Deletes name the UID that was seen, so that a new pod of an old name is never hit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::try_join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kubestrata_controller::api_types::Preconditions;
use kubestrata_controller::prelude::*;

/// The controller for `manager.add`. Each read from a cache adds one to `cached_reads`.
pub fn controller(workers: usize, cached_reads: Arc<AtomicU64>) -> Controller {
    let controller =
        Controller::builder("replicaset").for_kind::<ReplicaSet>().owns::<Pod>().workers(workers);
    controller.reconcile(move |context, key| reconcile(context, key, Arc::clone(&cached_reads)))
}

async fn reconcile(
    context: Context,
    key: ObjectKey,
    cached_reads: Arc<AtomicU64>,
) -> Result<Action, BoxError> {
    cached_reads.fetch_add(2, Ordering::Relaxed);
    let sets = context.lister_in::<ReplicaSet>(key.namespace().unwrap_or_default())?;
    let Some(set) = sets.get(&key)? else {
        return Ok(Action::done());
    };
    if set.deletion_timestamp().is_some() {
        // Its pods are the garbage collector's.
        return Ok(Action::done());
    }
    let mut pods = context.owned::<Pod>(&*set)?.items;
    pods.retain(|pod| is_active(pod));

    let want = usize::try_from(wanted(&set)).unwrap_or_default();
    let client = context.client();
    if pods.len() < want {
        let missing = (pods.len()..want).map(|_| {
            let (client, pod) = (client.clone(), new_pod(&set));
            async move { client.create(&pod).await }
        });
        try_join_all(missing).await?;
    } else if pods.len() > want {
        // The youngest go first: they have the least to lose.
        pods.sort_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.key()));
        let surplus = pods[want..].iter().map(|pod| {
            let (client, pod) = (client.clone(), Arc::clone(pod));
            async move { delete(&client, &pod).await }
        });
        try_join_all(surplus).await?;
    }
    write_status(&client, &set, pods.len()).await?;
    Ok(Action::done())
}

/// How many pods the ReplicaSet wants.
pub fn wanted(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// A pod counts until it ends, or is on its way out.
pub fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

fn new_pod(set: &ReplicaSet) -> Pod {
    let template = set.spec.template.clone().unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    Pod {
        metadata: meta::ObjectMeta {
            generate_name: Some(format!("{}-", set.name())),
            namespace: set.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            owner_references: Some(vec![meta::OwnerReference {
                api_version: "apps/v1".to_owned(),
                kind: "ReplicaSet".to_owned(),
                name: set.name().to_owned(),
                uid: set.uid().unwrap_or_default().to_owned(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..meta::ObjectMeta::default()
        },
        spec: template.spec,
        ..Pod::default()
    }
}

async fn delete(client: &Client, pod: &Pod) -> Result<(), ClientError> {
    let uid = pod.uid().map(str::to_owned);
    let options = DeleteOptions {
        preconditions: Preconditions { uid, ..Preconditions::default() },
        ..DeleteOptions::default()
    };
    match client.delete::<Pod>(&pod.key(), options).await {
        // Gone already, or another pod by now: either way this one is gone.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Says what was seen. The pods created or deleted just now come back as events, and then they count.
async fn write_status(client: &Client, set: &ReplicaSet, pods: usize) -> Result<(), ClientError> {
    let status = set.status.as_ref();
    let replicas = i32::try_from(pods).unwrap_or(i32::MAX);
    let generation = set.metadata.generation;
    if status.is_some_and(|s| s.replicas == replicas && s.observed_generation == generation) {
        return Ok(());
    }
    let patch = serde_json::json!({
        "status": { "replicas": replicas, "observedGeneration": generation }
    });
    match client.patch_status::<ReplicaSet>(&set.key(), PatchKind::Merge, &patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        outcome => outcome.map(drop),
    }
}
