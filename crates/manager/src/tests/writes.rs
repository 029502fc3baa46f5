//! Reads and writes of reconcilers, and caches that lag behind them.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use kubestrata_api_types::{DeleteOptions, Kind as _, ObjectKey, ObjectMeta, Status};
use kubestrata_codec::Client as _;
use kubestrata_telemetry::Memory;
use kubestrata_testkit::{Reply, Step};
use tokio::time::sleep;

use super::server::{Log, Member, Server, Set, run_for};
use crate::{Action, CacheError, CacheOptions, Controller, Manager};

fn member(name: &str) -> Member {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("n".to_owned()),
        ..ObjectMeta::default()
    };
    Member { metadata }
}

/// Reconciles a set whose wish is one member, every second, by what the cache has; compares what it does.
async fn check(members: &str, stale_limit: Duration, seconds: f64, expected: Expect) {
    let server = Server::new(&[("sets", "watch: +n/a@1 end@1"), ("members", members)]);
    // Scripts have no word for the usual answer to a delete.
    let deleted = Status { status: "Success".to_owned(), code: 200, ..Status::default() };
    server.of("members").extend([Step::from(Reply::Status(deleted))]);
    let metrics = Memory::new();
    let mut manager = Manager::builder(server.service()).metrics(Arc::new(metrics.clone())).build();
    let log = Log::new();
    let notes = log.clone();
    let controller = Controller::builder("c")
        .for_kind::<Set>()
        .owns::<Member>()
        .stale_limit(stale_limit)
        .reconcile(move |context, key| {
            let notes = notes.clone();
            async move {
                let set = context.client().get::<Set>(&key).await?;
                let owned = context.owned::<Member>(&set)?.items.len();
                notes.note(&format!("{key} has {owned}"));
                if owned == 0 {
                    context.client().create(&member("x")).await?;
                } else if owned > 1 {
                    let extra = ObjectKey::namespaced("n", "y");
                    context.client().delete::<Member>(&extra, DeleteOptions::default()).await?;
                }
                Ok(Action::requeue_after(Duration::from_secs(1)))
            }
        });
    manager.add(controller).unwrap();
    run_for(manager, seconds).await.unwrap();
    expected.assert_eq(&log.lines());
    let stale = metrics.value(r#"kubestrata_reconcile_stale_total{controller="c"}"#).unwrap();
    assert_eq!(stale > 0.0, !stale_limit.is_zero(), "{stale}");
}

/// The classic defect: the reconcile after a create does not see it yet, and creates once more.
#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_caches_have_what_its_reconcile_created() {
    let script =
        "watch: end@1 wait=3500ms +n/x@7{.owner=Set:a} | object: n/x@7{.owner=Set:a} | 409";
    check(
        script,
        Duration::from_secs(10),
        4.2,
        expect![[r#"
            0.0 n/a has 0
            3.5 n/a has 1"#]],
    )
    .await;
    let refusals = " | 409".repeat(4);
    check(
        &(script.to_owned() + &refusals),
        Duration::ZERO,
        1.03,
        expect![[r#"
            0.0 n/a has 0
            1.0 n/a has 0
            1.0 n/a has 0
            1.0 n/a has 0"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_until_the_caches_have_what_its_reconcile_deleted() {
    check(
        "watch: +n/x@1{.owner=Set:a} +n/y@1{.owner=Set:a} end@1 wait=2500ms -n/y@7{.owner=Set:a}",
        Duration::from_secs(10),
        3.2,
        expect![[r#"
            0.0 n/a has 2
            2.5 n/a has 1"#]],
    )
    .await;
}

/// A write that the cache does not select never arrives there.
#[tokio::test(start_paused = true)]
async fn the_wait_is_bounded() {
    check(
        "watch: end@1 | object: n/x@7 | object: n/z@8",
        Duration::from_secs(5),
        8.0,
        expect![[r#"
            0.0 n/a has 0
            6.0 n/a has 0"#]],
    )
    .await;
}

/// A bookmark tells that the cache is new enough, where the object itself never comes.
#[tokio::test(start_paused = true)]
async fn a_bookmark_ends_the_wait() {
    check(
        "watch: end@1 wait=2s bookmark@7 | object: n/x@7 | object: n/z@8",
        Duration::from_secs(60),
        2.5,
        expect![[r#"
            0.0 n/a has 0
            2.0 n/a has 0"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn listers_and_clients_read_what_is_cached() {
    let server = Server::new(&[
        ("sets", "watch: +n/a@1 end@1"),
        ("members", "watch: +n/x@1 end@1"),
        ("hosts", "object: h@5"),
    ]);
    let options = CacheOptions::<super::server::Host>::new().decoded();
    let mut manager = Manager::builder(server.service()).cache(options).build();
    let log = Log::new();
    manager.add(Controller::builder("c").for_kind::<Set>().reconciler(log)).unwrap();
    let context = manager.context();
    let before = context.lister::<Set>();
    assert!(matches!(before, Err(CacheError::NotStarted)), "{before:?}");
    let reads = async {
        sleep(Duration::from_secs(1)).await;
        let key = ObjectKey::namespaced("n", "a");
        assert!(context.lister::<Set>().unwrap().get(&key).unwrap().is_some());
        let read = context.client().get::<Set>(&key).await.unwrap();
        assert_eq!(read.metadata.name.as_deref(), Some("a"));
        let missing = ObjectKey::namespaced("n", "b");
        assert!(context.client().get::<Set>(&missing).await.unwrap_err().is_not_found());
        // The first read of a kind begins to cache it; a lister cannot wait for that.
        let early = context.lister::<Member>();
        assert!(matches!(early, Err(CacheError::NotSynced { .. })), "{early:?}");
        let members = context.client().list::<Member>(None, Default::default()).await.unwrap();
        assert_eq!(members.items.len(), 1);
        assert_eq!(context.lister::<Member>().unwrap().list().unwrap().items.len(), 1);
        // What is kept decoded, the client reads live.
        let host = ObjectKey::cluster("h");
        assert!(context.client().get::<super::server::Host>(&host).await.is_ok());
        assert_eq!(server.of("hosts").requests().last().unwrap(), "get h");
        assert_eq!(server.of("sets").requests().len(), 1);
    };
    let (ran, ()) = tokio::join!(run_for(manager, 5.0), reads);
    ran.unwrap();
    assert_eq!(Set::resource().kind, "Set");
}
