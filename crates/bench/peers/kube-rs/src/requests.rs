//! Single requests: `count` GETs of pods one at a time, ten times as many with 100 at a time, and a tenth as many
//! PATCHes. Each of the workers has a pod of its own.
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::Api;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ANNOTATION: &str = "bench/number";

pub async fn run(api: &Api<Pod>, count: u64) -> anyhow::Result<serde_json::Value> {
    let mut result = json!({"what": "kube-rs requests"});
    let numbers = Arc::new(AtomicU64::new(0));
    for (verb, fewer) in [("get", 1), ("patch", 10)] {
        for (in_flight, more) in [(1, 1), (100, 10)] {
            let count = (count * more / fewer).max(1);
            send(api, verb, in_flight, count.div_ceil(10), &numbers).await?;
            let (before, start) = (cpu(), Instant::now());
            let mut times = send(api, verb, in_flight, count, &numbers).await?;
            let (wall, used) = (start.elapsed(), cpu() - before);
            times.sort();
            let micros = |time: Duration| time.as_secs_f64() * 1e6;
            let rank = |percent: usize| {
                micros(times[(times.len() * percent).div_ceil(100).saturating_sub(1)])
            };
            let total = times.len() as f64;
            for (name, figure) in [
                ("p50_us", rank(50)),
                ("p99_us", rank(99)),
                ("mean_us", micros(times.iter().sum()) / total),
                ("per_s", total / wall.as_secs_f64()),
                ("cpu_us", micros(used) / total),
            ] {
                result[format!("{verb}_{in_flight}_{name}")] = json!(figure);
            }
        }
    }
    Ok(result)
}

/// The time of each of `count` requests.
async fn send(
    api: &Api<Pod>,
    verb: &'static str,
    in_flight: u32,
    count: u64,
    numbers: &Arc<AtomicU64>,
) -> anyhow::Result<Vec<Duration>> {
    let end = numbers.load(Ordering::Relaxed) + count;
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..in_flight {
        let (api, numbers, name) = (api.clone(), numbers.clone(), format!("pod-{worker:06}"));
        workers.spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return anyhow::Ok(times);
                }
                let start = Instant::now();
                if verb == "get" {
                    let pod = api.get(&name).await?;
                    anyhow::ensure!(pod.metadata.name.as_ref() == Some(&name), "another pod");
                } else {
                    let text = format!("{}-{number}", std::process::id());
                    let patch = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: text}}}));
                    let pod = api.patch(&name, &PatchParams::default(), &patch).await?;
                    let annotations = pod.metadata.annotations.unwrap_or_default();
                    anyhow::ensure!(annotations.get(ANNOTATION) == Some(&text), "no change");
                }
                times.push(start.elapsed());
            }
        });
    }
    let mut times = Vec::new();
    while let Some(worker) = workers.join_next().await {
        times.extend(worker??);
    }
    Ok(times)
}

/// User and system time of all threads of this process.
fn cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a timespec to the place it is given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
