//! Handlers: order, removal, bounds, panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kubestrata_store_index::Reader;
use kubestrata_telemetry::Memory;
use kubestrata_testkit::Thing;
use tokio::task::block_in_place;

use super::{Log, PATIENCE, informer, server, settle, with};
use crate::{Config, Handler, HandlerConfig, Problem, ProblemHook, Registration};

#[tokio::test(start_paused = true)]
async fn handlers_are_told_of_adds_updates_and_deletes_in_order() {
    let server = server("watch: +a@1 +b@2 end@2 +c@3 ~a@4 -b@5 +b@6 -x@7 bookmark@9");
    let informer = informer(&server);
    let log = Log::default();
    let handler = informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    assert!(!handler.has_synced());
    informer.start();
    settle().await;
    // A delete of an unknown object is told, as client-go does (Q5).
    assert_eq!(log.take(), "+a@1! +b@2! +c@3 a@1~a@4 -b@5 +b@6 -x@7");
    assert!(handler.has_synced());
    assert_eq!(informer.reader().version().version, 9.into());
}

/// Bug row 20 (k/k#27004) and vector Q2: whoever is told finds the store changed.
#[tokio::test(start_paused = true)]
async fn k20_a_relist_swaps_the_store_first_and_tells_deletes_first() {
    struct Sees(Log, Reader<Thing>);
    impl Sees {
        fn note(&self, what: &str, thing: &Thing) {
            let mut seen: Vec<_> = self.1.list().iter().map(ToString::to_string).collect();
            seen.sort_unstable();
            self.0.0.lock().push(format!("{what}{thing} of {}", seen.join(",")));
        }
    }
    impl Handler<Thing> for Sees {
        fn on_add(&self, object: &Thing, _: bool) {
            self.note("+", object);
        }
        fn on_update(&self, _: &Thing, new: &Thing) {
            self.note("~", new);
        }
        fn on_delete(&self, last: &Thing, _: bool) {
            self.note("-", last);
        }
    }
    let server = server("watch: +a@1 +b@2 end@2 wait=9s gone | watch: +b@5 +c@6 end@6");
    let informer = informer(&server);
    let log = Log::default();
    let sees = Sees(log.clone(), informer.reader());
    informer.add_handler(sees, HandlerConfig::default()).unwrap();
    informer.start();
    settle().await;
    log.take();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(log.take(), "-a@1 of b@5,c@6 ~b@5 of b@5,c@6 +c@6 of b@5,c@6");
}

#[tokio::test(start_paused = true)]
async fn a_drained_handler_is_told_of_its_backlog_and_nothing_more() {
    let server = server("watch: +a@1 end@1 wait=10s ~a@2 wait=10s ~a@3");
    let informer = informer(&server);
    let log = Log::default();
    let handler = informer.add_handler(log.clone(), HandlerConfig::default()).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(12)).await;
    handler.drain();
    handler.ended().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(log.take(), "+a@1! a@1~a@2");
    assert_eq!(informer.reader().list()[0].to_string(), "a@3", "the informer goes on");
    assert!(handler.has_synced());
}

/// Removes itself at the first call.
#[derive(Default)]
struct Once(parking_lot::Mutex<Option<Registration>>, AtomicUsize);

impl Handler<Thing> for Once {
    fn on_add(&self, _: &Thing, _: bool) {
        self.1.fetch_add(1, Ordering::SeqCst);
        if let Some(registration) = self.0.lock().take() {
            registration.remove();
        }
    }
    fn on_update(&self, _: &Thing, _: &Thing) {}
    fn on_delete(&self, _: &Thing, _: bool) {}
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_remove_itself() {
    let server = server("watch: +a@1 +b@2 end@2");
    let informer = informer(&server);
    let once = Arc::new(Once::default());
    let registration = informer.add_handler(Arc::clone(&once), HandlerConfig::default()).unwrap();
    *once.0.lock() = Some(registration.clone());
    informer.start();
    registration.ended().await;
    assert_eq!(once.1.load(Ordering::SeqCst), 1);
    assert!(informer.status().handlers.is_empty());
}

struct Panics(Log);

impl Handler<Thing> for Panics {
    fn on_add(&self, object: &Thing, initial: bool) {
        assert_ne!(object.name, "bad");
        self.0.on_add(object, initial);
    }
    fn on_update(&self, old: &Thing, new: &Thing) {
        self.0.on_update(old, new);
    }
    fn on_delete(&self, last: &Thing, known: bool) {
        self.0.on_delete(last, known);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_call_and_the_handler_still_syncs() {
    let server = server("watch: +a@1 +bad@2 +c@3 end@3 ~a@4");
    let (problems, metrics) = (Log::default(), Memory::new());
    let seen = problems.clone();
    let config = Config {
        on_problem: Some(ProblemHook::new(move |problem: &Problem| {
            seen.0.lock().push(problem.to_string());
        })),
        metrics: Arc::new(metrics.clone()),
        ..Config::default()
    };
    let informer = with(&server, config);
    let log = Log::default();
    let named = HandlerConfig { name: "risky".into(), ..HandlerConfig::default() };
    let handler = informer.add_handler(Panics(log.clone()), named).unwrap();
    informer.start();
    settle().await;
    assert_eq!(log.take(), "+a@1! +c@3! a@1~a@4");
    assert!(handler.has_synced());
    assert_eq!(
        (problems.take().as_str(), handler.status().panics),
        ("handler \"risky\" panicked", 1)
    );
    let series = "informer_handler_panics_total{name=\"\",group=\"test.kubestrata.dev\",\
        version=\"v1\",resource=\"things\",handler=\"risky\"}";
    assert_eq!(metrics.value(series), Some(1.0));
}

/// Bug row 33, and requirement 7 of the deviations: memory stays flat with a stuck handler.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn k33_a_stuck_handler_stops_the_stream_at_its_bound_and_frees_it_when_removed() {
    use std::fmt::Write as _;
    struct Stuck(
        std::sync::mpsc::SyncSender<()>,
        parking_lot::Mutex<std::sync::mpsc::Receiver<()>>,
    );
    impl Handler<Thing> for Stuck {
        fn on_add(&self, _: &Thing, _: bool) {
            let _ = self.0.try_send(());
            let _ = block_in_place(|| self.1.lock().recv());
        }
        fn on_update(&self, _: &Thing, _: &Thing) {}
        fn on_delete(&self, _: &Thing, _: bool) {}
    }
    let mut script = "watch: end@1".to_owned();
    for number in 2..500 {
        write!(script, " +o{number}@{number}").unwrap();
    }
    let server = server(&script);
    let mut config = Config::default();
    config.queue.items = 20;
    config.queue.batch = 5;
    let informer = with(&server, config);
    let (entered, enters) = std::sync::mpsc::sync_channel(1);
    let (goes, let_go) = std::sync::mpsc::sync_channel::<()>(1);
    let bounded = HandlerConfig { backlog: 10, ..HandlerConfig::default() };
    let stuck = Stuck(entered, parking_lot::Mutex::new(let_go));
    let handler = informer.add_handler(stuck, bounded).unwrap();
    informer.start();
    enters.recv().unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    // One call runs, the backlog and one sender wait, and one batch is in the store.
    let status = informer.status();
    assert!(status.handlers[0].backlog <= 11, "{status:?}");
    assert!(status.objects <= 1 + 11 + 5, "{}", status.objects);
    assert!(status.queued <= 21, "{}", status.queued);
    handler.remove();
    drop(goes);
    informer.reader().wait_at_least(499.into(), PATIENCE).await.unwrap();
}

/// Blocks at its first call until it is let go.
struct SlowStart {
    log: Log,
    began: std::sync::atomic::AtomicBool,
    entered: std::sync::mpsc::SyncSender<()>,
    let_go: parking_lot::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Handler<Thing> for SlowStart {
    fn on_add(&self, object: &Thing, initial: bool) {
        if !self.began.swap(true, Ordering::SeqCst) {
            self.entered.send(()).unwrap();
            let _ = block_in_place(|| self.let_go.lock().recv());
        }
        self.log.on_add(object, initial);
    }
    fn on_update(&self, old: &Thing, new: &Thing) {
        self.log.on_update(old, new);
    }
    fn on_delete(&self, last: &Thing, known: bool) {
        self.log.on_delete(last, known);
    }
}

/// Deviation 7: a handler that coalesces holds up nobody, its backlog stays flat, and what it missed comes as one change
/// of each object.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stuck_handler_that_coalesces_holds_up_nobody() {
    use std::fmt::Write as _;
    let mut script = "watch: +a@1 +b@1 end@1".to_owned();
    for version in 2..500 {
        write!(script, " ~a@{version}").unwrap();
    }
    // `b` goes; `c` comes and goes; `d` comes and changes.
    script.push_str(" -b@500 +c@501 ~c@502 -c@503 +d@504 ~d@505 bookmark@506");
    let server = server(&script);
    let metrics = Memory::new();
    let config = Config { metrics: Arc::new(metrics.clone()), ..Config::default() };
    let informer = with(&server, config);
    let (entered, enters) = std::sync::mpsc::sync_channel(1);
    let (goes, let_go) = std::sync::mpsc::sync_channel::<()>(1);
    let (slow_log, fast_log) = (Log::default(), Log::default());
    let let_go = parking_lot::Mutex::new(let_go);
    let (log, began) = (slow_log.clone(), false.into());
    let slow = SlowStart { log, began, entered, let_go };
    let coalesce = HandlerConfig {
        name: "slow".into(),
        backlog: 2,
        overflow: crate::Overflow::Coalesce,
        ..HandlerConfig::default()
    };
    let slow = informer.add_handler(slow, coalesce).unwrap();
    let fast = informer.add_handler(fast_log.clone(), HandlerConfig::default()).unwrap();
    informer.start();
    enters.recv().unwrap();
    informer.reader().wait_at_least(506.into(), PATIENCE).await.unwrap();
    fast.drain();
    fast.ended().await;
    assert_eq!(fast_log.0.lock().len(), 2 + 498 + 6, "the fast one is told everything");
    let status = slow.status();
    assert!(status.backlog <= 2 + 2 * 4 && status.merged > 400, "{status:?}");
    goes.send(()).unwrap();
    slow.wait_synced().await.unwrap();
    slow.drain();
    slow.ended().await;
    // How far the history had come at the first call is not said; what follows is.
    let told = slow_log.take();
    assert!(told.split(' ').count() <= 1 + 2 + 2 * 4, "{told}");
    assert!(told.starts_with("+a@") && told.contains("a@499"), "{told}");
    assert!(told.ends_with("+d@505") || told.ends_with("d@504~d@505"), "{told}");
    assert_eq!(told.contains("+b@1!"), told.contains("-b@500"), "{told}");
    assert_eq!(told.contains("+c@"), told.contains("-c@503"), "{told}");
    let series = "informer_merged_notifications_total{name=\"\",group=\"test.kubestrata.dev\",\
        version=\"v1\",resource=\"things\",handler=\"slow\"}";
    assert!(metrics.value(series) > Some(400.0));
}

/// Bug row 32: a filter and a handler get the last known state with a missed deletion, too.
#[tokio::test(start_paused = true)]
async fn k32_a_missed_deletion_reaches_handlers_behind_a_filter() {
    let server = server("watch: +a@1{app=web} +b@2 end@2 wait=5s gone | watch: end@9");
    let informer = informer(&server);
    let log = Log::default();
    let filtered = crate::Filtered::new(
        |thing: &Thing| kubestrata_api_types::Object::label(thing, "app").is_some(),
        log.clone(),
    );
    informer.add_handler(filtered, HandlerConfig::default()).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.take(), "+a@1{app=web}! -a@1{app=web}?");
}
