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
/// By what deadlines are longer, and how many cases run at a time: they wait most of the time, and must not make each other
/// slow. Those that may have suffered from what else the machine does run again, and must be right in the end.
const ROUNDS: [(u32, usize); 3] = [(1, 64), (4, 16), (10, 4)];

pub(crate) fn trials() -> Vec<Trial> {
    let limit = ROUNDS.map(|(patience, _)| 6 * case_limit(patient(patience))).iter().sum();
    vec![single_within("faults::table", limit, || (), || Box::pin(table()))]
}

fn scale() -> u32 {
    std::env::var(SCALE).ok().map_or(rows::SCALE, |text| text.parse().expect("a number"))
}

/// The scale at which deadlines are so many times longer.
fn patient(patience: u32) -> u32 {
    (scale() / patience).max(1)
}

/// What no case exceeds; the longest deadline is that of a whole answer.
fn case_limit(scale: u32) -> Duration {
    Duration::from_secs(300) / scale + Duration::from_secs(10)
}

/// Runs every case, and fails with every one that is not as it should be.
async fn table() {
    let cases = ROWS.iter().flat_map(|row| {
        let all = Way::ALL.into_iter().flat_map(|way| Task::ALL.map(|task| (task, way)));
        all.filter(|(task, way)| row.fits(*task, *way)).map(move |(task, way)| Case {
            row,
            way,
            task,
        })
    });
    let only = std::env::var(ONLY).unwrap_or_default();
    let cases = cases.filter(|case| case.to_string().contains(&only)).collect();
    let mut outcomes = run(cases, ROUNDS[0]).await;
    for round in &ROUNDS[1..] {
        let late = outcomes.extract_if(.., |(case, outcome)| may_be_late(case, outcome));
        let late: Vec<Case> = late.map(|(case, _)| case).collect();
        if late.is_empty() {
            break;
        }
        outcomes.extend(run(late, *round).await);
    }
    let wrong: Vec<String> = outcomes.iter().filter_map(complaint).collect();
    if !wrong.is_empty() || std::env::var_os(PRINT).is_some() {
        print(&outcomes);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), outcomes.len(), wrong.join("\n"));
}

async fn run(cases: Vec<Case>, (patience, at_a_time): (u32, usize)) -> Vec<(Case, Outcome)> {
    let ground = Ground::start(patient(patience)).await;
    let all = stream::iter(cases).map(async |case| (case, case.run(&ground).await));
    all.buffer_unordered(at_a_time).collect().await
}

/// Whether something is wrong, and the machine may be at fault.
fn may_be_late(case: &Case, outcome: &Outcome) -> bool {
    let Some(problem @ Problem::Perhaps(_)) = case.problem(outcome) else { return false };
    println!("once more: {case}: {problem}");
    true
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
