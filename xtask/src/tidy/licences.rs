//! The licences of everything that we link.

use super::Findings;
use crate::workspace::Workspace;

/// Licences that ask for no more than their text.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Every package must offer an allowed licence; several versions of one package are worth a note.
pub(crate) fn check(workspace: &Workspace, findings: &mut Findings) {
    for package in &workspace.metadata.packages {
        let Some(licence) = &package.license else {
            findings.error(format!("{} {}: no licence expression", package.name, package.version));
            continue;
        };
        if !acceptable(licence) {
            findings.error(format!("{} {}: licence {licence}", package.name, package.version));
        }
    }
    duplicates(workspace, findings);
}

fn duplicates(workspace: &Workspace, findings: &mut Findings) {
    let mut names: Vec<_> = workspace
        .metadata
        .packages
        .iter()
        .map(|package| (package.name.as_str(), package.version.to_string()))
        .collect();
    names.sort();
    for group in names.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
        let versions: Vec<&str> = group.iter().map(|(_, version)| version.as_str()).collect();
        findings.note(format!("{} in several versions: {}", group[0].0, versions.join(", ")));
    }
}

/// Whether an SPDX expression can be met with allowed licences only.
pub(crate) fn acceptable(expression: &str) -> bool {
    // The old form of cargo, `MIT/Apache-2.0`, means a choice.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = choice(&tokens, &mut at);
    result && at == tokens.len()
}

fn choice(tokens: &[&str], at: &mut usize) -> bool {
    let mut any = conjunction(tokens, at);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        // Not short-circuited: the rest must be read too.
        any |= conjunction(tokens, at);
    }
    any
}

fn conjunction(tokens: &[&str], at: &mut usize) -> bool {
    let mut all = term(tokens, at);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        all &= term(tokens, at);
    }
    all
}

fn term(tokens: &[&str], at: &mut usize) -> bool {
    let Some(&token) = tokens.get(*at) else { return false };
    *at += 1;
    if token == "(" {
        let inner = choice(tokens, at);
        let closed = tokens.get(*at) == Some(&")");
        *at += 1;
        return inner && closed;
    }
    if tokens.get(*at) == Some(&"WITH") {
        let exception = tokens.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        let whole = format!("{token} WITH {exception}");
        return ALLOWED.contains(&whole.as_str());
    }
    ALLOWED.contains(&token)
}
