//! What a user builds: two small programs of ten kinds, one with this project's facade and one with kube, each cold.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::table::Section;
use crate::run::{self, Failure, cargo};
use crate::workspace::{Workspace, root};

/// A cold, optimised build on a slow machine.
const BUILD: Duration = Duration::from_secs(40 * 60);

/// Builds both programs, each in an empty folder, and shows time, size and crates.
pub(super) async fn run() -> Result<(), Failure> {
    let folder = Workspace::load()?.target().join("footprint");
    let mut section = Section::new(
        "ten kinds, cold build".to_owned(),
        &["check_s", "release_s", "binary_bytes", "crates"],
    );
    for name in ["kubestrata", "kube"] {
        let target = folder.join(name);
        if target.exists() {
            std::fs::remove_dir_all(&target)?;
        }
        section.add(name, measure(name, &target).await?);
    }
    section.print();
    Ok(())
}

async fn measure(name: &str, target: &Path) -> Result<Map<String, Value>, Failure> {
    let manifest = root().join("crates/bench/footprint").join(name).join("Cargo.toml");
    let command = |arguments: &[&str]| {
        let mut command = cargo(arguments);
        command.arg("--manifest-path").arg(&manifest).env("CARGO_TARGET_DIR", target);
        command
    };
    // Downloads are no part of the build.
    run::bounded(command(&["fetch", "--quiet"]), BUILD).await?;
    let start = Instant::now();
    run::bounded(command(&["check", "--quiet"]), BUILD).await?;
    let check = start.elapsed();
    let start = Instant::now();
    run::bounded(command(&["build", "--quiet", "--release"]), BUILD).await?;
    let release = start.elapsed();
    let binary = target.join("release").join(format!("footprint-{name}"));
    let tree = ["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let tree = run::output(command(&tree), BUILD).await?;
    // A crate that stands in the tree twice is compiled once.
    let crates: std::collections::BTreeSet<&str> =
        tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let mut fields = Map::new();
    fields.insert("check_s".to_owned(), check.as_secs_f64().into());
    fields.insert("release_s".to_owned(), release.as_secs_f64().into());
    fields.insert("binary_bytes".to_owned(), std::fs::metadata(binary)?.len().into());
    fields.insert("crates".to_owned(), crates.len().into());
    Ok(fields)
}
