//! Breaks the pipeline on purpose, in a copy of the workspace, and lets the simulation look for each mistake.

pub(crate) mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use self::table::{MUTANTS, Mutant};
use crate::run::{self, Failure, cargo};
use crate::workspace::{Workspace, root};

/// How the mutants are run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only mutants with this in their name.
    filter: Option<String>,
    /// Seeds until a mutant counts as not found.
    #[arg(long, default_value_t = 2000)]
    seeds: u64,
    /// Where to build. By default in the copy, which is removed afterwards; a folder of its own saves the next build.
    #[arg(long)]
    target_dir: Option<PathBuf>,
}

/// Folders that are not copied.
const SKIPPED: &[&str] = &["target", ".git", "node_modules"];
const BUILD: Duration = Duration::from_secs(30 * 60);
/// One part of the seeds. A mutant can make the pipeline turn in circles, without time passing.
const SEARCH: Duration = Duration::from_secs(5 * 60);
/// Seeds are run in parts that end at these, so that what is found early costs little.
const PARTS: [u64; 4] = [10, 50, 200, 800];

/// Runs the mutants and prints what found them.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    if let Some(problem) = table::problems().into_iter().next() {
        return Err(Failure::new(problem));
    }
    let chosen: Vec<&Mutant> = MUTANTS
        .iter()
        .filter(|mutant| options.filter.as_ref().is_none_or(|part| mutant.name.contains(part)))
        .collect();
    let copy = Duplicate::make()?;
    let target = options.target_dir.clone().unwrap_or_else(|| copy.0.join("target"));
    let start = Instant::now();
    if let Found::At(what) = copy.search(&target, PARTS[1]).await? {
        return Err(Failure::new(format!("the code without a mutant fails: {what}")));
    }
    println!("{:>7.1} s  no mutant, and nothing found", start.elapsed().as_secs_f64());
    let mut survivors = Vec::new();
    for mutant in chosen {
        let start = Instant::now();
        let path = copy.0.join(mutant.file);
        let right = std::fs::read_to_string(&path)?;
        std::fs::write(&path, mutant.apply(&right).map_err(Failure::new)?)?;
        let found = copy.search(&target, options.seeds).await;
        std::fs::write(&path, right)?;
        let seconds = start.elapsed().as_secs_f64();
        match found? {
            Found::At(what) => println!("{seconds:>7.1} s  {}: {what}", mutant.name),
            Found::Never => {
                println!("{seconds:>7.1} s  {}: NOT FOUND", mutant.name);
                survivors.push(mutant.name);
            }
        }
    }
    match survivors.as_slice() {
        [] => Ok(()),
        names => Err(Failure::new(format!("not found: {}", names.join("; ")))),
    }
}

/// Whether a mistake was found.
enum Found {
    /// This shows it.
    At(String),
    Never,
}

/// A copy of the workspace, removed when it is dropped.
struct Duplicate(PathBuf);

impl Duplicate {
    fn make() -> Result<Self, Failure> {
        let place = std::env::temp_dir().join(format!("kubestrata-mutants-{}", std::process::id()));
        let copy = Self(place);
        copy_folder(root(), &copy.0, &Workspace::load()?.target())?;
        Ok(copy)
    }

    /// Builds the simulation and runs seeds until one fails.
    async fn search(&self, target: &Path, seeds: u64) -> Result<Found, Failure> {
        let mut from = 0;
        for to in PARTS.into_iter().chain([u64::MAX]).map(|to| to.min(seeds)) {
            if from >= to {
                break;
            }
            if let Some(what) = self.part(target, from, to).await? {
                return Ok(Found::At(what));
            }
            from = to;
        }
        Ok(Found::Never)
    }

    /// Runs the seeds `from..to`; tells what failed, if anything did.
    async fn part(&self, target: &Path, from: u64, to: u64) -> Result<Option<String>, Failure> {
        let simulation = ["--quiet", "--package", "simulation", "--test", "simulation"];
        if from == 0 {
            let mut build = self.cargo(target);
            build.args(["test", "--no-run"]).args(simulation);
            run::bounded(build, BUILD).await?;
        }
        let mut command = self.cargo(target);
        command.arg("test").args(simulation).env("KUBESTRATA_SEEDS", format!("{from}..{to}"));
        command.kill_on_drop(true);
        let Ok(output) = timeout(SEARCH, command.output()).await else {
            return Ok(Some(format!("one of {from}..{to} does not end")));
        };
        let output = output?;
        if output.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with("seed "));
        let line: String = line.unwrap_or("failed without a seed").chars().take(160).collect();
        Ok(Some(line))
    }

    fn cargo(&self, target: &Path) -> Command {
        let mut command = cargo(&[]);
        command.current_dir(&self.0).env("CARGO_TARGET_DIR", target);
        command
    }
}

impl Drop for Duplicate {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn copy_folder(from: &Path, to: &Path, target: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if SKIPPED.iter().any(|skipped| name == *skipped) || path == target {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&path, &to.join(name), target)?;
        } else if kind.is_file() {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}
