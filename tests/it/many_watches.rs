//! Many watches of one client, some of which nobody reads, and a server that takes 100 requests on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_api_types::{
    Collection, DeleteOptions, Event, Kind as _, ListOptions, ListWatch, Object as _,
    ResourceVersion, WatchOptions, WatchStream,
};
use kubestrata_codec::{Client as _, Encoded};
use kubestrata_transport::{Limits, Transport};
use libtest_mimic::Trial;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::bed::{SOON, eventually, single};
use crate::target::{Live, Target};

/// What kube-apiserver allows on a connection (`--http2-max-streams-per-connection`), and the embedded server too.
const STREAMS: usize = 100;
const WATCHES: usize = 150;
const UNREAD: usize = 3;
/// What each unread watch has before it: objects of so many bytes, three times what may be sent ahead.
const LOUD: (usize, usize) = (63, 100_000);
const WRITES: usize = 10;
/// A write must be answered within this, whatever the watches do. One that waited for a watch would wait for minutes.
const WRITE: Duration = Duration::from_secs(1);
/// A machine that does much else may need other tries; a write that waits for watches fails in each.
const TRIES: usize = 6;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![single("many_watches::embedded", || Box::pin(many_watches(Target::Tls)))];
    if Target::available().contains(&Target::Real) {
        trials.push(single("many_watches::real", || Box::pin(many_watches(Target::Real))));
    }
    trials
}

async fn many_watches(target: Target) {
    let live = Live::start(target).await;
    let prefix = format!("watches-{}", std::process::id());
    let (loud, quiet) = (format!("{prefix}-loud"), format!("{prefix}-quiet"));
    for namespace in [&loud, &quiet] {
        live.create_namespace(namespace).await;
    }
    let text = "x".repeat(LOUD.1);
    for n in 0..LOUD.0 {
        live.stack.create(&config_map(&loud, &format!("loud-{n}"), &text)).await.unwrap();
    }
    let ahead = Limits::default().stream_window as usize;
    assert!(LOUD.0 * LOUD.1 >= 3 * ahead, "more is unread than may be sent ahead");
    // By our own limit, which is lower than the server's, and by the server's.
    for streams in [Limits::default().streams, 10 * STREAMS] {
        let mut config = live.config();
        config.limits.streams = streams;
        let crowd = Crowd::gather(Transport::connect(config).unwrap(), &loud, &quiet).await;
        let connections = crowd.transport.connections();
        assert_eq!((connections.watches, connections.requests), (2, 1), "{streams}");
        let (slowest, last) = crowd.writes(&quiet).await;
        println!(
            "many_watches, {}, at most {streams} streams of ours: {WATCHES} watches on {} connections, slowest of {WRITES} \
             writes {slowest:?}, all events {last:?} after the first write",
            target.name(),
            connections.watches,
        );
        crowd.check_unread().await;
    }
    for namespace in [&loud, &quiet] {
        let delete = live.stack.delete_collection(
            maps(namespace),
            ListOptions::default(),
            DeleteOptions::default(),
        );
        // Best effort: the servers of this suite are removed as a whole.
        let _ = delete.await;
        live.delete_namespace(namespace).await;
    }
}

/// All watches of one transport.
struct Crowd {
    transport: Transport,
    unread: Vec<WatchStream<Encoded>>,
    /// Events that came on the watches that are read.
    events: Arc<AtomicUsize>,
    _readers: JoinSet<()>,
}

impl Crowd {
    async fn gather(transport: Transport, loud: &str, quiet: &str) -> Self {
        // First, so that they are on one connection with as many others as possible.
        let mut unread = Vec::new();
        for _ in 0..UNREAD {
            unread.push(open(&transport, loud, ResourceVersion::default()).await);
        }
        let list = transport.list_encoded(maps(quiet), ListOptions::default()).await.unwrap();
        let events = Arc::<AtomicUsize>::default();
        let mut readers = JoinSet::new();
        for _ in UNREAD..WATCHES {
            let mut watch = open(&transport, quiet, list.meta.resource_version.clone()).await;
            let events = Arc::clone(&events);
            readers.spawn(async move {
                while let Some(event) = watch.next().await {
                    let Event::Added(_) = event.expect("the watch goes on") else { continue };
                    // Relaxed: only the number counts.
                    events.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // For the unread ones to fill what may be sent ahead.
        sleep(Duration::from_millis(300)).await;
        Self { transport, unread, events, _readers: readers }
    }

    /// Writes some objects of which all but the unread watches must hear. The time of the slowest write, and the time from
    /// the first write to the last event.
    async fn writes(&self, quiet: &str) -> (Duration, Duration) {
        let mut slowest = Duration::MAX;
        for _ in 0..TRIES {
            slowest = Duration::ZERO;
            self.events.store(0, Ordering::Relaxed);
            let start = Instant::now();
            for _ in 0..WRITES {
                let start = Instant::now();
                self.transport.create(&config_map(quiet, "", "small")).await.unwrap();
                slowest = slowest.max(start.elapsed());
            }
            let all = WRITES * (WATCHES - UNREAD);
            let heard = async || self.events.load(Ordering::Relaxed) == all;
            eventually("every watch that is read has every event", heard).await;
            if slowest < WRITE {
                return (slowest, start.elapsed());
            }
        }
        panic!("a write took {slowest:?}");
    }

    /// What nobody read is still there, as a whole.
    async fn check_unread(mut self) {
        for watch in &mut self.unread {
            for _ in 0..LOUD.0 {
                let event = timeout(SOON, watch.next()).await.expect("an event in time");
                let event = event.expect("the watch goes on").expect("the watch is whole");
                let Event::Added(object) = event else { panic!("{event:?}") };
                assert!(object.name().starts_with("loud-"));
            }
        }
    }
}

fn maps(namespace: &str) -> Collection {
    Collection::new(ConfigMap::resource().clone()).in_namespace(namespace)
}

async fn open(
    transport: &Transport,
    namespace: &str,
    version: ResourceVersion,
) -> WatchStream<Encoded> {
    let options = WatchOptions { resource_version: version, ..WatchOptions::default() };
    let watch = ListWatch::watch(transport, &maps(namespace), options);
    timeout(SOON, watch).await.expect("a watch in time").expect("a watch")
}

/// A config map; without a name the server makes one.
fn config_map(namespace: &str, name: &str, text: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: (!name.is_empty()).then(|| name.to_owned()),
        generate_name: name.is_empty().then(|| "quiet-".to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectMeta::default()
    };
    let data = Some([("text".to_owned(), text.to_owned())].into());
    ConfigMap { metadata, data, ..ConfigMap::default() }
}
