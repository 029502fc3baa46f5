//! The codec on recorded objects of a real server, beside `serde_json`, prost and client-go.

mod cases;
mod custom;
mod data;
mod go;
mod record;
mod report;

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kubestrata_api_types::Kind as _;
use kubestrata_transport::Config;
use rustix::time::{ClockId, clock_gettime};

use self::cases::Case;
use self::data::Set;
use crate::Result;
use crate::counting::counted;
use crate::site::connect;

/// The namespace that `--record` uses.
const NAMESPACE: &str = "codec";

/// How long one case runs in one round, in nanoseconds.
const ROUND_NS: u64 = 10_000_000;

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The recorded objects.
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data"))]
    data: PathBuf,
    /// Do not measure: make the objects on this server, and record them to the folder.
    #[arg(long, value_name = "KUBECONFIG")]
    record: Option<PathBuf>,
    /// Rounds, of which the medians are shown. Every case runs in every round.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Only cases whose set, work or peer holds this.
    #[arg(long, default_value = "")]
    only: String,
    /// `peer-go` of the peers, to measure client-go in the same rounds.
    #[arg(long, value_name = "FILE")]
    peer_go: Option<PathBuf>,
}

/// What one case took, per object; also a line of `peer-go codec`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
struct Figure {
    set: String,
    what: String,
    by: String,
    /// Bytes of one object, on average, as they went in.
    input: f64,
    /// Nanoseconds of CPU.
    ns: f64,
    allocations: f64,
    allocated: f64,
}

/// Runs it, or records.
pub(crate) async fn run(options: &Options) -> Result {
    if let Some(kubeconfig) = &options.record {
        let stack = connect(Config::from_kubeconfig(kubeconfig)?, true)?;
        return record::record(&stack, &options.data).await;
    }
    let sets = sets(options)?;
    let mut cases = cases::all(&sets)?;
    cases.retain(|case| {
        [case.set, case.what, case.by].iter().any(|name| name.contains(&options.only))
    });
    let mut rounds = vec![Vec::new(); cases.len()];
    let mut go_rounds = Vec::new();
    for _ in 0..options.rounds.max(1) {
        for (case, times) in cases.iter().zip(&mut rounds) {
            times.push(time(case));
        }
        if let Some(program) = &options.peer_go {
            go_rounds.push(go::round(program, &options.data)?);
        }
    }
    let mut figures: Vec<Figure> =
        cases.iter().zip(&mut rounds).map(|(case, times)| figure(case, times)).collect();
    figures.extend(go::medians(go_rounds));
    for figure in &figures {
        println!("{}", report::line(figure));
    }
    eprintln!("{}", report::table(&figures));
    Ok(report::summary(&figures, options.rounds, cases::list_memory(&sets)?))
}

/// A tiny run of every case, for the gate.
pub(crate) fn smoke() -> Result {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data"));
    let options =
        Options { data: folder, record: None, rounds: 1, only: String::new(), peer_go: None };
    let sets = sets(&options)?;
    let cases = cases::all(&sets)?;
    for case in &cases {
        (0..case.calls).for_each(|index| (case.work)(index));
    }
    let figures: Vec<Figure> = cases.iter().map(|case| figure(case, &mut [1.0])).collect();
    Ok(report::summary(&figures, 1, cases::list_memory(&sets)?))
}

fn sets(options: &Options) -> Result<Vec<Set>> {
    let read = |name, resource| Set::read(&options.data, name, resource);
    Ok(vec![
        read("pods", Pod::resource().clone())?,
        read("running-pods", Pod::resource().clone())?,
        read("configmaps", ConfigMap::resource().clone())?,
        read("endpointslices", EndpointSlice::resource().clone())?,
        read("widgets", custom::resource())?,
    ])
}

/// Nanoseconds of CPU of this thread: what other programs do on the machine counts less than on a clock.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Nanoseconds per object in one round.
fn time(case: &Case<'_>) -> f64 {
    let (start, mut calls) = (cpu_ns(), 0_u64);
    loop {
        for index in 0..case.calls {
            (case.work)(index);
        }
        calls += case.calls as u64;
        let spent = cpu_ns() - start;
        if spent >= ROUND_NS {
            #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
            return spent as f64 / (calls * case.per_call as u64) as f64;
        }
    }
}

fn figure(case: &Case<'_>, times: &mut [f64]) -> Figure {
    let ((), seen) = counted(|| {
        for index in 0..case.calls {
            (case.work)(index);
        }
    });
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let per_object = |sum: u64| sum as f64 / (case.calls * case.per_call) as f64;
    Figure {
        set: case.set.to_owned(),
        what: case.what.to_owned(),
        by: case.by.to_owned(),
        input: per_object(case.input as u64),
        ns: median(times),
        allocations: per_object(seen.calls),
        allocated: per_object(seen.bytes),
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
