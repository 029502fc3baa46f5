#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! Every handler has a bounded backlog and a task of its own; at its bound a slow handler holds up the informer, and with
//! it the stream from the server.
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
mod source;

mod apply;
mod feed;
mod listener;
mod members;
mod metrics;
mod pump;

#[cfg(test)]
mod tests;

pub use kubestrata_realfifo::Limits as QueueLimits;
pub use kubestrata_reflector as reflector;
pub use kubestrata_store_index as store;

pub use self::config::{Config, HandlerConfig, ProblemHook, Transform};
pub use self::error::{Ended, Problem, Stopped, SyncError};
pub use self::factory::{InformerFactory, Selection};
pub use self::handler::{Filtered, Handler};
pub use self::informer::Informer;
pub use self::registration::Registration;
pub use self::status::{HandlerStatus, InformerStatus};
