//! The demos of kubestrata. `--list` names them.

mod cleanup;
mod counted;
mod job;
mod progress;
mod replicaset;
mod signals;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Programs that show kubestrata at work.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask demo")]
struct Arguments {
    /// Which demo. Default: the main job.
    #[arg(default_value = "replicaset")]
    name: String,
    /// Run on this server, in a namespace of its own, instead of the embedded one.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Name the demos.
    #[arg(long)]
    list: bool,
    /// ReplicaSets to make.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(10..=500))]
    sets: u16,
    /// Pods for each of them.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(5..=100))]
    replicas: u16,
}

const DEMOS: [(&str, &str); 1] =
    [("replicaset", "a ReplicaSet controller brings up, heals and scales a thousand pods")];

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        for (name, what) in DEMOS {
            println!("{name:<12} {what}");
        }
        return ExitCode::SUCCESS;
    }
    if !DEMOS.iter().any(|(name, _)| *name == arguments.name) {
        eprintln!("there is no demo {:?}; --list names them", arguments.name);
        return ExitCode::from(2);
    }
    let size = job::Size { sets: arguments.sets, replicas: arguments.replicas };
    match job::run(arguments.kubeconfig.as_deref(), size).await {
        Ok(job::Outcome::Exact) => ExitCode::SUCCESS,
        Ok(job::Outcome::Interrupted) => {
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
    }
}
