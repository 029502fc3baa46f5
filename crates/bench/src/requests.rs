//! Single requests: how long a GET and a PATCH take, one at a time and many, and how much CPU time of the client.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{Accept, ApiRequest, ObjectKey, PatchKind};
use kubestrata_codec::{Client as _, Tracked};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

use crate::Result;
use crate::measure::{cpu_time, memory_kb};
use crate::site::{Place, Stack, WireFormat, stack};

/// Requests that take longer together have failed.
const LIMIT: Duration = Duration::from_secs(300);

/// The annotation that patches change, as those of the peers do.
const ANNOTATION: &str = "bench/number";

/// How many requests are on their way at a time, and how many more of them are sent then.
const IN_FLIGHT: [(u32, u64); 2] = [(1, 1), (100, 10)];

/// What is sent, and how many fewer of it: a server writes slower than it reads.
const VERBS: [(Verb, u64); 2] = [(Verb::Get, 1), (Verb::Patch, 10)];

/// What to send.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// Encoding of the answers.
    #[arg(long, value_enum, default_value = "protobuf")]
    format: WireFormat,
    /// GETs one at a time. Ten times as many are sent with 100 at a time, and a tenth as many PATCHes.
    #[arg(long, default_value_t = 2_000)]
    requests: u64,
}

/// The two requests.
#[derive(Debug, Clone, Copy)]
enum Verb {
    Get,
    Patch,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::Patch => "patch",
        })
    }
}

/// The server answered with another object than was asked for, or without the change.
#[derive(Debug, thiserror::Error)]
#[error("the answer to a {verb} of {key} is not what was asked for")]
struct WrongAnswer {
    verb: Verb,
    key: ObjectKey,
}

/// Runs it once.
pub(crate) async fn run(options: &Options) -> Result {
    let api = options.place.connect(true)?;
    measure(api, &options.place.namespace, options.format, options.requests).await
}

/// Runs it once over any stack. The first hundred pods of the namespace must be there.
pub(crate) async fn measure(
    api: Stack,
    namespace: &str,
    format: WireFormat,
    requests: u64,
) -> Result {
    let api = match format {
        // What the typed methods ask for by themselves.
        WireFormat::Protobuf => api,
        WireFormat::Json => stack(api.map_request(|mut request: ApiRequest| {
            request.collection.accept = Accept::Only(WireFormat::Json.into());
            request
        })),
    };
    let mut result = Map::new();
    result.insert("what".to_owned(), json!("kubestrata requests"));
    result.insert("format".to_owned(), json!(format!("{format:?}").to_lowercase()));
    // Numbers are never used twice: a patch that changes nothing is no write for the server.
    let numbers = Arc::new(AtomicU64::new(0));
    for (verb, fewer) in VERBS {
        for (in_flight, more) in IN_FLIGHT {
            let count = (requests * more / fewer).max(1);
            let send = |count| send(&api, namespace, verb, in_flight, count, &numbers);
            // Connections are open and caches are filled before anything counts.
            send(count.div_ceil(10)).await?;
            let (cpu, start) = (cpu_time(), Instant::now());
            let times = send(count).await?;
            let (wall, cpu) = (start.elapsed(), cpu_time() - cpu);
            for (name, figure) in figures(times, wall, cpu) {
                result.insert(format!("{verb}_{in_flight}_{name}"), json!(figure));
            }
        }
    }
    result.insert("peak_kb".to_owned(), json!(memory_kb("VmHWM")));
    Ok(Value::Object(result))
}

/// Sends `count` requests by workers that each have one on its way, to an object of its own. Gives the time of each.
async fn send(
    api: &Stack,
    namespace: &str,
    verb: Verb,
    in_flight: u32,
    count: u64,
    numbers: &Arc<AtomicU64>,
) -> Result<Vec<Duration>> {
    // Relaxed, here and below: a count that nothing else depends on.
    let end = numbers.load(Ordering::Relaxed) + count;
    let mut workers = JoinSet::new();
    for worker in 0..in_flight {
        let key = ObjectKey::namespaced(namespace, &format!("pod-{worker:06}"));
        let (api, numbers) = (api.clone(), Arc::clone(numbers));
        workers.spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = numbers.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return Ok::<_, kubestrata_api_types::BoxError>(times);
                }
                let start = Instant::now();
                one(&api, verb, &key, number).await?;
                times.push(start.elapsed());
            }
        });
    }
    let all = async {
        let mut times = Vec::new();
        while let Some(worker) = workers.join_next().await {
            times.extend(worker??);
        }
        Ok(times)
    };
    timeout(LIMIT, all).await?
}

/// Sends one request, and looks at the answer.
async fn one(api: &Stack, verb: Verb, key: &ObjectKey, number: u64) -> Result<()> {
    let right = match verb {
        Verb::Get => {
            let pod: Tracked<Pod> = api.get(key).await?;
            pod.metadata.name.as_deref() == Some(key.name())
        }
        Verb::Patch => {
            // Another process may have sent the same number before.
            let text = format!("{}-{number}", std::process::id());
            let patch = json!({ "metadata": { "annotations": { ANNOTATION: text } } });
            let pod: Tracked<Pod> = api.patch(key, PatchKind::Merge, &patch).await?;
            let annotations = pod.metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(ANNOTATION)) == Some(&text)
        }
    };
    if right { Ok(()) } else { Err(WrongAnswer { verb, key: key.clone() }.into()) }
}

/// Latency in microseconds, requests per second, and CPU microseconds of this process per request.
fn figures(mut times: Vec<Duration>, wall: Duration, cpu: Duration) -> [(&'static str, f64); 5] {
    times.sort();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let rank = |percent: usize| {
        let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(at).copied().map_or(f64::NAN, micros)
    };
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let count = times.len() as f64;
    [
        ("p50_us", rank(50)),
        ("p99_us", rank(99)),
        ("mean_us", micros(times.iter().sum()) / count),
        ("per_s", count / wall.as_secs_f64()),
        ("cpu_us", micros(cpu) / count),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_all_requests() {
        let times = (1..=200).rev().map(Duration::from_micros).collect();
        let figures = figures(times, Duration::from_secs(2), Duration::from_millis(4));
        let expected = [
            ("p50_us", 100.0),
            ("p99_us", 198.0),
            ("mean_us", 100.5),
            ("per_s", 100.0),
            ("cpu_us", 20.0),
        ];
        for ((name, figure), (expected_name, expected)) in figures.into_iter().zip(expected) {
            assert_eq!(name, expected_name);
            assert!((figure - expected).abs() < 1e-6, "{name}: {figure}");
        }
    }
}
