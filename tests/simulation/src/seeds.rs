//! The trials: ranges of seeds.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Failed, Trial};

use crate::log::Counts;
use crate::run::{Outcome, run};

/// Chooses other seeds: `from..to`, the end excluded.
const SEEDS: &str = "KUBESTRATA_SEEDS";
/// Seeds of an ordinary run.
const DEFAULT: Range<u64> = 0..2000;
/// Seeds of one trial. Several trials run at a time.
const TRIAL: u64 = 100;
/// Seeds of one run, at most: each trial is made before the first one runs.
const SEEDS_MAX: u64 = 10_000_000;
/// Seeds that are run twice.
const REPLAYED: Range<u64> = 0..50;
/// Lines of a failed run that are shown.
const SHOWN: usize = 80;

/// What all trials of an ordinary run must meet together, or the simulation does not test what it says.
const MUST_HAPPEN: [&str; 44] = [
    "create",
    "update",
    "delete",
    "compaction",
    "restart, state kept",
    "rollback, new revisions",
    "rollback, revisions again",
    "server is down",
    "delayed request",
    "refused connection",
    "reset before the answer",
    "no answer",
    "429 with Retry-After",
    "bare 429",
    "500",
    "410 as status",
    "cut",
    "closed",
    "half-open",
    "410 as event",
    "500 as event",
    "429 as event",
    "lost bookmark",
    "frame twice",
    "list twice",
    "slow frame",
    "recovery: retry",
    "recovery: reopen",
    "recovery: relist",
    "recovery: ask for the latest",
    "recovery: fall back",
    "recovery: list whole",
    "queue: atomic",
    "queue: apart",
    "queue: by key",
    "queue: by key, to the newest",
    "kept as bytes",
    "kept as metadata",
    "kept decoded",
    "field selector",
    "shards that the server does not know",
    "handler that is told everything",
    "handler that coalesces",
    "changes that became one",
];

/// The trials for the seeds that are asked for.
pub(crate) fn trials() -> Vec<Trial> {
    let asked = std::env::var(SEEDS).ok();
    let seeds = match &asked {
        Some(text) => match parse(text) {
            Ok(seeds) => seeds,
            Err(problem) => {
                let problem = format!("{SEEDS}={text}: {problem}");
                return vec![Trial::test("seeds", move || Err(problem.into()))];
            }
        },
        None => DEFAULT,
    };
    if seeds.end - seeds.start == 1 {
        let seed = seeds.start;
        return vec![Trial::test(format!("seed_{seed}"), move || alone(seed))];
    }
    let mut trials = Vec::new();
    if asked.is_none() {
        trials.push(Trial::test("seeds_replay", || replay(REPLAYED)));
        trials.push(Trial::test("seeds_as_text", seeds_as_text));
    }
    let met = (seeds.end - seeds.start >= DEFAULT.end).then(|| Arc::new(Met::new(&seeds)));
    for part in parts(seeds) {
        let name = format!("seeds_{:06}_{:06}", part.start, part.end);
        let met = met.clone();
        trials.push(Trial::test(name, move || {
            let counts = all(part)?;
            met.map_or(Ok(()), |met| met.add(counts))
        }));
    }
    trials
}

fn parse(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let ends = text.split_once("..").and_then(|(from, to)| Some((number(from)?, number(to)?)));
    let Some((from, to)) = ends else {
        return Err(format!("want from..to, as in 0..2000, with numbers up to {}", u64::MAX));
    };
    if from >= to {
        return Err("there is no seed in it: the end is excluded, as in 17..18".to_owned());
    }
    if to - from > SEEDS_MAX {
        return Err(format!("want at most {SEEDS_MAX} seeds in one run"));
    }
    Ok(from..to)
}

/// Ranges are read or refused with the reason, up to the largest number.
fn seeds_as_text() -> Result<(), Failed> {
    let end = u64::MAX;
    let (last, many) = (format!("{}..{end}", end - 150), format!("0..{end}"));
    for (text, expected) in [
        ("0..2000", Ok(0..2000)),
        (" 17 .. 18 ", Ok(17..18)),
        (&last, Ok(end - 150..end)),
        ("5..5", Err("no seed in it")),
        ("6..5", Err("no seed in it")),
        (&many, Err("at most")),
        ("0..18446744073709551616", Err("want from..to")),
        ("..5", Err("want from..to")),
        ("seven", Err("want from..to")),
    ] {
        let read = parse(text);
        let right = match (&read, &expected) {
            (Ok(seeds), Ok(expected)) => seeds == expected,
            (Err(problem), Err(part)) => problem.contains(part),
            _ => false,
        };
        if !right {
            return Err(format!("{text}: {read:?} instead of {expected:?}").into());
        }
    }
    let sizes: Vec<_> = parts(end - 150..end).map(|part| part.end - part.start).collect();
    if sizes != [TRIAL, 50] {
        return Err(format!("the last seeds make trials of {sizes:?}").into());
    }
    Ok(())
}

/// Ranges of at most [`TRIAL`] seeds.
fn parts(seeds: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut from = seeds.start;
    std::iter::from_fn(move || {
        let part = from..seeds.end.min(from.saturating_add(TRIAL));
        from = part.end;
        (!part.is_empty()).then_some(part)
    })
}

/// What the trials have met so far. The last of them to end looks whether anything is missing.
struct Met(Mutex<(Counts, u64)>);

impl Met {
    fn new(seeds: &Range<u64>) -> Self {
        Self(Mutex::new((Counts::new(), (seeds.end - seeds.start).div_ceil(TRIAL))))
    }

    fn add(&self, more: Counts) -> Result<(), Failed> {
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (counts, left) = &mut *met;
        for (what, count) in more {
            *counts.entry(what).or_default() += count;
        }
        *left -= 1;
        let never: Vec<_> = MUST_HAPPEN.iter().filter(|what| !counts.contains_key(*what)).collect();
        if *left == 0 && !never.is_empty() {
            return Err(format!("never happened: {never:?}; what did: {counts:?}").into());
        }
        Ok(())
    }
}

/// Runs seeds until one fails; gives what they met.
fn all(seeds: Range<u64>) -> Result<Counts, Failed> {
    let mut counts = Counts::new();
    for seed in seeds {
        let outcome = run(seed, SHOWN);
        for (what, count) in &outcome.counts {
            *counts.entry(what).or_default() += count;
        }
        passed(seed, outcome)?;
    }
    Ok(counts)
}

/// Runs one seed and prints all of its log.
fn alone(seed: u64) -> Result<(), Failed> {
    let outcome = run(seed, usize::MAX);
    for line in &outcome.lines {
        println!("{line}");
    }
    println!("hash {:016x}, {:?}", outcome.hash, outcome.counts);
    outcome.result.map_err(Failed::from)
}

fn passed(seed: u64, outcome: Outcome) -> Result<(), Failed> {
    outcome.result.map_err(|violation| {
        let log = outcome.lines.join("\n");
        Failed::from(format!(
            "seed {seed}: {violation}\n(run again with {SEEDS}={seed}..{})\n{log}",
            seed + 1
        ))
    })
}

/// Runs each seed twice: everything that happens must be the same.
fn replay(seeds: Range<u64>) -> Result<(), Failed> {
    let mut hashes = BTreeMap::new();
    for seed in seeds {
        let (first, second) = (run(seed, usize::MAX), run(seed, usize::MAX));
        if first.hash != second.hash {
            let at = first.lines.iter().zip(&second.lines).position(|(a, b)| a != b).unwrap_or(0);
            let around = at.saturating_sub(20)..at + 3;
            let part = |lines: &[String]| {
                lines.get(around.start..around.end.min(lines.len())).unwrap_or_default().join("\n")
            };
            return Err(format!(
                "seed {seed} does not replay, from line {at} on:\n{}\n--- and then\n{}",
                part(&first.lines),
                part(&second.lines)
            )
            .into());
        }
        hashes.insert(first.hash, seed);
    }
    // Seeds that all tell the same story would replay too.
    if hashes.len() < 40 {
        return Err(format!("only {} different runs", hashes.len()).into());
    }
    Ok(())
}
