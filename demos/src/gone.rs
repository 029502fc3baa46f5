//! A watch that is told "gone" (410), and what an informer makes of it, as it happens.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubestrata_apiserver::Server;
use kubestrata_controller::api_types::{Collection, ListOptions};
use kubestrata_controller::informer::{self, Handler, HandlerConfig, Informer};
use kubestrata_controller::prelude::*;
use kubestrata_controller::reflector::{self, FailureHook};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::line::Line;
use crate::outcome::{self, Outcome};
use crate::progress::say;

/// How long one step may take: more than two delays of the reflector.
const LIMIT: Duration = Duration::from_secs(30);
const NAMESPACE: &str = "default";

/// Arguments of the demo. It runs on the embedded server, as no other can be told to forget its history.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How long the line stays cut, in milliseconds.
    #[arg(long, default_value_t = 700, value_parser = clap::value_parser!(u64).range(100..=20_000))]
    cut_ms: u64,
}

/// Runs it. Nothing is left behind: server and objects live in this process.
pub async fn run(options: &Options) -> Result<Outcome, BoxError> {
    outcome::until_stopped(show(options)).await
}

/// Prints lines with the seconds since the start, and remembers what the handler was told.
#[derive(Debug)]
struct Told {
    start: Instant,
    lines: Mutex<Vec<String>>,
    /// How often the server said 410. Relaxed: a count, read when all is done.
    gone: AtomicU64,
}

impl Told {
    fn line(&self, text: &str) {
        say(&format!("{:7.3} s  {text}", self.start.elapsed().as_secs_f64()));
    }

    fn told(&self, what: String, how: &str) {
        self.line(&format!("    handler: {what:<12} {how}"));
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self) -> usize {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Handler<Encoded> for Told {
    fn on_add(&self, object: &Encoded, initial: bool) {
        let how = if initial { "add, initial" } else { "add" };
        self.told(format!("+{}", object.name()), &format!("{how} {}", identity(object)));
    }

    fn on_update(&self, old: &Encoded, new: &Encoded) {
        let how = format!("update {} → {}", old.resource_version(), new.resource_version());
        self.told(format!("~{}", new.name()), &how);
    }

    fn on_delete(&self, last: &Encoded, final_state_known: bool) {
        let seen = if final_state_known { "seen" } else { "nobody saw it go" };
        self.told(format!("-{}", last.name()), &format!("delete, {seen} {}", identity(last)));
    }
}

fn identity(object: &Encoded) -> String {
    let uid = object.uid().unwrap_or_default();
    format!("(uid {}…, version {})", uid.get(..8).unwrap_or(uid), object.resource_version())
}

async fn show(options: &Options) -> Result<(), BoxError> {
    let server = Server::start_default();
    let direct = Transport::over(server.clone(), Config::in_process())?;
    let line = Line::new(direct.clone());
    let told =
        Arc::new(Told { start: Instant::now(), lines: Mutex::default(), gone: AtomicU64::new(0) });
    for name in ["a", "b", "c", "d", "e"] {
        direct.create(&config_map(name)?).await?;
    }
    let informer = follow(&line, &told);
    // Without a period a relist would tell of unchanged objects too, as client-go does.
    let quiet = HandlerConfig { resync: Some(Duration::from_secs(3600)), ..Default::default() };
    let registration = informer.add_handler(Arc::clone(&told), quiet)?;
    informer.start();
    let phases = tell_phases(&informer, &told);
    let story = story(&server, &direct, &line, &informer, &told, options);
    let story = async {
        informer.wait_synced(LIMIT).await?;
        registration.wait_synced().await?;
        story.await
    };
    tokio::select! {
        // The phases are told for ever; the story has an end.
        biased;
        result = story => result?,
        () = phases => {}
    }
    informer.stop().await;
    Ok(())
}

fn follow(line: &Line<Transport>, told: &Arc<Told>) -> Informer<Encoded> {
    let hook = Arc::clone(told);
    let on_failure = FailureHook::new(move |failure| {
        if failure.status().is_some_and(|status| status.code == 410) {
            hook.gone.fetch_add(1, Ordering::Relaxed);
        }
        let why = failure.status().map_or_else(
            || failure.error.to_string(),
            |status| format!("HTTP {} {}: {}", status.code, status.reason, status.message),
        );
        hook.line(&format!(
            "  reflector: {} failed ({why}); it will {}",
            failure.during, failure.recovery
        ));
    });
    let reflector = reflector::Config { on_failure: Some(on_failure), ..Default::default() };
    let config = informer::Config { reflector, ..Default::default() };
    Informer::new(Arc::new(line.clone()), config_maps(), config)
}

fn config_maps() -> Collection {
    Collection::new(ConfigMap::resource().clone()).in_namespace(NAMESPACE)
}

/// Prints each phase of the reflector that lasts long enough to be seen.
async fn tell_phases(informer: &Informer<Encoded>, told: &Told) {
    let mut before = None;
    loop {
        let status = informer.status().reflector;
        if before != Some(status.phase) {
            before = Some(status.phase);
            let phase = format!("{:?}", status.phase).to_lowercase();
            told.line(&format!(
                "  reflector: {phase}, version {:?}",
                status.resource_version.to_string()
            ));
        }
        sleep(Duration::from_millis(2)).await;
    }
}

/// What happens, and what must follow from it.
async fn story(
    server: &Server,
    direct: &Transport,
    line: &Line<Transport>,
    informer: &Informer<Encoded>,
    told: &Told,
    options: &Options,
) -> Result<(), BoxError> {
    expect(told, &["+a", "+b", "+c", "+d", "+e"]).await?;
    told.line("a changes, and the informer follows");
    change(direct, "a").await?;
    expect(told, &["~a"]).await?;

    told.line("the line is cut");
    line.cut();
    told.line("meanwhile b changes, c goes, d goes and comes back as another, f is new");
    change(direct, "b").await?;
    for name in ["c", "d"] {
        direct.delete::<ConfigMap>(&key(name), DeleteOptions::default()).await?;
    }
    for name in ["d", "f"] {
        direct.create(&config_map(name)?).await?;
    }
    told.line("the server forgets its history");
    server.compact().await;
    sleep(Duration::from_millis(options.cut_ms)).await;
    if told.count() > 0 {
        return Err("the handler was told of something that could not be known".into());
    }
    told.line("the line is whole again");
    let (healed, states) = (Instant::now(), informer.status().reflector.states);
    line.heal();
    expect(told, &["+d", "+f", "-c", "-d", "~b"]).await?;
    let recovered = healed.elapsed();

    told.line("e changes, and the informer follows as before");
    change(direct, "e").await?;
    expect(told, &["~e"]).await?;
    compare(direct, informer).await?;
    let relists = informer.status().reflector.states - states;
    if relists == 0 || told.gone.load(Ordering::Relaxed) == 0 {
        return Err("the watch was not told that its version is gone".into());
    }
    told.line(&format!(
        "exact: store and server are equal, byte for byte; {relists} relist, {:.1} s after the line was whole",
        recovered.as_secs_f64()
    ));
    Ok(())
}

/// Waits until the handler was told as much, and takes it. The order is free but for one object: gone before it is back.
async fn expect(told: &Told, want: &[&str]) -> Result<(), BoxError> {
    let wait = async {
        while told.count() < want.len() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    // What is missing is told below.
    let _ = timeout(LIMIT, wait).await;
    let have = told.take();
    let place = |what: &str| have.iter().position(|line| line == what);
    let ordered = place("-d").is_none_or(|gone| place("+d").is_some_and(|back| gone < back));
    let mut sorted = have.clone();
    sorted.sort();
    if sorted == want && ordered {
        return Ok(());
    }
    Err(format!("the handler was told {have:?}, and should have been told {want:?}").into())
}

/// Compares the store with a live list: names, uids, versions, bytes.
async fn compare(direct: &Transport, informer: &Informer<Encoded>) -> Result<(), BoxError> {
    let live = direct.list_encoded(config_maps(), ListOptions::default()).await?.items;
    let live: BTreeMap<_, _> = live.into_iter().map(|object| (object.key(), object)).collect();
    let stored = informer.reader().list();
    let equal = stored.iter().all(|object| live.get(&object.key()) == Some(object));
    if stored.len() == live.len() && equal {
        return Ok(());
    }
    Err(format!("{} objects are stored and {} are there, or they differ", stored.len(), live.len())
        .into())
}

fn config_map(name: &str) -> Result<ConfigMap, serde_json::Error> {
    serde_json::from_value(json!({ "metadata": { "name": name, "namespace": NAMESPACE } }))
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}

async fn change(direct: &Transport, name: &str) -> Result<(), BoxError> {
    let patch = json!({ "data": { "changed": "yes" } });
    direct.patch::<ConfigMap>(&key(name), PatchKind::Merge, &patch).await?;
    Ok(())
}
