#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! A scenario is text, and what happened is text: both stand side by side in the test, and an inline expectation compares
//! them. The rejected way, mocks with expectations per call, hides the sequence, which is what these tests are about.

mod thing;

mod script;
mod scripted;

mod model;
mod world;

mod fault;

#[cfg(test)]
mod tests;

pub use self::fault::{Fault, FaultProxy, Moment, Newcomers};
pub use self::model::{Faults, Model};
pub use self::script::{Reply, ScriptError, Step, WatchStep};
pub use self::scripted::{Broken, Scripted, describe};
pub use self::thing::{THINGS, Thing, ThingError, show_event, show_update, things};
pub use self::world::FakeWorld;
