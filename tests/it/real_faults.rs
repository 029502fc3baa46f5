//! Informers through the worst hours of a real kube-apiserver and a real etcd.
//!
//! Each trial has a pair of servers of its own, and one such trial runs at a time. Every one ends with the same check: store
//! and handler have exactly what the server has, and what the handler was told on the way can be true.

mod farewell;
mod pair;
mod witness;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use kubestrata_api_types::{Accept, Collection, Format, ListOptions, Object as _, ObjectKey};
use kubestrata_codec::{Client as _, Encoded};
use kubestrata_testkit::{Fault, FaultProxy, Newcomers};
use kubestrata_transport::Transport;
use libtest_mimic::Trial;
use tokio::time::{Instant, sleep, timeout};
use tower::util::BoxCloneSyncService;

use self::pair::Pair;
use self::witness::Witness;
use self::writer::{Plain, Writer};
use crate::bed::{Run, single_within};
use crate::target::Target;
use k8s_openapi::api::core::v1::{ConfigMap, Event};

/// Names the folder with the programs kube-apiserver and etcd.
const BIN: &str = "KUBESTRATA_REAL_BIN";
/// Seconds for which etcd stands still; more only takes longer.
const STILL: &str = "KUBESTRATA_REAL_STILL_SECONDS";
/// The whole of a trial, starting the servers twice included. A machine that does much else takes its time.
const TRIAL: Duration = Duration::from_secs(1000);
/// From the end of the harm to equality. The reflector's own delays grow to a minute.
const RECOVERY: Duration = Duration::from_secs(240);
const NAMESPACE: &str = "default";

pub(crate) fn trials() -> Vec<Trial> {
    /// One pair beside the suite's own is what a small machine can bear.
    static ONE: Mutex<()> = Mutex::new(());
    if !Target::available().contains(&Target::Real) || std::env::var_os(BIN).is_none() {
        return Vec::new();
    }
    let one = || ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let trial = |name: &str, run: fn() -> Run| {
        single_within(&format!("real_faults::{name}"), TRIAL, one, run)
    };
    vec![
        trial("a_cut_watch_meets_an_empty_watch_cache", || Box::pin(empty_cache())),
        trial("a_cut_watch_of_events_meets_a_compacted_etcd", || Box::pin(compacted())),
        trial("kube_apiserver_is_killed_in_mid_watch", || Box::pin(killed())),
        trial("etcd_stands_still", || Box::pin(still())),
        trial("connections_say_farewell", || Box::pin(farewell::goaway())),
    ]
}

/// The folder of the programs.
fn bin() -> PathBuf {
    PathBuf::from(std::env::var_os(BIN).expect("trials are only made with it"))
}

/// Two informers of one collection behind a proxy, one for each format, and a writer that goes around it.
struct Scene {
    trial: &'static str,
    pair: Pair,
    proxy: FaultProxy,
    witnesses: Vec<Witness>,
}

impl Scene {
    async fn start<K: Plain>(trial: &'static str) -> (Self, Writer<K>) {
        let pair = Pair::start_with(&bin(), &[]).await;
        let proxy = FaultProxy::start(pair.address()).await.unwrap();
        let mut writer = Writer::new(pair.direct());
        for _ in 0..200 {
            writer.create().await;
        }
        let mut witnesses = Vec::new();
        for (name, format) in [("protobuf", Format::Protobuf), ("json", Format::Json)] {
            let transport = Transport::connect(pair.config_through(proxy.port())).unwrap();
            let stack = BoxCloneSyncService::new(transport);
            witnesses.push(Witness::start(name, stack, collection::<K>(format)).await);
        }
        (Self { trial, pair, proxy, witnesses }, writer)
    }

    /// Ends the connections of the informers, and every new one, until the proxy is healed.
    fn cut(&self) {
        self.proxy.newcomers(Newcomers::Ended);
        self.proxy.strike(Fault::End);
    }

    /// Waits until everyone has what the server has, and checks how they got there. Returns how long each one took.
    async fn equal<K: Plain>(&self) -> Vec<Duration> {
        let start = Instant::now();
        let each = self.witnesses.iter().zip([Format::Protobuf, Format::Json]);
        join_all(each.map(|(witness, format)| async move {
            let wait = async {
                while !witness.equals(&live::<K>(&self.pair, format).await) {
                    sleep(Duration::from_millis(200)).await;
                }
            };
            timeout(RECOVERY, wait).await.expect("store and handler equal the server again");
            witness.check_story();
            start.elapsed()
        }))
        .await
    }

    /// The same, and prints what it took.
    async fn recover<K: Plain>(&self) {
        for (witness, took) in self.witnesses.iter().zip(self.equal::<K>().await) {
            witness.report(self.trial, took);
        }
    }

    /// Whether they follow again: a change is seen by everyone.
    async fn goes_on<K: Plain>(self, mut writer: Writer<K>) {
        writer.create().await;
        writer.delete().await;
        self.equal::<K>().await;
        for witness in self.witnesses {
            witness.stop().await;
        }
        self.pair.stop().await;
    }
}

fn collection<K: Plain>(format: Format) -> Collection {
    Collection::new(K::resource().clone()).in_namespace(NAMESPACE).accept(Accept::Only(format))
}

/// What the server has. Nothing, while it does not answer.
async fn live<K: Plain>(pair: &Pair, format: Format) -> BTreeMap<ObjectKey, Encoded> {
    let list = pair.direct();
    let list = list.list_encoded(collection::<K>(format), ListOptions::default());
    match timeout(Duration::from_secs(10), list).await {
        Ok(Ok(list)) => list.items.into_iter().map(|item| (item.key(), item)).collect(),
        _ => BTreeMap::new(),
    }
}

/// Changes of each sort, which all succeed. Returns how many objects that were there before are gone.
async fn change<K: Plain>(writer: &mut Writer<K>) -> usize {
    for _ in 0..30 {
        writer.update().await;
        writer.create().await;
        writer.delete().await;
    }
    for _ in 0..20 {
        // Under the same name, with another uid.
        writer.recreate().await;
    }
    writer.gone()
}

/// Writes while the watch is cut, then a new kube-apiserver: its watch cache knows nothing of the past.
async fn empty_cache() {
    let (mut scene, mut writer) = Scene::start::<ConfigMap>("empty watch cache").await;
    scene.cut();
    let gone = change(&mut writer).await;
    scene.pair.kill_apiserver().await;
    scene.pair.start_apiserver().await;
    scene.proxy.heal();
    scene.recover::<ConfigMap>().await;
    expect_gap(&scene, gone);
    scene.goes_on(writer).await;
}

/// `events` have no watch cache; what forgets is etcd.
async fn compacted() {
    let (mut scene, mut writer) = Scene::start::<Event>("events, compacted etcd").await;
    scene.cut();
    let gone = change(&mut writer).await;
    let revision = scene.pair.compact().await;
    assert!(scene.witnesses.iter().all(|witness| witness.version() < revision));
    scene.proxy.heal();
    scene.recover::<Event>().await;
    expect_gap(&scene, gone);
    scene.goes_on(writer).await;
}

/// Everyone was told that the version is gone, got the whole state once more, and told of all that had gone meanwhile.
fn expect_gap(scene: &Scene, gone: usize) {
    assert!(gone > 0);
    for witness in &scene.witnesses {
        assert!(witness.expired() > 0, "the server says that the version is gone");
        assert!(witness.relists() > 0, "the state is fetched again");
        assert_eq!(witness.deletes(), (gone, gone), "no deletion is lost in the gap");
    }
}

/// SIGKILL while changes come in, and a new start a little later.
async fn killed() {
    let (mut scene, mut writer) = Scene::start::<ConfigMap>("killed kube-apiserver").await;
    writer.writes_for(Duration::from_secs(2)).await;
    let harm = async {
        sleep(Duration::from_millis(300)).await;
        scene.pair.kill_apiserver().await;
        sleep(Duration::from_secs(1)).await;
        scene.pair.start_apiserver().await;
        sleep(Duration::from_secs(1)).await;
    };
    writer.writes_during(harm).await;
    assert!(writer.refused() > 0, "the server was away");
    scene.recover::<ConfigMap>().await;
    scene.goes_on(writer).await;
}

/// SIGSTOP of etcd for a while. Connections stay open; nothing comes.
async fn still() {
    let seconds = std::env::var(STILL).ok().map_or(20, |text| text.parse().unwrap());
    let still = Duration::from_secs(seconds);
    let (mut scene, mut writer) = Scene::start::<ConfigMap>("etcd stands still").await;
    writer.writes_for(Duration::from_secs(1)).await;
    let harm = async {
        scene.pair.stop_etcd().await;
        sleep(still).await;
        scene.pair.resume_etcd().await;
        sleep(Duration::from_secs(2)).await;
    };
    writer.writes_during(harm).await;
    assert!(writer.refused() > 0, "etcd did not answer");
    scene.recover::<ConfigMap>().await;
    scene.goes_on(writer).await;
}
