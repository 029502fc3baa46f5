//! A high rate of changes, and what the informer makes of it: events, lag, queues and memory over time, as a plot.

mod out;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kubestrata_controller::api_types::{Collection, FieldPath, ListOptions, View as _};
use kubestrata_controller::codec::EncodedService;
use kubestrata_controller::informer::{self, Handler, HandlerConfig, Informer};
use kubestrata_controller::prelude::*;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use self::out::Files;
use crate::outcome::{self, Outcome};
use crate::plot::{Panel, Series};
use crate::progress::{Step, say};
use crate::{cleanup, plot, target};

/// How long the end may take: the last events, the comparison.
const LIMIT: Duration = Duration::from_secs(60);
/// From one row of the table to the next.
const SAMPLE: Duration = Duration::from_millis(100);
/// Writes at once.
const WRITERS: u32 = 16;

/// Arguments of the demo.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Run on this server, in a namespace of its own, instead of the embedded one.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// How long to write.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Objects that are written to in turn.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(16..=100_000))]
    objects: u32,
    /// Writes per second to try for.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(16..=200_000))]
    rate: u32,
    /// Where the plot (.svg) and the table (.csv) go: a file name without these. Default: kubestrata-churn in the folder for
    /// temporary files.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

/// Runs it, and deletes all it made, also after a failure or Ctrl-C. The plot stays.
pub async fn run(options: &Options) -> Result<Outcome, BoxError> {
    // First of all: minutes of work are in vain if their result has no place.
    let files = Files::at(options.out.as_deref())?;
    let service = target::connect(options.kubeconfig.as_deref())?;
    target::check(&service).await?;
    let namespace = target::namespace();
    let place = target::place(options.kubeconfig.as_deref());
    let Options { objects, rate, seconds, .. } = options;
    say(&format!(
        "namespace {namespace} on {place}: {objects} objects, {rate} writes per second, {seconds} s"
    ));
    outcome::cleaned(&service, &namespace, work(&service, &namespace, options, &files)).await
}

/// What the handler was told, in numbers.
#[derive(Debug)]
struct Told {
    origin: Instant,
    sent_at: FieldPath,
    /// Relaxed: a count, and nothing else depends on it.
    events: AtomicU64,
    lag: Mutex<Lag>,
}

/// Since the last sample, in microseconds.
#[derive(Debug, Default)]
struct Lag {
    count: u64,
    sum: u64,
    max: u64,
}

impl Told {
    fn micros(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Handler<Encoded> for Told {
    fn on_add(&self, _: &Encoded, _: bool) {}

    fn on_update(&self, _: &Encoded, new: &Encoded) {
        let now = self.micros();
        let mut lag = 0;
        // Every update of this demo says when it was sent. Who else writes here has no say in the figures.
        let _ = new.field(&self.sent_at, &mut |text| {
            lag = text.parse().map_or(0, |sent| now.saturating_sub(sent));
        });
        let mut all = self.lag.lock().unwrap_or_else(PoisonError::into_inner);
        *all = Lag { count: all.count + 1, sum: all.sum + lag, max: all.max.max(lag) };
        drop(all);
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    fn on_delete(&self, _: &Encoded, _: bool) {}
}

async fn work<S>(
    service: &S,
    namespace: &str,
    options: &Options,
    files: &Files,
) -> Result<(), BoxError>
where
    S: EncodedService,
    S::Error: Into<BoxError>,
{
    cleanup::prepare(service, namespace).await?;
    let step = Step::new("creating objects", options.objects.into());
    let made = AtomicU64::new(0);
    stream::iter(0..options.objects)
        .map(|index| async move {
            let object = config_map(namespace, index)?;
            service.create(&object).await?;
            Ok::<_, BoxError>(())
        })
        .buffer_unordered(32)
        .inspect_ok(|()| step.set(made.fetch_add(1, Ordering::Relaxed) + 1))
        .try_collect::<()>()
        .await?;
    step.done();

    let collection = Collection::new(ConfigMap::resource().clone()).in_namespace(namespace);
    let source = tower::ServiceExt::map_err(service.clone(), Into::into);
    let informer: Informer<Encoded> =
        Informer::new(Arc::new(source), collection.clone(), informer::Config::default());
    let told = Arc::new(Told {
        origin: Instant::now(),
        sent_at: "data.sent".parse()?,
        events: AtomicU64::new(0),
        lag: Mutex::default(),
    });
    let registration = informer.add_handler(Arc::clone(&told), HandlerConfig::default())?;
    informer.start();
    informer.wait_synced(LIMIT).await?;
    registration.wait_synced().await?;

    let (written, samples) = churn(service, namespace, options, &informer, &told).await?;
    let missing = async {
        while told.events.load(Ordering::Relaxed) < written {
            sleep(Duration::from_millis(5)).await;
        }
    };
    // What is missing is told below.
    let _ = timeout(LIMIT, missing).await;
    write_plot(options, files, &samples)?;
    compare(service, collection, &informer).await?;
    let (events, relists) =
        (told.events.load(Ordering::Relaxed), informer.status().reflector.states - 1);
    if events != written {
        return Err(format!(
            "{written} writes, but {events} updates were told ({relists} relists)"
        )
        .into());
    }
    samples.tell(written, informer.reader().usage().total());
    informer.stop().await;
    Ok(())
}

/// Writes at the rate, and samples meanwhile. Returns how many writes got through.
async fn churn<S: EncodedService>(
    service: &S,
    namespace: &str,
    options: &Options,
    informer: &Informer<Encoded>,
    told: &Arc<Told>,
) -> Result<(u64, Samples), BoxError> {
    let written = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(options.seconds.into());
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (service, told, written) = (service.clone(), Arc::clone(told), Arc::clone(&written));
        let (namespace, objects) = (namespace.to_owned(), options.objects);
        let mut ticks = interval(Duration::from_secs(1) * WRITERS / options.rate);
        // A server that is slower than the rate gets as much as it can bear.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        writers.spawn(async move {
            let mut object = writer;
            while Instant::now() < end {
                ticks.tick().await;
                let patch = json!({ "data": { "sent": told.micros().to_string() } });
                let key = ObjectKey::namespaced(&namespace, &name(object));
                service.patch::<ConfigMap>(&key, PatchKind::Merge, &patch).await?;
                written.fetch_add(1, Ordering::Relaxed);
                // Each writer has objects of its own, so that no write meets another.
                object += WRITERS;
                if object >= objects {
                    object = writer;
                }
            }
            Ok::<_, ClientError>(())
        });
    }
    let step = Step::new("writing", u64::from(options.seconds) * 10);
    let mut samples = Samples::default();
    let mut ticks = interval(SAMPLE);
    ticks.tick().await;
    while !writers.is_empty() {
        tokio::select! {
            // A writer that fails ends the demo at once.
            biased;
            Some(ended) = writers.join_next() => ended??,
            _ = ticks.tick() => {
                samples.take(written.load(Ordering::Relaxed), informer, told);
                step.set(samples.times.len() as u64);
            }
        }
    }
    step.done();
    Ok((written.load(Ordering::Relaxed), samples))
}

/// The rows of the table.
#[derive(Debug, Default)]
struct Samples {
    times: Vec<f64>,
    writes: Vec<f64>,
    events: Vec<f64>,
    lag_mean: Vec<f64>,
    lag_max: Vec<f64>,
    queued: Vec<f64>,
    backlog: Vec<f64>,
    resident: Vec<f64>,
    stored: Vec<f64>,
    last: (f64, u64, u64),
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
impl Samples {
    fn take(&mut self, written: u64, informer: &Informer<Encoded>, told: &Told) {
        let time = told.origin.elapsed().as_secs_f64();
        let events = told.events.load(Ordering::Relaxed);
        let (before, written_before, events_before) =
            std::mem::replace(&mut self.last, (time, written, events));
        let span = (time - before).max(1e-3);
        let status = informer.status();
        self.times.push(time);
        self.writes.push((written - written_before) as f64 / span);
        self.events.push((events - events_before) as f64 / span);
        let lag = std::mem::take(&mut *told.lag.lock().unwrap_or_else(PoisonError::into_inner));
        self.lag_mean.push(lag.sum as f64 / 1000.0 / lag.count.max(1) as f64);
        self.lag_max.push(lag.max as f64 / 1000.0);
        self.queued.push(status.queued as f64);
        self.backlog
            .push(status.handlers.iter().map(|handler| handler.backlog).sum::<usize>() as f64);
        self.resident.push(resident_kb() as f64 / 1024.0);
        self.stored.push(informer.reader().usage().total() as f64 / (1 << 20) as f64);
    }

    fn panels(&self) -> Vec<Panel> {
        let series =
            |name, color, values: &Vec<f64>| Series { name, color, values: values.clone() };
        vec![
            Panel {
                title: "per second",
                series: vec![
                    series("writes_per_s", "#999999", &self.writes),
                    series("events_per_s", "#1f77b4", &self.events),
                ],
            },
            Panel {
                title: "lag from write to handler, ms",
                series: vec![
                    series("lag_max_ms", "#ff7f0e", &self.lag_max),
                    series("lag_mean_ms", "#1f77b4", &self.lag_mean),
                ],
            },
            Panel {
                title: "waiting changes",
                series: vec![
                    series("queue", "#1f77b4", &self.queued),
                    series("handler_backlog", "#ff7f0e", &self.backlog),
                ],
            },
            Panel {
                title: "memory, MiB",
                series: vec![
                    series("process_mib", "#999999", &self.resident),
                    series("store_mib", "#1f77b4", &self.stored),
                ],
            },
        ]
    }

    fn tell(&self, written: u64, stored: usize) {
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        for (name, value) in [
            ("writes, all told", written.to_string()),
            ("events per second", format!("{:.0}", mean(&self.events))),
            ("mean lag, ms", format!("{:.2}", mean(&self.lag_mean))),
            ("largest lag, ms", format!("{:.1}", most(&self.lag_max))),
            ("longest queue", format!("{:.0}", most(&self.queued))),
            ("stored KiB", (stored >> 10).to_string()),
            ("process, MiB at most", format!("{:.0}", most(&self.resident))),
        ] {
            say(&format!("{name:<24}{value:>10}"));
        }
    }
}

fn write_plot(options: &Options, files: &Files, samples: &Samples) -> Result<(), BoxError> {
    let Files { table, picture } = files;
    let panels = samples.panels();
    plot::csv(table, &samples.times, &panels).map_err(out::failed(table))?;
    let title =
        format!("{} objects, {} writes per second asked for", options.objects, options.rate);
    plot::svg(picture, &title, &samples.times, &panels).map_err(out::failed(picture))?;
    say(&format!("plot: {}", picture.display()));
    say(&format!("table: {}", table.display()));
    Ok(())
}

/// Compares the store with a live list, byte for byte.
async fn compare<S: EncodedService>(
    service: &S,
    collection: Collection,
    informer: &Informer<Encoded>,
) -> Result<(), BoxError> {
    let step = Step::new("comparing with a live list", 1);
    let live = service.list_encoded(collection, ListOptions::default()).await?.items;
    let reader = informer.reader();
    let equal = live.iter().all(|object| reader.get(&object.key()).as_ref() == Some(object));
    if !equal || reader.len() != live.len() {
        step.failed();
        return Err(format!(
            "{} objects are stored and {} are there, or they differ",
            reader.len(),
            live.len()
        )
        .into());
    }
    step.done();
    Ok(())
}

fn name(index: u32) -> String {
    format!("churn-{index:06}")
}

fn config_map(namespace: &str, index: u32) -> Result<ConfigMap, serde_json::Error> {
    serde_json::from_value(json!({
        "metadata": { "name": name(index), "namespace": namespace, "labels": { "app": "churn" } },
        "data": { "sent": "0", "filler": "x".repeat(500) }
    }))
}

/// Memory of this process, as Linux tells it; 0 where nobody tells.
fn resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
