#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! Every handler has a bounded backlog and a task of its own; at its bound a slow handler holds up the informer, and with
//! it the stream from the server, or has changes of one object merged, as it chooses.
//! The rejected way, client-go's buffer that doubles for ever, turns one stuck handler into a process without memory.
//! A handler that comes late is not sent the stored objects through its backlog: it reads them from a frozen state of the
//! store, taken between two batches, so that none is lost and none told twice.

mod informer;

mod config;
mod handler;
mod registration;

mod error;
mod status;

mod factory;
mod group;
mod source;

mod sink;

mod absence;
mod apply;
mod backlog;
mod feed;
mod listener;
mod members;
mod metrics;
mod notice;
mod pump;
mod waiting;

mod sync;

#[cfg(test)]
#[cfg(kubestrata_loom)]
mod loom_tests;
#[cfg(test)]
#[cfg(not(kubestrata_loom))]
mod tests;

pub use kubestrata_realfifo::{Limits as QueueLimits, Merging};
pub use kubestrata_reflector as reflector;
pub use kubestrata_store_index as store;

pub use self::config::{Config, Fifo, HandlerConfig, Overflow, ProblemHook, Transform, WhenGone};
pub use self::error::{Ended, Problem, Stopped, SyncError};
pub use self::factory::{InformerFactory, Selection};
pub use self::group::{InformerGroup, Registrations};
pub use self::handler::{Filtered, Handler};
pub use self::informer::Informer;
pub use self::registration::Registration;
pub use self::sink::{Applied, Item, Objects, Replaced, Store, StoreReader};
pub use self::status::{HandlerStatus, InformerStatus};
