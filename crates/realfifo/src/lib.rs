#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! One list of changes in total order, as client-go's `RealFIFO`, and a bound that makes the producer wait.
//! The rejected way, a map of keys to merged changes (client-go's older `DeltaFIFO`), needs no bound but loses the order
//! between objects, and with it the meaning of a resource version: a consumer could never say how far it has come.

mod delta;
mod known;
mod queue;

mod state;

mod handle;
mod metrics;
mod sync;
mod synced;

#[cfg(test)]
#[cfg(kubestrata_loom)]
mod loom_tests;
#[cfg(test)]
#[cfg(not(kubestrata_loom))]
mod tests;

pub use self::delta::{Batch, Deleted, Delta, Tombstone};
pub use self::handle::{Closed, Config, Consumer, Processing, Producer, channel, over};
pub use self::known::KnownObjects;
pub use self::metrics::Metrics;
pub use self::queue::{Load, Popped, Queue};
pub use self::state::{Limits, RealFifo};
pub use self::synced::Synced;
