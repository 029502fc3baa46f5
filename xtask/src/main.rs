#![doc = include_str!("../README.md")]

mod bench;
mod ci;
mod codegen;
mod faults;
mod mutants;
mod real;
mod run;
mod tidy;
mod workspace;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::run::{Failure, cargo};
use crate::workspace::Workspace;

/// The tasks of the kubestrata workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Runs all tests, or with --real the end-to-end suite against a real kube-apiserver.
    Test {
        /// Build and start kube-apiserver and etcd on loopback (needs Go, openssl and curl), and test against them.
        #[arg(long)]
        real: bool,
        /// Passed on to the test binary: a filter, or flags of the test harness.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Runs a demo; `demo --list` names them.
    Demo {
        /// Build with optimisation.
        #[arg(long)]
        release: bool,
        /// Passed on to the demo.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Runs the benchmarks against a real kube-apiserver, or with --smoke a tiny size against the embedded server.
    Bench(bench::Options),
    /// Writes the tables of the crate codec from the files in schema/.
    Codegen,
    /// Checks what rustc and clippy do not: arrows between crates, manifests, licences, paths, sizes.
    Tidy,
    /// Breaks the pipeline in a copy of the workspace, in one way after the other, until the simulation finds each mistake.
    Mutants(mutants::Options),
    /// Puts a client through faults of the network, and prints what it saw and how long it took to recover.
    Faults(faults::Options),
    /// Everything that must pass before a change lands, with the seconds that each step took.
    Ci,
    /// Starts a real kube-apiserver and etcd, prints the path of a kubeconfig, and stops them on Ctrl-C.
    Real,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Test { real: false, rest } => test(&rest).await,
        Task::Test { real: true, rest } => real::test(&rest).await,
        Task::Demo { release, rest } => demo(release, &rest).await,
        Task::Bench(options) => bench::run(&options).await,
        Task::Codegen => codegen::run(),
        Task::Tidy => tidy::run(),
        Task::Mutants(options) => mutants::run(&options).await,
        Task::Faults(options) => faults::run(&options).await,
        Task::Ci => ci::run().await,
        Task::Real => real::hold().await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cargo xtask: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

/// `cargo test` of the whole workspace. Needs nothing but Rust.
async fn test(rest: &[String]) -> Result<(), Failure> {
    let mut command = cargo(&["test"]);
    command.args(run::WITH_FEATURES).arg("--").args(rest);
    run::bounded(command, Duration::from_secs(45 * 60)).await
}

/// A demo owns the terminal and cleans up after itself on Ctrl-C, so it stays in our process group.
async fn demo(release: bool, rest: &[String]) -> Result<(), Failure> {
    let workspace = Workspace::load()?;
    if !workspace.has_member("demos") {
        return Err(Failure::new("there is no package `demos` in this workspace"));
    }
    let mut command = cargo(&["run", "--quiet", "--package", "demos"]);
    // Paths among the arguments are the user's, so they count from where the user is.
    command.current_dir(std::env::current_dir()?);
    if release {
        command.arg("--release");
    }
    command.arg("--").args(rest);
    run::interactive(command).await
}
