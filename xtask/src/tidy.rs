//! What neither rustc nor clippy checks, as code.

pub(crate) mod layers;
mod licences;
mod manifests;
mod sources;
mod tests_named;

#[cfg(test)]
mod tests;

use crate::mutants;
use crate::run::Failure;
use crate::workspace::Workspace;

/// What the checks found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Broken rules: these fail.
    errors: Vec<String>,
    /// Things to look at: these do not.
    notes: Vec<String>,
}

impl Findings {
    fn error(&mut self, text: impl Into<String>) {
        self.errors.push(text.into());
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

/// Runs all checks and prints what they find.
pub(crate) fn run() -> Result<(), Failure> {
    let findings = check()?;
    for note in &findings.notes {
        println!("note: {note}");
    }
    for error in &findings.errors {
        eprintln!("error: {error}");
    }
    match findings.errors.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("tidy: {count} broken rules"))),
    }
}

fn check() -> Result<Findings, Failure> {
    let workspace = Workspace::load()?;
    let mut findings = Findings::default();
    layers::check(&workspace, &mut findings);
    manifests::check(&workspace, &mut findings)?;
    licences::check(&workspace, &mut findings);
    sources::check(&workspace, &mut findings)?;
    // A mutant whose text has changed would go unnoticed until somebody runs them all.
    mutants::table::problems().into_iter().for_each(|problem| findings.error(problem));
    Ok(findings)
}
