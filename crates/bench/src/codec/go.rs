//! client-go's part, which its own program measures.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::{Figure, median};
use crate::Result;

/// The peer failed.
#[derive(Debug, thiserror::Error)]
#[error("peer-go codec failed")]
struct Failed;

/// One round of all of its cases.
pub(super) fn round(program: &Path, data: &Path) -> Result<Vec<Figure>> {
    let output = Command::new(program).arg("codec").arg(data).output()?;
    if !output.status.success() {
        return Err(Failed.into());
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?)
}

/// The medians of all rounds.
pub(super) fn medians(rounds: Vec<Vec<Figure>>) -> Vec<Figure> {
    let mut cases: BTreeMap<(String, String, String), Vec<Figure>> = BTreeMap::new();
    for line in rounds.into_iter().flatten() {
        let key = (line.set.clone(), line.what.clone(), line.by.clone());
        cases.entry(key).or_default().push(line);
    }
    let of = |lines: &[Figure], part: fn(&Figure) -> f64| {
        median(&mut lines.iter().map(part).collect::<Vec<_>>())
    };
    cases
        .into_iter()
        .map(|((set, what, by), lines)| Figure {
            set,
            what,
            by,
            input: of(&lines, |line| line.input),
            ns: of(&lines, |line| line.ns),
            allocations: of(&lines, |line| line.allocations),
            allocated: of(&lines, |line| line.allocated),
        })
        .collect()
}
