//! What every member's manifest and folder must have.

use std::path::Path;

use super::Findings;
use crate::run::Failure;
use crate::workspace::{Workspace, root};

/// Checks lints, README, licence and description of each member, and the sources of all packages.
pub(crate) fn check(workspace: &Workspace, findings: &mut Findings) -> Result<(), Failure> {
    for member in workspace.members() {
        let manifest = std::fs::read_to_string(&member.manifest_path)?;
        if !has_lints(&manifest) {
            findings
                .error(format!("{}: no [lints], neither the workspace's nor its own", member.name));
        }
        let folder = member.manifest_path.parent().map(|path| path.as_std_path()).unwrap_or(root());
        if !folder.starts_with(root().join("crates")) {
            continue;
        }
        if member.description.is_none() {
            findings.error(format!("{}: no description", member.name));
        }
        readme(&member.name, folder, findings);
    }
    for package in &workspace.metadata.packages {
        if package.source.as_ref().is_some_and(|source| !source.is_crates_io()) {
            findings
                .error(format!("{}: comes from elsewhere than cargo's own registry", package.name));
        }
    }
    Ok(())
}

/// Either all lints of the workspace, or a table of its own: a member with neither is not linted at all.
pub(crate) fn has_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim);
    let inherits =
        lines.clone().skip_while(|line| *line != "[lints]").nth(1) == Some("workspace = true");
    inherits || lines.any(|line| line == "[lints.clippy]")
}

fn readme(name: &str, folder: &Path, findings: &mut Findings) {
    if !folder.join("README.md").is_file() {
        findings.error(format!("{name}: no README.md"));
    }
    // A package of programs only has no crate page to show it on.
    let Ok(library) = std::fs::read_to_string(folder.join("src/lib.rs")) else { return };
    if !library.contains(r#"#![doc = include_str!("../README.md")]"#) {
        findings
            .error(format!("{name}: src/lib.rs does not include README.md as its documentation"));
    }
}
