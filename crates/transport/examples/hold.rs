//! Holds watches open and sends requests beside them: `cargo run -p kubestrata-transport --example hold -- [KUBECONFIG]
//! [SECONDS] [WATCHES]`.
//!
//! For a look at a server that says farewell (kube-apiserver: `--goaway-chance 0.02`) or allows few streams
//! (`--http2-max-streams-per-connection 20`): nothing is tried again here, and all that fails is counted and told. Every
//! third watch is not read. Without a path it takes what kubectl would take.

#![expect(clippy::print_stdout, reason = "it is there to print")]

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use kubestrata_api_types::{
    ApiRequest, BoxError, Collection, ListWatch as _, Operation, PatchKind, ResourceType, Scope,
    WatchOptions, WriteOptions,
};
use kubestrata_transport::{Config, Retry, Transport};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

const CONFIG_MAPS: ResourceType =
    ResourceType::from_static("", "v1", "ConfigMap", "configmaps", Scope::Namespaced);
const WRITERS: usize = 8;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let mut config = match args.next() {
        Some(path) => Config::from_kubeconfig(path)?,
        None => Config::infer()?,
    };
    let seconds = args.next().map_or(Ok(10), |text| text.parse())?;
    let count = args.next().map_or(Ok(60), |text| text.parse())?;
    config.retry = Retry::never();
    let collection = Collection::new(CONFIG_MAPS).in_namespace(&config.namespace);
    let (transport, end) =
        (Transport::connect(config)?, Instant::now() + Duration::from_secs(seconds));
    let (mut watches, mut requests, mut unread) = (JoinSet::new(), JoinSet::new(), Vec::new());
    for n in 0..count {
        let mut watch = transport.watch(&collection, WatchOptions::default()).await?;
        if n % 3 == 0 {
            unread.push(watch);
            continue;
        }
        watches.spawn(async move {
            let mut events = 0_u64;
            loop {
                match timeout(end.saturating_duration_since(Instant::now()), watch.next()).await {
                    Err(_) => return (events, "open until the end".to_owned()),
                    Ok(None) => return (events, "ended by the server".to_owned()),
                    Ok(Some(Err(error))) => return (events, error.to_string()),
                    Ok(Some(Ok(_))) => events += 1,
                }
            }
        });
    }
    for n in 0..WRITERS {
        requests.spawn(write(transport.clone(), collection.clone(), n, end));
    }
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    let (mut done, mut slowest) = (0, Duration::ZERO);
    while let Some(end) = requests.join_next().await {
        let (requests, slow, failures) = end?;
        done += requests;
        slowest = slowest.max(slow);
        for failure in failures {
            *outcomes.entry(format!("request: {failure}")).or_default() += 1;
        }
    }
    println!("connections while all is open: {:?}", transport.connections());
    let mut events = 0;
    while let Some(end) = watches.join_next().await {
        let (seen, how) = end?;
        events += seen;
        *outcomes.entry(format!("watch: {how}")).or_default() += 1;
    }
    println!("{done} requests, the slowest took {slowest:?}; {events} events");
    for (what, times) in outcomes {
        println!("{times:>6} × {what}");
    }
    Ok(())
}

/// Applies a config map of its own again and again: how often, how long that took at most, and what failed.
async fn write(
    transport: Transport,
    collection: Collection,
    number: usize,
    end: Instant,
) -> (u64, Duration, Vec<String>) {
    let (mut done, mut slowest, mut failures) = (0_u64, Duration::ZERO, Vec::new());
    while Instant::now() < end {
        let name = format!("kubestrata-hold-{number}");
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"n":"{done}"}}}}"#
        );
        let operation = Operation::Patch {
            name: name.as_str().into(),
            kind: PatchKind::Apply,
            body: body.into(),
            options: WriteOptions { field_manager: Some("hold".into()), ..WriteOptions::default() },
        };
        let started = Instant::now();
        let request = ApiRequest::new(collection.clone(), operation);
        if let Err(error) = transport.clone().oneshot(request).await {
            failures.push(error.to_string());
        }
        done += 1;
        slowest = slowest.max(started.elapsed());
    }
    (done, slowest, failures)
}
