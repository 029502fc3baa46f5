//! The end-to-end suite: every scenario, against every target, with every kind of object.
//!
//! The trials are made here, not by attributes, since they are a product: a scenario is written once.

mod bed;
mod canned;
mod kinds;
mod ports;
mod target;

mod bad_input;
mod cached;
mod crud;
mod faults;
mod follow;
mod lists;
mod many_watches;
mod real_faults;
mod real_ways;
mod round_trip;
mod swaps;
mod watches;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(crud::trials());
    trials.extend(lists::trials());
    trials.extend(watches::trials());
    trials.extend(follow::trials());
    trials.extend(cached::trials());
    trials.extend(swaps::trials());
    trials.extend(bad_input::trials());
    trials.extend(faults::trials());
    trials.extend(many_watches::trials());
    trials.extend(real_faults::trials());
    trials.extend(real_ways::trials());
    trials.extend(round_trip::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
