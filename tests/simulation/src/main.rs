//! The whole pipeline on virtual time: an embedded server, a network that fails, transports, informers and handlers, in
//! one thread, with all randomness from a seed.
//!
//! What is checked, whatever happens:
//!
//! - at every instant a store holds exactly what the server held at the store's version;
//! - what a handler is told of an object is that object's history, up to gaps: every state is one that the object had,
//!   in that order, and another UID is told only after the end of the former;
//! - who says that it is synced has told its handlers of all that was there;
//! - a handler that was removed is told of nothing more;
//! - when the faults end, every store and every handler is as the server within bounded time.
//!
//! A failure names its seed; `KUBESTRATA_SEEDS=17..18` runs that one again and prints its log.

mod client;
mod log;
mod network;
mod recorder;
mod run;
mod seeds;
mod sim;
mod truth;
mod writer;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, seeds::trials()).exit_code()
}
