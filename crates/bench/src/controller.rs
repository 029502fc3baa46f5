//! No-op reconciles: a manager, one controller, and a lazy cached Get in each reconcile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::Kind as _;
use kubestrata_informer::SyncError;
use kubestrata_manager::{Action, Controller, Manager};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::Result;
use crate::follow::LIMIT;
use crate::measure::{cpu_ms, memory_kb};
use crate::site::{Place, Stack};

/// What to reconcile.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// Reconciles at a time.
    #[arg(long, default_value_t = 10)]
    workers: usize,
}

/// The manager ended before all was reconciled.
#[derive(Debug, thiserror::Error)]
#[error("the manager ended by itself")]
struct ManagerEnded;

/// Runs it once.
pub(crate) async fn run(options: &Options) -> Result {
    let stack = options.place.connect(true)?;
    measure(stack, &options.place.namespace, options.workers).await
}

/// Runs it once over any stack.
pub(crate) async fn measure(stack: Stack, namespace: &str, workers: usize) -> Result {
    let (cpu, start) = (cpu_ms(), Instant::now());
    let mut manager = Manager::builder(stack).namespaces([namespace]).build();
    let done = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&done);
    let informers = manager.cache().informers(Pod::resource());
    let readers: Vec<_> = informers.iter().map(|informer| informer.reader()).collect();
    let controller = Controller::builder("bench").for_kind::<Pod>().workers(workers);
    manager.add(controller.reconcile(move |_, key| {
        let found = readers.iter().any(|reader| std::hint::black_box(reader.get(&key)).is_some());
        // Relaxed: a count, looked at until it is reached.
        counted.fetch_add(u64::from(found), Ordering::Relaxed);
        async { Ok(Action::done()) }
    }))?;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut tasks = JoinSet::new();
    // The sender says that it is over, also by being dropped.
    tasks.spawn(manager.run(async { drop(stopped.await) }));
    let work = async {
        for informer in &informers {
            // The manager starts it, in a task of its own that may not have come to that yet.
            while let Err(SyncError::NotStarted { .. }) = informer.wait_synced(LIMIT).await {
                sleep(Duration::from_millis(1)).await;
            }
            informer.wait_synced(LIMIT).await?;
        }
        let sync = start.elapsed();
        let objects = informers.iter().map(|informer| informer.reader().len() as u64).sum();
        while done.load(Ordering::Relaxed) < objects {
            sleep(Duration::from_millis(1)).await;
        }
        Ok::<_, kubestrata_api_types::BoxError>((objects, sync, start.elapsed()))
    };
    let (objects, sync, all) = tokio::select! {
        // Biased: a manager that fails explains why nothing is reconciled.
        biased;
        ended = tasks.join_next() => {
            ended.ok_or(ManagerEnded)???;
            return Err(ManagerEnded.into());
        }
        result = timeout(LIMIT, work) => result??,
    };
    let cpu_ms = cpu_ms() - cpu;
    drop(stop);
    tasks.join_next().await.ok_or(ManagerEnded)???;
    let (sync_s, all_s) = (sync.as_secs_f64(), all.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_s = objects as f64 / (all_s - sync_s).max(1e-9);
    Ok(json!({
        "what": "kubestrata controller",
        "objects": objects,
        "workers": workers,
        "sync_s": sync_s,
        "all_reconciled_s": all_s,
        "reconciles_per_s": per_s,
        "cpu_ms": cpu_ms,
        "rss_kb": memory_kb("VmRSS"),
        "peak_kb": memory_kb("VmHWM"),
    }))
}
