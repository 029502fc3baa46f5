#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! One list of changes in total order, as client-go's `RealFIFO`, and a bound that makes the producer wait.
//! The rejected way, a map of keys to lists of changes (client-go's older `DeltaFIFO`), loses the order between objects,
//! and with it the meaning of a resource version: a consumer could never say how far it has come.
//! It is here all the same, as [`DeltaFifo`] behind the same [`Queue`], to be compared with and to be fallen back to.

mod delta;
mod known;
mod queue;

mod real_fifo;

mod delta_fifo;

mod in_process;
mod scale;

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
pub use self::delta_fifo::{DeltaFifo, Merging};
pub use self::handle::{Closed, Config, Consumer, Processing, Producer, channel, over};
pub use self::known::KnownObjects;
pub use self::metrics::Metrics;
pub use self::queue::{Load, Popped, Queue};
pub use self::real_fifo::RealFifo;
pub use self::scale::Limits;
pub use self::synced::Synced;
