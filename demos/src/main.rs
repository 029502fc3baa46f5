//! The demos of kubestrata. `--list` names them.
//!
//! A demo is a module with `Options` for its arguments and a `run` that takes them; to add one, add a variant to [`Demo`].

mod churn;
mod cleanup;
mod counted;
mod gone;
mod job;
mod line;
mod outcome;
mod plot;
mod progress;
mod realfifo;
mod replicaset;
mod signals;
mod target;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::outcome::Outcome;
use crate::progress::say;

/// Programs that show kubestrata at work.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask demo", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    demo: Option<Demo>,
    /// Name the demos.
    #[arg(long)]
    list: bool,
    /// Without a name the main job runs.
    #[command(flatten)]
    main: job::Options,
}

/// The table of demos: the name, what `--list` says of it, its arguments.
#[derive(Debug, Subcommand)]
enum Demo {
    /// A ReplicaSet controller brings up, heals and scales a thousand pods.
    Replicaset(job::Options),
    /// A watch is told that its version is gone (410), and the informer recovers: watched live.
    Gone(gone::Options),
    /// A high rate of changes: events, lag, queues and memory over time, as a plot.
    Churn(churn::Options),
    /// Quick changes through the ordered queue and through its predecessor, side by side.
    Realfifo(realfifo::Options),
}

impl Demo {
    async fn run(self) -> Result<Outcome, kubestrata_controller::prelude::BoxError> {
        match self {
            Self::Replicaset(options) => job::run(&options).await,
            Self::Gone(options) => gone::run(&options).await,
            Self::Churn(options) => churn::run(&options).await,
            Self::Realfifo(options) => realfifo::run(&options).await,
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { demo, list, main } = Arguments::parse();
    if list {
        let table = Arguments::command();
        for demo in table.get_subcommands() {
            let what = demo.get_about().map(ToString::to_string).unwrap_or_default();
            say(&format!("{:<12} {what}", demo.get_name()));
        }
        return all_said(ExitCode::SUCCESS);
    }
    let code = match demo.unwrap_or(Demo::Replicaset(main)).run().await {
        Ok(Outcome::Exact) => ExitCode::SUCCESS,
        Ok(Outcome::Interrupted) => {
            eprintln!("interrupted; all that was made is deleted");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  caused by: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    };
    all_said(code)
}

/// The code, or a failure if not all that was said got through: results on a full disk are none.
fn all_said(code: ExitCode) -> ExitCode {
    let Some(error) = progress::lost() else { return code };
    eprintln!("error: standard output: {error}");
    ExitCode::FAILURE
}
