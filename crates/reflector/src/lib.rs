#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! A reflector is a stream, polled by whoever consumes it: it has no task and no buffer, so a slow consumer stops the
//! reading of the watch, and dropping it closes the connection. Errors are no items of the stream, as there is nothing
//! that a consumer of updates could do about them; they are told by status, hook and metrics.
//! The rejected way, a stream of `Result` that the consumer restarts, puts the rules of recovery into every consumer.

mod config;

mod backoff;
mod failure;
mod gather;
mod state;

mod driver;
mod fallbacks;
mod metrics;
mod status;

#[cfg(test)]
mod tests;

pub use self::config::{Backoff, Config, Consistency, FailureHook};
pub use self::driver::Reflector;
pub use self::failure::{During, Failure, Recovery, ReflectorError, ShardRefused};
pub use self::fallbacks::Fallbacks;
pub use self::metrics::Metrics;
pub use self::status::{
    Checked, Difference, Failing, LastCheck, LastFailure, Phase, ReflectorStatus, StatusHandle,
};
