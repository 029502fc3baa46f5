//! The table of faults of the end-to-end suite, printed with its times.

use std::time::Duration;

use crate::run::{self, Failure, cargo};

/// With the default deadlines a case takes up to five minutes, and they do not all run at a time.
const RUN: Duration = Duration::from_secs(40 * 60);

/// How to run it.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// With the deadlines that users have, which takes some minutes, instead of the twentieth part of each.
    #[arg(long)]
    default_deadlines: bool,
}

/// Runs every case, and prints all outcomes.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let mut command = cargo(&["test"]);
    command.args(run::WITH_FEATURES).args(["--test", "it", "--", "--exact", "faults::table"]);
    command.env("KUBESTRATA_FAULTS_PRINT", "1");
    if options.default_deadlines {
        command.env("KUBESTRATA_FAULTS_SCALE", "1");
    }
    run::bounded(command, RUN).await
}
