//! The main job: ReplicaSets up to a thousand pods, healing, scaling, and an exact end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kubestrata_controller::cache_client::Lister;
use kubestrata_controller::manager::Cache;
use kubestrata_controller::prelude::*;
use kubestrata_controller::telemetry::Memory;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::counted::Counted;
use crate::outcome::{self, Outcome};
use crate::progress::{Step, say};
use crate::{cleanup, replicaset, target};

/// How long one step may take.
const LIMIT: Duration = Duration::from_secs(180);
/// Requests of the demo itself at once, beside the controller's.
const CONCURRENCY: usize = 32;
/// Reconciles at once.
const WORKERS: usize = 10;

/// Arguments of the demo.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Run on this server, in a namespace of its own, instead of the embedded one.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    size: Size,
}

/// How much work there is.
#[derive(Debug, Clone, Copy, clap::Args)]
struct Size {
    /// ReplicaSets to make.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(10..=500))]
    sets: u16,
    /// Pods for each of them.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(5..=100))]
    replicas: u16,
}

impl Size {
    fn pods(self) -> usize {
        usize::from(self.sets) * usize::from(self.replicas)
    }

    /// ReplicaSets that are scaled up and down.
    fn scaled(self) -> u16 {
        self.sets / 5
    }
}

/// Everything that the steps need.
struct Job {
    service: Counted<Transport>,
    namespace: String,
    size: Size,
    sets: Lister<ReplicaSet>,
    pods: Lister<Pod>,
}

/// Runs the job, and deletes all it made, also after a failure or Ctrl-C.
pub async fn run(options: &Options) -> Result<Outcome, BoxError> {
    let (started, size) = (Instant::now(), options.size);
    let transport = target::connect(options.kubeconfig.as_deref())?;
    target::check(&transport).await?;
    let service = Counted::new(transport);
    let namespace = target::namespace();
    say(&format!(
        "namespace {namespace} on {}: {} ReplicaSets, {} pods",
        target::place(options.kubeconfig.as_deref()),
        size.sets,
        size.pods()
    ));
    let metrics = Memory::new();
    let cached_reads = Arc::new(AtomicU64::new(0));
    let mut seconds = 0.0;
    let outcome = outcome::cleaned(&service, &namespace, async {
        let outcome = work(&service, &namespace, size, &metrics, &cached_reads).await;
        seconds = started.elapsed().as_secs_f64();
        outcome
    })
    .await?;
    if outcome == Outcome::Exact {
        table(&service, &metrics, &cached_reads, seconds);
    }
    Ok(outcome)
}

/// Starts the controller, takes the steps, and stops the controller.
async fn work(
    service: &Counted<Transport>,
    namespace: &str,
    size: Size,
    metrics: &Memory,
    cached_reads: &Arc<AtomicU64>,
) -> Result<(), BoxError> {
    cleanup::prepare(service, namespace).await?;
    let mut manager = Manager::builder(service.clone())
        .namespaces([namespace])
        .metrics(Arc::new(metrics.clone()))
        .build();
    manager.add(replicaset::controller(WORKERS, Arc::clone(cached_reads)))?;
    let cache = manager.cache().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut running = JoinSet::new();
    running.spawn(manager.run(async move {
        // A dropped sender says the same as a sent value: stop.
        let _ = stopped.await;
    }));
    let steps = tokio::select! {
        // A controller that ends by itself explains more than the step that then waits in vain.
        biased;
        Some(ended) = running.join_next() => {
            ended??;
            return Err("the controller ended by itself".into());
        }
        steps = steps(service, namespace, size, &cache) => steps,
    };
    drop(stop);
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    steps
}

async fn steps(
    service: &Counted<Transport>,
    namespace: &str,
    size: Size,
    cache: &Cache,
) -> Result<(), BoxError> {
    let started = Step::new("syncing the caches", 1);
    // Listers can be had once the caches are synced.
    let (sets, pods) = loop {
        match (cache.lister_in(namespace), cache.lister_in(namespace)) {
            (Ok(sets), Ok(pods)) => break (sets, pods),
            (Err(error), _) | (_, Err(error)) if started.elapsed() > LIMIT => {
                return Err(error.into());
            }
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    started.done();
    Job { service: service.clone(), namespace: namespace.to_owned(), size, sets, pods }.run().await
}

impl Job {
    async fn run(&self) -> Result<(), BoxError> {
        self.create().await?;
        self.settle("controller at work", &self.wanted(self.size.replicas)).await?;
        self.verify(&self.wanted(self.size.replicas)).await?;
        self.heal().await?;
        let up = self.size.replicas + 10;
        self.scale("scaling up", up).await?;
        self.settle("controller at work", &self.wanted(up)).await?;
        let down = self.size.replicas / 2;
        self.scale("scaling down", down).await?;
        self.settle("controller at work", &self.wanted(down)).await?;
        self.verify(&self.wanted(down)).await
    }

    /// Pods by ReplicaSet, where the scaled ones have `scaled`.
    fn wanted(&self, scaled: u16) -> BTreeMap<String, usize> {
        let replicas = |index| if index < self.size.scaled() { scaled } else { self.size.replicas };
        (0..self.size.sets).map(|index| (set_name(index), usize::from(replicas(index)))).collect()
    }

    async fn create(&self) -> Result<(), BoxError> {
        let step = Step::new("creating ReplicaSets", self.size.sets.into());
        let made = AtomicU64::new(0);
        stream::iter(0..self.size.sets)
            .map(|index| async move {
                self.service.create(&self.replica_set(index)?).await?;
                Ok::<_, BoxError>(())
            })
            .buffer_unordered(CONCURRENCY)
            .inspect_ok(|()| step.set(made.fetch_add(1, Ordering::Relaxed) + 1))
            .try_collect::<()>()
            .await?;
        step.done();
        Ok(())
    }

    fn replica_set(&self, index: u16) -> Result<ReplicaSet, serde_json::Error> {
        let name = set_name(index);
        let labels = json!({ "app": name });
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": self.namespace },
            "spec": {
                "replicas": self.size.replicas,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        // No scheduler of this name is there: the pods stay where they are, pending.
                        "schedulerName": "kubestrata-demo",
                        "automountServiceAccountToken": false,
                        "containers": [{ "name": "main", "image": "example/app:1" }]
                    }
                }
            }
        }))
    }

    /// Waits until the caches show the wanted pods, and each status says so.
    async fn settle(
        &self,
        name: &'static str,
        wanted: &BTreeMap<String, usize>,
    ) -> Result<(), BoxError> {
        let goal = wanted.values().sum::<usize>() as u64;
        let step = Step::new(name, goal);
        step.reach(goal, LIMIT, || {
            let (pods, sets) = (self.pods.list(), self.sets.list());
            let (Ok(pods), Ok(sets)) = (pods, sets) else { return (0, false) };
            let have = count(pods.items.iter().map(|pod| &***pod));
            let told = sets.items.iter().all(|set| {
                let replicas = set.status.as_ref().map(|status| status.replicas);
                replicas.and_then(|n| usize::try_from(n).ok()) == wanted.get(set.name()).copied()
            });
            let total = have.values().sum::<usize>() as u64;
            (total, told && &have == wanted)
        })
        .await?;
        Ok(())
    }

    /// Deletes a tenth of the pods, and waits until as many new ones are there.
    async fn heal(&self) -> Result<(), BoxError> {
        let victims: Vec<_> = self.pods.list()?.items.into_iter().step_by(10).collect();
        let step = Step::new("deleting a tenth of the pods", victims.len() as u64);
        let deleted = AtomicU64::new(0);
        stream::iter(&victims)
            .map(|pod| async {
                self.service.delete::<Pod>(&pod.key(), DeleteOptions::default()).await
            })
            .buffer_unordered(CONCURRENCY)
            .inspect_ok(|_| step.set(deleted.fetch_add(1, Ordering::Relaxed) + 1))
            .try_for_each(async |_| Ok(()))
            .await?;
        step.done();
        // The cache may still hold the victims: as long as it does, nothing is healed.
        let step = Step::new("victims leave the cache", victims.len() as u64);
        step.reach(victims.len() as u64, LIMIT, || {
            let gone = victims.iter().filter(|victim| {
                self.pods.handle(&victim.key()).is_none_or(|pod| pod.uid() != victim.uid())
            });
            let gone = gone.count();
            (gone as u64, gone == victims.len())
        })
        .await?;
        self.settle("healing", &self.wanted(self.size.replicas)).await
    }

    async fn scale(&self, name: &'static str, replicas: u16) -> Result<(), BoxError> {
        let step = Step::new(name, self.size.scaled().into());
        let patch = json!({ "spec": { "replicas": replicas } });
        let patch = &patch;
        stream::iter(0..self.size.scaled())
            .map(|index| async move {
                let key = ObjectKey::namespaced(&self.namespace, &set_name(index));
                self.service.patch::<ReplicaSet>(&key, PatchKind::Merge, patch).await
            })
            .buffer_unordered(CONCURRENCY)
            .try_for_each(async |_| Ok(()))
            .await?;
        step.done();
        Ok(())
    }

    /// Reads the state live from the server and compares it with what is wanted.
    async fn verify(&self, wanted: &BTreeMap<String, usize>) -> Result<(), BoxError> {
        let step = Step::new("reading the state back, live", 1);
        let namespace = Some(self.namespace.as_str());
        let pods = self.service.list::<Pod>(namespace, ListOptions::default()).await?;
        let sets = self.service.list::<ReplicaSet>(namespace, ListOptions::default()).await?;
        if !pods.undecodable.is_empty() || !sets.undecodable.is_empty() {
            return Err("the server has objects that do not decode".into());
        }
        let have = count(pods.items.iter().map(|pod| &**pod));
        let told: BTreeMap<_, _> = sets
            .items
            .iter()
            .map(|set| {
                let replicas = set.status.as_ref().map_or(0, |status| status.replicas);
                (set.name().to_owned(), usize::try_from(replicas).unwrap_or_default())
            })
            .collect();
        let live: usize = have.values().sum();
        if have != *wanted || told != *wanted || pods.items.len() != live {
            return Err(format!(
                "the end state is wrong: {} pods wanted, {live} owned and active, {} there; statuses tell {}",
                wanted.values().sum::<usize>(),
                pods.items.len(),
                told.values().sum::<usize>()
            )
            .into());
        }
        step.done();
        say(&format!("exact: {} ReplicaSets, {live} pods", told.len()));
        Ok(())
    }
}

fn set_name(index: u16) -> String {
    format!("set-{index:03}")
}

/// Active pods by the ReplicaSet that controls them.
fn count<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for pod in pods.into_iter().filter(|pod| replicaset::is_active(pod)) {
        pod.for_each_owner(&mut |owner| {
            if owner.controller && owner.kind == "ReplicaSet" {
                *counts.entry(owner.name.to_owned()).or_default() += 1;
            }
        });
    }
    counts
}

fn table(service: &Counted<Transport>, metrics: &Memory, cached: &AtomicU64, seconds: f64) {
    let counts = service.counts();
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let reconciles: f64 = metrics
        .render()
        .lines()
        .filter(|line| line.starts_with("controller_runtime_reconcile_total{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum();
    say("");
    for (name, value) in [
        ("cached reads", load(cached).to_string()),
        ("live reads", load(&counts.live_reads).to_string()),
        ("writes", load(&counts.writes).to_string()),
        ("watches", load(&counts.watches).to_string()),
        ("events", load(&counts.events).to_string()),
        ("reconciles", format!("{reconciles:.0}")),
        ("reconciles per second", format!("{:.0}", reconciles / seconds)),
        ("seconds", format!("{seconds:.1}")),
    ] {
        say(&format!("{name:<24}{value:>10}"));
    }
}
