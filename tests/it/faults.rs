//! Faults of the network and of dying servers, each with each operation over each way: what the caller sees, and how long it
//! takes until all is well again.
//!
//! The client is a `Transport`, the server the embedded one over real sockets, and a `FaultProxy` is between them. Every
//! deadline is the default one divided by the same number, so that the times can be read as shares of the defaults.

mod case;
mod rows;
mod way;

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use libtest_mimic::Trial;

use self::case::{Case, Outcome, Problem, Task};
use self::rows::{ROWS, Row};
use self::way::{Ground, Way};
use crate::bed::single_within;

/// What deadlines are divided by; 1 runs the defaults, and takes minutes.
const SCALE: &str = "KUBESTRATA_FAULTS_SCALE";
/// Prints the table even if all is as it should be.
const PRINT: &str = "KUBESTRATA_FAULTS_PRINT";
/// Only cases with this text in their name, which is as in `freeze, read, HTTP/2, TLS`.
const ONLY: &str = "KUBESTRATA_FAULTS_ONLY";
/// Cases at a time: they wait most of the time, and must not make each other slow.
const AT_A_TIME: usize = 64;
/// Those that may have suffered from what else the machine does have so many times longer deadlines the second time, and so
/// few others beside them.
const PATIENCE: u32 = 4;
const AT_A_TIME_AGAIN: usize = 16;

pub(crate) fn trials() -> Vec<Trial> {
    let limit = 4 * case_limit(scale()) + 12 * case_limit(patient(scale()));
    vec![single_within("faults::table", limit, || (), || Box::pin(table()))]
}

fn scale() -> u32 {
    std::env::var(SCALE).ok().map_or(rows::SCALE, |text| text.parse().expect("a number"))
}

fn patient(scale: u32) -> u32 {
    (scale / PATIENCE).max(1)
}

/// What no case exceeds; the longest deadline is that of a whole answer.
fn case_limit(scale: u32) -> Duration {
    Duration::from_secs(300) / scale + Duration::from_secs(10)
}

/// Runs every case, and fails with every one that is not as it should be.
async fn table() {
    let ground = Ground::start(scale()).await;
    let cases = ROWS.iter().flat_map(|row| {
        let all = Way::ALL.into_iter().flat_map(|way| Task::ALL.map(|task| (task, way)));
        all.filter(|(task, way)| row.fits(*task, *way)).map(move |(task, way)| Case {
            row,
            way,
            task,
        })
    });
    let only = std::env::var(ONLY).unwrap_or_default();
    let cases = cases.filter(|case| case.to_string().contains(&only));
    let mut outcomes = run(&ground, cases.collect(), AT_A_TIME).await;
    let again = outcomes.extract_if(.., |(case, outcome)| match case.problem(outcome) {
        Some(problem @ Problem::Perhaps(_)) => {
            println!("once more: {case}: {problem}");
            true
        }
        _ => false,
    });
    let again: Vec<Case> = again.map(|(case, _)| case).collect();
    if !again.is_empty() {
        let ground = Ground::start(patient(scale())).await;
        outcomes.extend(run(&ground, again, AT_A_TIME_AGAIN).await);
    }
    let wrong: Vec<String> = outcomes.iter().filter_map(complaint).collect();
    if !wrong.is_empty() || std::env::var_os(PRINT).is_some() {
        print(&outcomes);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), outcomes.len(), wrong.join("\n"));
}

async fn run(ground: &Ground, cases: Vec<Case>, at_a_time: usize) -> Vec<(Case, Outcome)> {
    let all = stream::iter(cases).map(async |case| (case, case.run(ground).await));
    all.buffer_unordered(at_a_time).collect().await
}

fn complaint((case, outcome): &(Case, Outcome)) -> Option<String> {
    Some(format!("{case}: {}", case.problem(outcome)?))
}

/// As Markdown, one line for each fault and task.
fn print(outcomes: &[(Case, Outcome)]) {
    let names = Way::ALL.map(Way::name).join(" | ");
    println!("deadlines: the defaults / {}", scale());
    println!("| fault | task | {names} |\n|---|---|{}", "---|".repeat(Way::ALL.len()));
    for row in ROWS {
        for task in Task::ALL {
            let cells = Way::ALL.map(|way| cell(outcomes, row, task, way));
            println!("| {} | {} | {} |", row.name, task.name(), cells.join(" | "));
        }
    }
}

fn cell(outcomes: &[(Case, Outcome)], row: &Row, task: Task, way: Way) -> String {
    let is_it = |case: &Case| std::ptr::eq(case.row, row) && (case.task, case.way) == (task, way);
    let Some((case, outcome)) = outcomes.iter().find(|(case, _)| is_it(case)) else {
        return "–".to_owned();
    };
    let bad = if case.problem(outcome).is_some() { "**!** " } else { "" };
    format!("{bad}{outcome}")
}
