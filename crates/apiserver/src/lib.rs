#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! Each version of an object is encoded once, when it is written, and everything that goes out is put together from
//! those shared bytes: a list or a streaming list of any size is a walk over a snapshot that makes one chunk at a time.
//! The rejected way, typed objects that are encoded for each request, needs memory for each request in proportion to
//! the answer, a Rust type for each kind, and a second way for custom resources.

mod answer;
mod body;
mod config;
mod failure;
mod media;
mod options;
mod out;
mod query;
mod route;

mod catalog;
mod crd;
mod defaults;
mod namespaces;
mod record;
mod render;
mod selectable;

mod discovery;
mod dispatch;
mod read;
mod server;
mod write;

#[cfg(feature = "serve")]
mod serve;

#[cfg(test)]
mod tests;

pub use self::body::Body;
pub use self::config::{Config, Gates};
#[cfg(feature = "serve")]
pub use self::serve::{Listen, ListenError, Serving, TlsFailure, WriteError};
pub use self::server::{Backup, Builder, Server};
