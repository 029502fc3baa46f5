//! Known bugs of others, by their number in the list of bugs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kubestrata_api_types::Object as _;
use kubestrata_testkit::{Scripted, Thing};

use super::{Log, server, settle, stored, with};
use crate::{Config, HandlerConfig, Informer, Problem, ProblemHook, Transform};

fn problems() -> (Log, Option<ProblemHook>) {
    let log = Log::default();
    let seen = log.clone();
    let hook = ProblemHook::new(move |problem: &Problem| {
        let source = std::error::Error::source(problem).map(ToString::to_string);
        seen.0.lock().push(source.unwrap_or_default());
    });
    (log, Some(hook))
}

/// Skips things labelled `skip`, panics at `bad`, and marks all others.
fn marking(calls: &Arc<AtomicUsize>) -> Option<Transform<Thing>> {
    let calls = Arc::clone(calls);
    Some(Transform::new(move |thing: Thing| {
        calls.fetch_add(1, Ordering::SeqCst);
        assert_ne!(thing.name, "bad");
        let skip = thing.label("skip").is_some();
        (!skip).then(|| thing.labelled("marked", "yes"))
    }))
}

fn transforming(script: &str) -> (Scripted<Thing>, Informer<Thing>, Log, Log, Arc<AtomicUsize>) {
    let (server, calls, log) = (server(script), Arc::new(AtomicUsize::new(0)), Log::default());
    let (problems, on_problem) = problems();
    let config = Config { transform: marking(&calls), on_problem, ..Config::default() };
    let informer = with(&server, config);
    informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    informer.start();
    (server, informer, log, problems, calls)
}

/// Bug row 22a: a transform that skips one object costs that object alone, not the whole state.
#[tokio::test(start_paused = true)]
async fn k22a_a_skipped_object_costs_itself_alone() {
    let (_server, informer, log, problems, _) = transforming(
        "watch: +a@1 +b@2{skip=1} +c@3 end@3 ~a@4{skip=1} ~b@5 -c@6{skip=1} -d@7{skip=1}",
    );
    settle().await;
    assert_eq!(stored(&informer), "b@5{marked=yes}");
    // `a` leaves, `b` comes, `c` goes, and `d` was never there.
    assert_eq!(
        log.take(),
        "+a@1{marked=yes}! +c@3{marked=yes}! -a@4{skip=1} +b@5{marked=yes} -c@6{skip=1}"
    );
    assert_eq!(problems.take(), "");
    assert_eq!(informer.reader().version().version, 7.into());
}

/// T14 and bug row 22: a failing transform costs its object alone, in a state and in an event, and the version advances.
#[tokio::test(start_paused = true)]
async fn t14_a_failing_transform_costs_its_object_alone() {
    let (_server, informer, log, problems, _) =
        transforming("watch: +a@1 +bad@2 end@2 +bad@3 +c@4 -bad@5");
    settle().await;
    assert_eq!(stored(&informer), "a@1{marked=yes} c@4{marked=yes}");
    assert_eq!(log.take(), "+a@1{marked=yes}! +c@4{marked=yes}");
    let problem = "object bad cannot be read: the transform panicked";
    assert_eq!(problems.take(), format!("{problem} {problem}"));
    assert_eq!(informer.status().unreadable, 2);
    assert_eq!(informer.reader().version().version, 5.into());
}

/// Bug row 21: once per object from the wire, never again for what is stored.
#[tokio::test(start_paused = true)]
async fn k21_a_resync_does_not_transform_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = server("watch: +a@1 +b@2 end@2");
    let informer = with(&server, Config { transform: marking(&calls), ..Config::default() });
    let log = Log::default();
    let config = HandlerConfig { resync: Some(Duration::from_secs(5)), ..HandlerConfig::default() };
    informer.add_handler(log.clone(), config).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(log.take().split(' ').count(), 2 + 2 * 2);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// Bug row 18: a relist in which objects changed reaches every handler, also those that never resync or rarely do.
#[tokio::test(start_paused = true)]
async fn k18_changes_of_a_relist_reach_every_handler() {
    let server = server("watch: +a@1 +b@2 end@2 wait=5s gone | watch: +a@9 +b@2 end@9");
    let informer = with(&server, Config::default());
    let log = Log::default();
    let rarely =
        HandlerConfig { resync: Some(Duration::from_secs(36_000)), ..HandlerConfig::default() };
    informer.add_handler(log.clone(), rarely).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.take(), "+a@1! +b@2! a@1~a@9");
}

/// An object whose new state cannot be read is still there: handlers must not be told that it is gone.
#[tokio::test(start_paused = true)]
async fn an_unreadable_object_keeps_its_last_state_and_hides_no_other() {
    let server =
        server("watch: +a@1 +b@2 ?c@3 end@3 ?a@4 +d@5 wait=5s gone | watch: ?a@6 +d@7 ?e@8 end@9");
    let (problems, on_problem) = problems();
    let informer = with(&server, Config { on_problem, ..Config::default() });
    let log = Log::default();
    informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    informer.start();
    settle().await;
    assert_eq!(
        (log.take().as_str(), stored(&informer).as_str()),
        ("+a@1! +b@2! +d@5", "a@1 b@2 d@5")
    );
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(stored(&informer), "a@1 d@7");
    assert_eq!(log.take(), "-b@2? d@5~d@7 a@1~a@1");
    assert_eq!(informer.status().unreadable, 4);
    assert_eq!(problems.0.lock().len(), 4);
}

/// Bug rows 28b and 30: a handler may ask whether the informer is synced, and its own sync waits for its own calls.
#[tokio::test(start_paused = true)]
async fn k30_a_handler_is_synced_only_after_its_initial_calls() {
    struct Asks(Log, std::sync::OnceLock<(Informer<Thing>, crate::Registration)>);
    impl crate::Handler<Thing> for Asks {
        fn on_add(&self, _: &Thing, _: bool) {
            let (informer, own) = self.1.get().unwrap();
            let (all, own) = (informer.has_synced(), own.has_synced());
            self.0.0.lock().push(format!("{all}/{own}"));
        }
        fn on_update(&self, _: &Thing, _: &Thing) {}
        fn on_delete(&self, _: &Thing, _: bool) {}
    }
    let server = server("watch: +a@1 +b@2 end@2 wait=5s +c@3");
    let informer = with(&server, Config::default());
    let asks = Arc::new(Asks(Log::default(), std::sync::OnceLock::new()));
    let handler = informer.add_handler(Arc::clone(&asks), HandlerConfig::default()).unwrap();
    assert!(asks.1.set((informer.clone(), handler)).is_ok());
    informer.start();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(asks.0.take(), "true/false true/false true/true");
}

/// Bug rows 31 and 35: handlers and indexes join at any time, whatever state the informer is in.
#[tokio::test(start_paused = true)]
async fn k31_handlers_and_indexes_join_an_informer_that_never_syncs() {
    let server = server("hang");
    let informer = with(&server, Config::default());
    informer.start();
    settle().await;
    let index = kubestrata_store_index::Index::label("app");
    informer.add_index(index).unwrap();
    let handler = informer.add_handler(Log::default(), HandlerConfig::default()).unwrap();
    assert!(!handler.has_synced());
    handler.drain();
    handler.ended().await;
}

/// Bug row 22 (k/k#135580): the transform is applied on every path: a streaming list, a plain list, an event, a relist.
#[tokio::test(start_paused = true)]
async fn k22_the_transform_is_applied_on_every_path() {
    for first in ["watch: +a@1 +b@1{skip=1} end@1", "422 | list@1: a b{skip=1} | watch:"] {
        let (_server, informer, log, _, _) = transforming(&format!(
            "{first} ~a@2 wait=5s gone | 422 | list@9: a@3 b@4{{skip=1}} | watch: +c@10"
        ));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(stored(&informer), "a@3{marked=yes} c@10{marked=yes}", "{first}");
        let told = log.take();
        assert!(!told.contains("skip"), "{told}");
        assert_eq!(told.matches("marked=yes").count(), 6, "{told}");
    }
}

/// Bug row 22b (karmada PR 3908): a transform never sees a tombstone, and one that fails costs no relist.
#[tokio::test(start_paused = true)]
async fn k22b_a_transform_sees_no_tombstones() {
    let (_server, informer, log, problems, calls) =
        transforming("watch: +a@1 +b@2 end@2 wait=5s gone | watch: +b@2 end@9");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stored(&informer), "b@2{marked=yes}");
    let told = log.take();
    assert!(told.contains("-a@1{marked=yes}?"), "the state as it was transformed: {told}");
    assert_eq!((problems.take().as_str(), calls.load(Ordering::SeqCst)), ("", 3));
}

/// Bug row 23 (k/k PR 131799): while a streaming list is received, not when it is complete.
#[tokio::test(start_paused = true)]
async fn k23_objects_are_transformed_as_they_arrive() {
    let (_server, informer, log, _, calls) =
        transforming("watch: +a@1 +b@2 +x@3{skip=1} wait=30s end@3");
    settle().await;
    assert_eq!((calls.load(Ordering::SeqCst), informer.reader().len()), (3, 0));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((calls.load(Ordering::SeqCst), informer.reader().len()), (3, 2));
    assert_eq!(log.take(), "+a@1{marked=yes}! +b@2{marked=yes}!");
}

/// Bug row 29 (k/k PR 141098): whatever a problem is, its cause is told with it. A resync itself cannot fail here: it tells
/// of a frozen state, and nothing is looked up.
#[tokio::test(start_paused = true)]
async fn k29_every_problem_names_its_cause() {
    let server = server("watch: +a@1{broken=1} ?b@2 end@2");
    let problems = Log::default();
    let seen = problems.clone();
    let hook = ProblemHook::new(move |problem: &Problem| {
        let mut chain = vec![problem.to_string()];
        let mut source = std::error::Error::source(problem);
        while let Some(cause) = source {
            chain.push(cause.to_string());
            source = cause.source();
        }
        seen.0.lock().push(chain.join(": "));
    });
    let informer = with(&server, Config { on_problem: Some(hook), ..Config::default() });
    let index = kubestrata_store_index::Index::by("v", |thing: &Thing, _| {
        assert!(thing.label("broken").is_none(), "an index function's own fault");
    });
    informer.add_index(index).unwrap();
    let resync = HandlerConfig { resync: Some(Duration::from_secs(5)), ..HandlerConfig::default() };
    let log = Log::default();
    informer.add_handler(log.clone(), resync).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(12)).await;
    expect_test::expect![[r#"
        an object was left out: object b cannot be read: scripted
        an index is incomplete: object a is not in index "v": the index function panicked"#]]
    .assert_eq(&problems.0.lock().join("\n"));
    assert_eq!(
        log.take(),
        "+a@1{broken=1}! a@1{broken=1}~a@1{broken=1} a@1{broken=1}~a@1{broken=1}"
    );
    assert_eq!(informer.status().index_problems, 1, "a resync indexes nothing again");
}

/// kube-rs L8: a handler that is told of an object which is gone already is told of the rest all the same, at every size of
/// its backlog.
#[tokio::test(start_paused = true)]
async fn l08_an_object_that_is_gone_already_stalls_nobody() {
    struct Looks(Log, kubestrata_store_index::Reader<Thing>);
    impl crate::Handler<Thing> for Looks {
        fn on_add(&self, object: &Thing, initial: bool) {
            let gone = self.1.get(&object.key()).is_none();
            self.0.0.lock().push(if gone { "(gone)".to_owned() } else { String::new() });
            self.0.on_add(object, initial);
        }
        fn on_update(&self, old: &Thing, new: &Thing) {
            self.0.on_update(old, new);
        }
        fn on_delete(&self, last: &Thing, known: bool) {
            self.0.on_delete(last, known);
        }
    }
    for backlog in [1, 2, 1024] {
        let server = server("watch: +a@1 end@1 wait=1s +b@2 -b@3 +c@4 -c@5 +d@6");
        let informer = with(&server, Config::default());
        let log = Log::default();
        let config = HandlerConfig { backlog, ..HandlerConfig::default() };
        informer.add_handler(Looks(log.clone(), informer.reader()), config).unwrap();
        informer.start();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(log.take(), " +a@1! (gone) +b@2 -b@3 (gone) +c@4 -c@5  +d@6", "{backlog}");
    }
}
