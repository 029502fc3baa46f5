//! The gate: every check in order, each with a time limit, and the seconds at the end.

use std::time::Duration;

use tokio::process::Command;
use tokio::time::Instant;

use crate::run::{self, Failure, cargo};
use crate::workspace::Workspace;
use crate::{bench, real, tidy};

const MINUTE: Duration = Duration::from_secs(60);

/// Runs all steps. The first that fails ends the run; the table of seconds is printed either way.
pub(crate) async fn run() -> Result<(), Failure> {
    let mut table = Table::default();
    let result = steps(&mut table).await;
    table.print();
    result
}

async fn steps(table: &mut Table) -> Result<(), Failure> {
    let workspace = Workspace::load()?;
    table.cargo(&["fmt", "--all", "--check"], 5 * MINUTE).await?;
    table.step("tidy", async { tidy::run() }).await?;
    let clippy =
        ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    table.cargo(&clippy, 30 * MINUTE).await?;
    table.step("test", crate::test(&[])).await?;
    if workspace.has_member("it") {
        let missing = real::missing_programs();
        if missing.is_empty() {
            table.step("test --real", real::test(&[])).await?;
        } else {
            table.skip("test --real", &format!("needs {}", missing.join(", ")));
        }
    }
    table.step("loom", loom(&workspace)).await?;
    let mut doc = cargo(&["doc", "--workspace", "--all-features", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    table.command("doc", doc, 20 * MINUTE).await?;
    table.step("check each crate alone", alone(&workspace)).await?;
    let package = ["--package", "kubestrata-transport", "--lib"];
    let mut other = cargo(&["test", "--quiet", "--no-default-features", "--features", "aws-lc-rs"]);
    other.args(package);
    table.command("test with aws-lc-rs", other, 15 * MINUTE).await?;
    // Not compiled: cargo keeps what it unpacked for an earlier run in this folder with the same version, and would compile
    // that. Before a release `cargo package --workspace` belongs on a fresh clone.
    let package = ["package", "--workspace", "--quiet", "--no-verify", "--allow-dirty"];
    table.cargo(&package, 10 * MINUTE).await?;
    if workspace.has_member("kubestrata-bench") {
        table.step("bench --smoke", bench::smoke()).await?;
    }
    Ok(())
}

/// The hand-offs between threads, in every order that matters. Only the models run in this build: it has locks and atomics
/// of loom's, so it stands in a folder of its own.
async fn loom(workspace: &Workspace) -> Result<(), Failure> {
    let mut models = cargo(&["test", "--quiet", "--lib"]);
    for engine in ["realfifo", "store-index", "workqueue", "informer"] {
        models.args(["--package", &format!("kubestrata-{engine}")]);
    }
    models.env("RUSTFLAGS", "--cfg kubestrata_loom");
    models.env("CARGO_TARGET_DIR", workspace.target().join("loom"));
    run::bounded(models, 20 * MINUTE).await
}

/// Cargo unites the features of all crates that it builds together: only alone does a crate show what it forgot.
async fn alone(workspace: &Workspace) -> Result<(), Failure> {
    for member in workspace.members() {
        let check = cargo(&["check", "--quiet", "--package", member.name.as_str()]);
        run::bounded(check, 15 * MINUTE).await?;
    }
    Ok(())
}

/// What ran, how long, and how it ended.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<(String, Duration, String)>,
}

impl Table {
    async fn cargo(&mut self, arguments: &[&str], limit: Duration) -> Result<(), Failure> {
        self.command(arguments[0], cargo(arguments), limit).await
    }

    async fn command(
        &mut self,
        name: &str,
        command: Command,
        limit: Duration,
    ) -> Result<(), Failure> {
        self.step(name, run::bounded(command, limit)).await
    }

    async fn step(
        &mut self,
        name: &str,
        step: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        eprintln!("=== {name}");
        let start = Instant::now();
        let result = step.await;
        let end = if result.is_ok() { "ok" } else { "FAILED" };
        self.rows.push((name.to_owned(), start.elapsed(), end.to_owned()));
        result
    }

    fn skip(&mut self, name: &str, reason: &str) {
        self.rows.push((name.to_owned(), Duration::ZERO, format!("SKIPPED: {reason}")));
    }

    fn print(&self) {
        println!();
        for (name, time, end) in &self.rows {
            println!("{:>8.1} s  {name:<24} {end}", time.as_secs_f64());
        }
        let total: Duration = self.rows.iter().map(|(_, time, _)| *time).sum();
        println!("{:>8.1} s  in all", total.as_secs_f64());
    }
}
