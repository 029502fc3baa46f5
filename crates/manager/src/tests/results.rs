//! What becomes of a key after its reconcile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use expect_test::{Expect, expect};
use kubestrata_api_types::BoxError;
use kubestrata_telemetry::Memory;
use tokio::time::sleep;

use super::server::{Log, Server, Set, run_for};
use crate::{Action, Controller, Manager, TerminalError};

/// What a reconcile does.
#[derive(Clone, Copy)]
enum Do {
    Give(fn() -> Result<Action, BoxError>),
    TakeAMinute,
}
use Do::{Give, TakeAMinute};

/// Reconciles one key in these ways, and then with success, and compares when, after how many failures and with which priority; then the
/// metrics that are not 0.
async fn check(ways: &'static [Do], expected: Expect) {
    let server = Server::new(&[("sets", "watch: +n/a@1 end@1")]);
    let metrics = Memory::new();
    let provider = Arc::new(metrics.clone());
    let mut manager = Manager::builder(server.service()).metrics(provider).build();
    let log = Log::new();
    let notes = log.clone();
    let calls = AtomicU32::new(0);
    let controller = Controller::builder("c")
        .for_kind::<Set>()
        .reconcile_timeout(Duration::from_secs(3))
        .reconcile(move |context, key| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            notes.note(&format!("{key} {} {}", context.failures(), context.priority()));
            async move {
                match usize::try_from(call).ok().and_then(|call| ways.get(call)) {
                    Some(TakeAMinute) => sleep(Duration::from_secs(60)).await,
                    Some(Give(outcome)) => return outcome(),
                    None => {}
                }
                Ok(Action::done())
            }
        });
    manager.add(controller).unwrap();
    run_for(manager, 100.0).await.unwrap();
    let counted = metrics
        .render()
        .lines()
        .filter(|line| line.contains("_total{") && line.starts_with("controller_runtime"))
        .filter(|line| !line.ends_with(" 0"))
        .map(|line| line.trim_start_matches("controller_runtime_").to_owned())
        .collect::<Vec<_>>();
    expected.assert_eq(&format!("{}\n{}", log.lines(), counted.join("\n")));
}

fn error() -> Result<Action, BoxError> {
    Err("broken".into())
}

#[tokio::test(start_paused = true)]
async fn an_error_is_tried_again_with_a_growing_delay() {
    check(
        &[Give(error), Give(error), Give(error)],
        expect![[r#"
            0.0 n/a 0 -100
            0.0 n/a 1 -100
            0.0 n/a 2 -100
            0.0 n/a 3 -100
            reconcile_errors_total{controller="c"} 3
            reconcile_total{controller="c",result="error"} 3
            reconcile_total{controller="c",result="success"} 1"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_tried_again() {
    fn terminal() -> Result<Action, BoxError> {
        Err(TerminalError::new("hopeless").into())
    }
    check(
        &[Give(terminal)],
        expect![[r#"
            0.0 n/a 0 -100
            reconcile_errors_total{controller="c"} 1
            reconcile_total{controller="c",result="error"} 1
            terminal_reconcile_errors_total{controller="c"} 1"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_requeue_after_clears_the_failures_and_a_requeue_counts_one() {
    check(
        &[
            Give(error),
            Give(|| Ok(Action::requeue_after(Duration::from_secs(30)))),
            Give(|| Ok(Action::requeue().priority(5))),
            Give(|| Ok(Action::requeue_after(Duration::ZERO))),
        ],
        expect![[r#"
            0.0 n/a 0 -100
            0.0 n/a 1 -100
            30.0 n/a 0 -100
            30.0 n/a 1 5
            reconcile_errors_total{controller="c"} 1
            reconcile_total{controller="c",result="error"} 1
            reconcile_total{controller="c",result="requeue"} 1
            reconcile_total{controller="c",result="requeue_after"} 1
            reconcile_total{controller="c",result="success"} 1"#]],
    )
    .await;
}

/// Also kube-rs L15: a panic of a reconciler is caught and counted, and its key is tried again.
#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_try() {
    check(
        &[Give(|| panic!("at the disco")), Give(|| std::panic::panic_any(7))],
        expect![[r#"
            0.0 n/a 0 -100
            0.0 n/a 1 -100
            0.0 n/a 2 -100
            reconcile_errors_total{controller="c"} 2
            reconcile_panics_total{controller="c"} 2
            reconcile_total{controller="c",result="error"} 2
            reconcile_total{controller="c",result="success"} 1"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_dropped_and_tried_again() {
    check(
        &[TakeAMinute, TakeAMinute],
        expect![[r#"
            0.0 n/a 0 -100
            3.0 n/a 1 -100
            6.0 n/a 2 -100
            reconcile_errors_total{controller="c"} 2
            reconcile_timeouts_total{controller="c"} 2
            reconcile_total{controller="c",result="error"} 2
            reconcile_total{controller="c",result="success"} 1"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn all_series_are_there_from_the_start() {
    let server = Server::new(&[("sets", "hang")]);
    let metrics = Memory::new();
    let mut manager = Manager::builder(server.service()).metrics(Arc::new(metrics.clone())).build();
    let controller = Controller::builder("c").for_kind::<Set>().workers(7);
    manager.add(controller.reconciler(Log::new())).unwrap();
    let value = |series: &str| metrics.value(&format!("controller_runtime_{series}"));
    for result in ["success", "error", "requeue", "requeue_after"] {
        let series = format!("reconcile_total{{controller=\"c\",result=\"{result}\"}}");
        assert_eq!(value(&series), Some(0.0), "{result}");
    }
    assert_eq!(value(r#"max_concurrent_reconciles{controller="c"}"#), Some(7.0));
    assert_eq!(value(r#"active_workers{controller="c"}"#), Some(0.0));
    assert_eq!(metrics.value(r#"workqueue_adds_total{name="c"}"#), Some(0.0));
}
