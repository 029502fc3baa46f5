//! The text of all files: no paths of one machine, nothing unfinished, and sizes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Findings;
use super::tests_named::Functions;
use crate::run::Failure;
use crate::workspace::{Workspace, root};

/// Lines of a file: beyond the first it is worth a note, beyond the second a reason.
const LINES_TYPICAL: usize = 400;
const LINES_MAX: usize = 800;
/// Lines of a function.
const FUNCTION_MAX: usize = 70;

/// Larger files by path, each with the reason.
const LARGE: &[(&str, &str)] = &[];

/// Written in two halves, so that this file does not find itself.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp", "/w/")];
/// The home of nobody, in examples and tests.
const NOBODY: &str = concat!("/ho", "me/me/");
const UNFINISHED: &[&str] = &[concat!("to", "do!("), concat!("unimple", "mented!(")];

/// Folders without text of ours.
const SKIPPED: &[&str] = &["target", ".git", "node_modules"];
/// What counts as text.
const TEXT: &[&str] = &["rs", "toml", "md", "go", "yaml", "yml", "sh", "proto"];

/// Reads every text file of the project once.
pub(crate) fn check(workspace: &Workspace, findings: &mut Findings) -> Result<(), Failure> {
    let mut files = Vec::new();
    let target = workspace.target();
    collect(root(), &target, &mut files)?;
    files.sort();
    let mut cited = BTreeSet::new();
    let mut present = Functions::default();
    let (mut long, mut functions) = (0, 0);
    for path in &files {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        for problem in problems(&text) {
            findings.error(format!("{name}:{problem}"));
        }
        if path.extension().is_some_and(|extension| extension == "rs") {
            if path.file_name().is_some_and(|file| file == "mod.rs") {
                findings.error(format!("{name}: write foo.rs beside foo/ instead"));
            }
            let lines = text.lines().count();
            long += usize::from(lines > LINES_TYPICAL);
            if lines > LINES_MAX && !LARGE.iter().any(|(path, _)| *path == name) {
                findings.note(format!("{name}: {lines} lines"));
            }
            for (function, lines) in long_functions(&text) {
                functions += 1;
                findings.note(format!("{name}: fn {function} has {lines} lines"));
            }
            keps(&text, &mut cited);
            present.note(&name, &text);
        }
    }
    findings.note(format!(
        "{} files; {long} Rust files beyond {LINES_TYPICAL} lines, {functions} functions beyond {FUNCTION_MAX}",
        files.len()
    ));
    requirements(&cited, findings);
    present.check(findings);
    Ok(())
}

fn collect(folder: &Path, target: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if SKIPPED.iter().any(|skipped| name == *skipped) || path == target {
            continue;
        }
        if kind.is_dir() {
            collect(&path, target, files)?;
        } else if kind.is_file() {
            let extension = path.extension().and_then(|extension| extension.to_str());
            // Scripts have no extension and sit in folders that hold little else.
            if extension.is_none_or(|extension| TEXT.contains(&extension)) {
                files.push(path);
            }
        }
    }
    Ok(())
}

/// `LINE: what is wrong`, for each line that must not be.
pub(crate) fn problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for path in MACHINE_PATHS {
            let starts = line.match_indices(path).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                // `network/work/` and URLs are no paths of a machine.
                !line[at..].starts_with(NOBODY)
                    && before
                        .is_none_or(|before| !before.is_alphanumeric() && !"_-./}".contains(before))
            });
            if starts {
                problems.push(format!("{}: a path of one machine", number + 1));
            }
        }
        if UNFINISHED.iter().any(|word| line.contains(word)) {
            problems.push(format!("{}: unfinished", number + 1));
        }
    }
    problems
}

/// Functions beyond the limit. Relies on rustfmt: a function ends at the brace in its own column.
pub(crate) fn long_functions(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, String, usize)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if let Some(name) = function_name(line.trim_start()) {
            open.push((indent, name, number));
        } else if line.trim() == "}"
            && let Some(at) = open.iter().rposition(|(column, ..)| *column == indent)
        {
            let (_, name, start) = open.swap_remove(at);
            open.truncate(at);
            let lines = number - start + 1;
            if lines > FUNCTION_MAX {
                found.push((name, lines));
            }
        }
    }
    found
}

fn function_name(line: &str) -> Option<String> {
    // A function on one line, or a declaration, opens nothing.
    if line.ends_with('}') || line.ends_with(';') {
        return None;
    }
    let mut rest = line;
    for word in ["pub(crate) ", "pub(super) ", "pub ", "const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    Some(name.split(['(', '<']).next().unwrap_or(name).to_owned())
}

fn keps(text: &str, cited: &mut BTreeSet<String>) {
    for (at, _) in text.match_indices("KEP-") {
        let digits: String = text[at + 4..].chars().take_while(char::is_ascii_digit).collect();
        if !digits.is_empty() {
            cited.insert(format!("KEP-{digits}"));
        }
    }
}

/// The enhancement proposals that the code cites, beside those that the list of requirements explains.
fn requirements(cited: &BTreeSet<String>, findings: &mut Findings) {
    let Ok(text) = std::fs::read_to_string(root().join("docs/requirements.md")) else { return };
    let mut listed = BTreeSet::new();
    keps(&text, &mut listed);
    for kep in cited.difference(&listed) {
        findings.note(format!("{kep} is cited in the code and missing from docs/requirements.md"));
    }
    for kep in listed.difference(cited) {
        findings.note(format!("{kep} is in docs/requirements.md and cited nowhere"));
    }
}
