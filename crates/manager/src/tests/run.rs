//! Start, work and stop.

use std::time::Duration;

use expect_test::{Expect, expect};
use kubestrata_api_types::{Kind as _, ObjectKey, cause_ref};
use kubestrata_workqueue::AddOptions;
use tokio::time::{Instant, sleep};

use super::server::{Host, Log, Member, Server, Set, run_for};
use crate::{Action, Controller, ControllerBuilder, Manager, RunError, SetupError, Watch};

fn sets(name: &str) -> ControllerBuilder {
    Controller::builder(name).for_kind::<Set>()
}

/// Runs one controller, and compares what it reconciled.
async fn check(
    scripts: &[(&'static str, &str)],
    log: Log,
    controller: ControllerBuilder,
    seconds: f64,
    expected: Expect,
) {
    let server = Server::new(scripts);
    let mut manager = Manager::builder(server.service()).build();
    manager.add(controller.reconciler(log.clone())).unwrap();
    run_for(manager, seconds).await.unwrap();
    expected.assert_eq(&log.lines());
    for (plural, _) in scripts {
        assert_eq!(server.of(plural).open_streams(), 0, "the watch of {plural} is closed");
    }
}

#[tokio::test(start_paused = true)]
async fn every_object_is_reconciled_and_then_each_change() {
    check(
        &[("sets", "watch: +n/a@1 +n/b@2 end@2 wait=5s ~n/a@3 wait=5s -n/b@4 +n/c@5")],
        Log::new(),
        sets("c"),
        20.0,
        expect![[r#"
            0.0 n/a@1
            0.0 n/b@2
            5.0 n/a@3
            10.0 n/b@gone
            10.0 n/c@5"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn changes_of_what_is_owned_reconcile_the_owner() {
    check(
        &[
            ("sets", "watch: +n/a@1 end@1"),
            (
                "members",
                "watch: end@1 wait=5s +n/x@2{.owner=Set:a} +n/y@3{.owner=Other:b} \
                 +n/z@4{.owner=Set:b,.loose=1} wait=5s ~n/x@5{.owner=Set:c} wait=5s -n/x@6{.owner=Set:c}",
            ),
        ],
        Log::new(),
        sets("c").owns::<Member>(),
        30.0,
        // An update concerns the owner before and the owner after.
        expect![[r#"
            0.0 n/a@1
            5.0 n/a@1
            10.0 n/a@1
            10.0 n/c@gone
            15.0 n/c@gone"#]],
    )
    .await;
}

/// controller-runtime 3406: a worker that starts early sees a part of the world.
#[tokio::test(start_paused = true)]
async fn workers_start_when_everything_watched_is_synced() {
    check(
        &[("sets", "watch: +n/a@1 end@1 ~n/a@2"), ("members", "wait=30s watch: end@1")],
        Log::new(),
        sets("c").owns::<Member>(),
        60.0,
        expect!["30.0 n/a@2"],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_reconciled_twice_at_once_and_no_change_is_missed() {
    check(
        &[("sets", "watch: +n/a@1 end@1 wait=1s ~n/a@2 ~n/a@3 wait=1s ~n/a@4 wait=20s ~n/a@5")],
        Log::taking(Duration::from_secs(5)),
        sets("c").workers(4),
        60.0,
        expect![[r#"
            0.0 n/a@1
            5.0 n/a@4
            22.0 n/a@5"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_waits_for_goes_before_the_first_state() {
    check(
        &[("sets", "watch: +n/a@1 +n/b@1 +n/c@1 +n/d@1 end@1 wait=1s ~n/z@5")],
        Log::taking(Duration::from_secs(2)),
        sets("c"),
        30.0,
        expect![[r#"
            0.0 n/a@1
            2.0 n/z@5
            4.0 n/b@1
            6.0 n/c@1
            8.0 n/d@1"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_loses_nothing() {
    let script = "watch: +n/a@1 +n/b@1 +n/c@1 +n/d@1 end@1 wait=1s -n/a@2 -n/b@3 -n/c@4 -n/d@5";
    let server = Server::new(&[("sets", script)]);
    let mut manager = Manager::builder(server.service()).build();
    let log = Log::taking(Duration::from_millis(400));
    manager.add(sets("c").max_keys(1).reconciler(log.clone())).unwrap();
    run_for(manager, 30.0).await.unwrap();
    // In which order is not promised; that the last state of each is seen is.
    for key in ["n/a", "n/b", "n/c", "n/d"] {
        assert!(log.lines().contains(&format!("{key}@gone")), "{key} in\n{}", log.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn watches_map_and_predicates_filter() {
    let hosts = Watch::of::<Host>()
        .map(|host, push| push(ObjectKey::namespaced("n", host.name())))
        .predicate(crate::predicate::resource_version_changed());
    check(
        &[
            ("sets", "watch: +n/a@1 +m/b@1 end@1 wait=1s ~m/b@2"),
            ("hosts", "watch: +h@1 end@1 wait=5s ~h@1 wait=1s ~h@2"),
        ],
        Log::new(),
        sets("c")
            .watch(hosts)
            .with_predicate(crate::predicate::on_object(|object| object.namespace() != Some("m"))),
        20.0,
        expect![[r#"
            0.0 n/a@1
            0.0 n/h@gone
            6.0 n/h@gone"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_trigger_wakes_the_controller_for_other_reasons() {
    let server = Server::new(&[("sets", "wait=2s watch: end@1")]);
    let mut manager = Manager::builder(server.service()).build();
    let log = Log::new();
    let trigger = manager.add(sets("c").reconciler(log.clone())).unwrap();
    trigger.reconcile(ObjectKey::cluster("early")).await.unwrap();
    let later = AddOptions::new().after(Duration::from_secs(7));
    trigger.reconcile_with(ObjectKey::cluster("late"), later).await.unwrap();
    run_for(manager, 20.0).await.unwrap();
    expect![[r#"
        2.0 early@gone
        7.0 late@gone"#]]
    .assert_eq(&log.lines());
    assert!(trigger.reconcile(ObjectKey::cluster("after")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_does_not_fill_ends_the_manager_and_says_why() {
    let script = ["watch: 403 | list@1: cut"; 20].join(" | ").replace("watch: ", "");
    let server = Server::new(&[("sets", "watch: end@1"), ("members", &script)]);
    let mut manager = Manager::builder(server.service()).build();
    let log = Log::new();
    let limit = Duration::from_secs(10);
    let controller = sets("c").owns::<Member>().cache_sync_timeout(limit).reconciler(log.clone());
    manager.add(controller).unwrap();
    let start = Instant::now();
    let error = manager.run(std::future::pending()).await.unwrap_err();
    assert_eq!(start.elapsed(), limit);
    let RunError::CacheSync { controller, resource, .. } = &error else { panic!("{error:?}") };
    assert_eq!((&**controller, resource.as_str()), ("c", "members.test"));
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    assert!(
        text.starts_with("controller \"c\": the cache of members.test was not synced"),
        "{text}"
    );
    assert!(cause_ref::<kubestrata_informer::SyncError>(&error).is_some(), "{text}");
    assert_eq!(log.lines(), "");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_running_reconciles_end() {
    let script = "watch: +n/a@1 +n/b@1 end@1";
    let log = Log::new();
    let server = Server::new(&[("sets", script)]);
    let mut manager = Manager::builder(server.service()).build();
    let notes = log.clone();
    let controller = sets("c").reconcile(move |context, key| {
        let notes = notes.clone();
        async move {
            sleep(Duration::from_secs(10)).await;
            // The cache still answers.
            let known = context.cache().informers(Set::resource())[0].reader().get(&key).is_some();
            notes.note(&format!("{key} {known}"));
            Ok(Action::done())
        }
    });
    manager.add(controller).unwrap();
    run_for(manager, 5.0).await.unwrap();
    assert_eq!(log.lines(), "10.0 n/a true");
    assert_eq!(server.of("sets").open_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_can_drain() {
    check(
        &[("sets", "watch: +n/a@1 +n/b@1 +n/c@1 end@1")],
        Log::taking(Duration::from_secs(4)),
        sets("c").drain_on_shutdown(),
        1.0,
        expect![[r#"
            0.0 n/a@1
            4.0 n/b@1
            8.0 n/c@1"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_also_if_a_reconcile_does_not() {
    let server = Server::new(&[("sets", "watch: +n/a@1 end@1")]);
    let limit = Duration::from_secs(3);
    let mut manager = Manager::builder(server.service()).shutdown_timeout(limit).build();
    manager.add(sets("c").reconcile(async |_, _| std::future::pending().await)).unwrap();
    let start = Instant::now();
    let error = run_for(manager, 1.0).await.unwrap_err();
    assert!(matches!(error, RunError::Unfinished { waited } if waited == limit), "{error:?}");
    assert_eq!(start.elapsed().as_secs(), 4);
    assert_eq!(server.of("sets").open_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_during_the_sync_is_no_failure() {
    let server = Server::new(&[("sets", "hang")]);
    let mut manager = Manager::builder(server.service()).build();
    manager.add(sets("c").reconciler(Log::new())).unwrap();
    run_for(manager, 1.0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_manager_leaves_nothing_behind() {
    let server = Server::new(&[("sets", "watch: +n/a@1 end@1 wait=5s ~n/a@2")]);
    let mut manager = Manager::builder(server.service()).build();
    let log = Log::taking(Duration::from_secs(100));
    let trigger = manager.add(sets("c").reconciler(log.clone())).unwrap();
    let run = run_for(manager, 60.0);
    assert!(tokio::time::timeout(Duration::from_secs(1), run).await.is_err());
    sleep(Duration::from_secs(10)).await;
    assert_eq!(log.lines(), "0.0 n/a@1");
    assert_eq!(server.of("sets").open_streams(), 0);
    drop(trigger);
}

#[tokio::test(start_paused = true)]
async fn controllers_that_cannot_work_are_refused() {
    let server = Server::new(&[("sets", "")]);
    let mut manager = Manager::builder(server.service()).build();
    manager.add(sets("c").reconciler(Log::new())).unwrap();
    let taken = manager.add(sets("c").reconciler(Log::new())).unwrap_err();
    assert_eq!(taken, SetupError::NameTaken { name: "c".into() });
    let nothing = manager.add(Controller::builder("d").reconciler(Log::new())).unwrap_err();
    assert_eq!(nothing, SetupError::NothingWatched { name: "d".into() });
}

/// kube-rs L16: what is owned and goes while nobody watches is missed by the relist, and its owner is reconciled.
#[tokio::test(start_paused = true)]
async fn l16_what_went_during_a_gap_reconciles_its_owner() {
    let members = "watch: +n/x@1{.owner=Set:a} +n/y@1{.owner=Set:b} end@1 wait=5s gone \
                   | watch: +n/y@1{.owner=Set:b} end@9";
    let server = Server::new(&[("sets", "watch: +n/a@1 +n/b@1 end@1"), ("members", members)]);
    let mut manager = Manager::builder(server.service()).build();
    let log = Log::new();
    manager.add(sets("c").owns::<Member>().reconciler(log.clone())).unwrap();
    run_for(manager, 60.0).await.unwrap();
    // The delay before the relist is random.
    let lines = log.lines();
    let of = |key: &str| lines.lines().filter(|line| line.contains(key)).count();
    assert_eq!(of("n/a@1"), 2, "{lines}");
}

/// Bug row 34 (controller-runtime 3565): several caches fail at the same instant at which the manager is told to stop; it
/// returns, and nothing is left behind.
#[tokio::test(start_paused = true)]
async fn k34_caches_that_fail_together_end_with_the_manager() {
    let refused = ["403"; 40].join(" | ");
    let kinds = [("sets", refused.as_str()), ("members", &refused), ("hosts", "hang")];
    for shutdown in [9, 10, 11] {
        let server = Server::new(&kinds);
        let mut manager = Manager::builder(server.service()).build();
        let limit = Duration::from_secs(10);
        let log = Log::new();
        for name in ["c", "d"] {
            let controller = sets(name).owns::<Member>().watch(Watch::of::<Host>());
            manager.add(controller.cache_sync_timeout(limit).reconciler(log.clone())).unwrap();
        }
        let start = Instant::now();
        let run = manager.run(sleep(Duration::from_secs(shutdown)));
        let ended = tokio::time::timeout(Duration::from_secs(60), run).await.expect("it returns");
        assert_eq!(start.elapsed(), limit.min(Duration::from_secs(shutdown)));
        assert!(shutdown == 10 || ended.is_ok() == (shutdown < 10), "{ended:?}");
        assert_eq!(log.lines(), "");
        // Each kind is looked at when the manager ends, and again long after: what is left behind of one shows in it alone.
        let seen = || {
            kinds.map(|(plural, _)| {
                assert_eq!(server.of(plural).open_streams(), 0, "{plural}");
                (plural, server.of(plural).requests().len())
            })
        };
        let at_the_end = seen();
        sleep(Duration::from_secs(600)).await;
        assert_eq!(seen(), at_the_end, "a kind is still asked for");
    }
}
