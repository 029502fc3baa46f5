//! The vectors I1 to I7.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use kubestrata_api_types::Object as _;
use kubestrata_store_index::Index;
use kubestrata_testkit::{FakeWorld, Model, Thing, things};
use parking_lot::Mutex;
use tokio::task::block_in_place;

use super::{Log, PATIENCE, informer, server, settle, stored, with};
use crate::{Config, Filtered, Handler, HandlerConfig, Informer};

/// Blocks in each call until it is let go, and writes down what it is told.
struct Blocked {
    log: Log,
    entered: SyncSender<()>,
    let_go: Mutex<Receiver<()>>,
}

impl Blocked {
    fn new() -> (Self, Log, Receiver<()>, SyncSender<()>) {
        let (log, (entered, enters), (goes, let_go)) =
            (Log::default(), sync_channel(1000), sync_channel(1000));
        let blocked = Self { log: log.clone(), entered, let_go: Mutex::new(let_go) };
        (blocked, log, enters, goes)
    }

    fn block(&self) {
        self.entered.send(()).unwrap();
        // A worker that blocks without a word keeps a task that is to run next on it: the test could hang by chance.
        block_in_place(|| self.let_go.lock().recv()).unwrap();
    }
}

impl Handler<Thing> for Blocked {
    fn on_add(&self, object: &Thing, initial: bool) {
        self.block();
        self.log.on_add(object, initial);
    }
    fn on_update(&self, old: &Thing, new: &Thing) {
        self.block();
        self.log.on_update(old, new);
    }
    fn on_delete(&self, last: &Thing, known: bool) {
        self.block();
        self.log.on_delete(last, known);
    }
}

/// Handler added late with 3 stored: three initial adds, synced only after the third returned; a concurrent update comes
/// after them, none lost, none doubled.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn i1_a_late_handler_is_told_of_what_is_stored_and_then_of_changes() {
    let server = Model::new(Arc::new(FakeWorld::new(1)));
    for name in ["a", "b", "c"] {
        server.put(Thing::new(name, 0));
    }
    let informer = Informer::new(Arc::new(server.clone()), things(), Config::default());
    informer.start();
    informer.wait_synced(PATIENCE).await.unwrap();
    let (blocked, log, enters, goes) = Blocked::new();
    let late = informer.add_handler(blocked, HandlerConfig::default()).unwrap();
    enters.recv().unwrap();
    // The update reaches the store while the first call blocks.
    let updated = server.put(Thing::new("a", 0));
    informer.reader().wait_at_least(updated, PATIENCE).await.unwrap();
    for _ in 0..2 {
        goes.send(()).unwrap();
        enters.recv().unwrap();
    }
    assert!(!late.has_synced(), "the third call has not returned");
    goes.send(()).unwrap();
    late.wait_synced().await.unwrap();
    goes.send(()).unwrap();
    while late.status().backlog > 0 || log.0.lock().len() < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let told = log.0.lock().clone();
    let (mut adds, updates) = (told[..3].to_vec(), &told[3..]);
    adds.sort_unstable();
    assert_eq!(
        (adds.join(" ").as_str(), updates),
        ("+a@2#a-2! +b@3#b-3! +c@4#c-4!", &["a@2#a-2~a@5#a-2".to_owned()][..])
    );
}

/// Slow handler A, fast B: B unaffected; A in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn i2_a_slow_handler_does_not_hold_up_a_fast_one() {
    let server = server("watch: +a@1 end@1 ~a@2 ~a@3 ~a@4 bookmark@9");
    let informer = informer(&server);
    let (slow, slow_log, _enters, goes) = Blocked::new();
    let fast_log = Log::default();
    let slow = informer.add_handler(slow, HandlerConfig::default()).unwrap();
    let fast = informer.add_handler(fast_log.clone(), HandlerConfig::default()).unwrap();
    informer.start();
    informer.reader().wait_at_least(9.into(), PATIENCE).await.unwrap();
    fast.wait_synced().await.unwrap();
    while fast.status().backlog > 0 || fast_log.0.lock().len() < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(fast_log.take(), "+a@1! a@1~a@2 a@2~a@3 a@3~a@4");
    assert!(!slow.has_synced());
    for _ in 0..4 {
        goes.send(()).unwrap();
    }
    slow.wait_synced().await.unwrap();
    slow.drain();
    slow.ended().await;
    assert_eq!(slow_log.take(), "+a@1! a@1~a@2 a@2~a@3 a@3~a@4");
}

/// Removal while A blocked: returns at once; A finishes its running call; its backlog is dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn i3_removal_does_not_wait_for_the_handler() {
    let server = server("watch: +a@1 end@1 ~a@2 ~a@3 bookmark@9");
    let informer = informer(&server);
    let (blocked, log, enters, goes) = Blocked::new();
    let handler = informer.add_handler(blocked, HandlerConfig::default()).unwrap();
    informer.start();
    enters.recv().unwrap();
    informer.reader().wait_at_least(9.into(), PATIENCE).await.unwrap();
    handler.remove();
    assert!(informer.status().handlers.is_empty());
    let ended = tokio::time::timeout(Duration::from_millis(50), handler.ended()).await;
    assert!(ended.is_err(), "the call still runs");
    goes.send(()).unwrap();
    handler.ended().await;
    assert_eq!(log.take(), "+a@1!");
    assert!(handler.wait_synced().await.is_err());
    handler.remove();
}

/// Relist with nothing changed, no resync: an update of one version for all; with a resync period only when it is due.
#[tokio::test(start_paused = true)]
async fn i4_a_relist_tells_of_unchanged_objects_those_who_do_not_resync() {
    let server = server("watch: +a@1 +b@2 end@2 wait=10s gone | watch: +a@1 +b@2 end@5 bookmark@6");
    let informer = informer(&server);
    let (plain, periodic) = (Log::default(), Log::default());
    informer.add_handler(plain.clone(), HandlerConfig::default()).unwrap();
    let period = Some(Duration::from_secs(60));
    let config = HandlerConfig { resync: period, ..HandlerConfig::default() };
    informer.add_handler(periodic.clone(), config).unwrap();
    informer.start();
    settle().await;
    assert_eq!((plain.take().as_str(), periodic.take().as_str()), ("+a@1! +b@2!", "+a@1! +b@2!"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(informer.reader().version().version, 6.into());
    assert_eq!((plain.take().as_str(), periodic.take().as_str()), ("a@1~a@1 b@2~b@2", ""));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((plain.take(), periodic.take_sorted().as_str()), (String::new(), "a@1~a@1 b@2~b@2"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(periodic.take_sorted(), "a@1~a@1 b@2~b@2");
}

/// Delete and re-create during a gap: by the uid a delete and an add; as one update on demand, as client-go tells it.
/// Also bug row 29a (k/k PR 133565).
#[tokio::test(start_paused = true)]
async fn i5_an_object_made_again_in_a_gap_is_deleted_and_added() {
    let script = "watch: +a@1#one end@1 wait=10s gone | watch: +a@5#two end@5";
    for (recreate_as_update, told) in [(false, "-a@1#one? +a@5#two"), (true, "a@1#one~a@5#two")] {
        let server = server(script);
        let informer = with(&server, Config { recreate_as_update, ..Config::default() });
        let log = Log::default();
        informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
        informer.start();
        settle().await;
        assert_eq!(log.take(), "+a@1#one!");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!((log.take().as_str(), stored(&informer).as_str()), (told, "a@5#two"));
    }
}

/// Filter handler: label leaves selector → delete of the old state.
#[tokio::test(start_paused = true)]
async fn i6_a_filter_turns_updates_into_adds_and_deletes() {
    let server = server(
        "watch: +a@1{app=web} +b@2 end@2 ~a@3{app=web,n=1} ~a@4 ~b@5{app=web} ~a@6 -b@7{app=web} -a@8",
    );
    let informer = informer(&server);
    let log = Log::default();
    let filtered = Filtered::new(|thing: &Thing| thing.label("app").is_some(), log.clone());
    informer.add_handler(filtered, HandlerConfig::default()).unwrap();
    informer.start();
    settle().await;
    expect_test::expect![[r#"
        +a@1{app=web}!
        a@1{app=web}~a@3{app=web,n=1}
        -a@3{app=web,n=1}
        +b@5{app=web}
        -b@7{app=web}"#]]
    .assert_eq(&log.take().replace(' ', "\n"));
}

/// I7: index moves, through the whole pipeline.
#[tokio::test(start_paused = true)]
async fn i7_index_moves_are_exact_at_each_step() {
    let server = server(
        "watch: +a@1{.spec.v=x} end@1 wait=10s ~a@2{.spec.v=x;y} wait=10s ~a@3{.spec.v=y} wait=10s ~a@4{.spec.v=}",
    );
    let informer = informer(&server);
    let by_v = Index::by("v", |thing: &Thing, out| {
        let values = thing.fields.get("spec.v").map_or("", String::as_str);
        values.split(';').filter(|value| !value.is_empty()).for_each(out);
    });
    informer.add_index(by_v).unwrap();
    informer.start();
    let reader = informer.reader();
    for (x, y) in [(1, 0), (1, 1), (0, 1), (0, 0)] {
        settle().await;
        let count = |value| reader.by_index("v", value).unwrap().len();
        assert_eq!((count("x"), count("y")), (x, y));
        assert_eq!(reader.index_values("v").unwrap().len(), x + y, "no empty sets");
        tokio::time::sleep(Duration::from_secs(9)).await;
    }
}
