#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! Only the watch changes a store; a write never does. A read after a write may be stale, and the way out is to wait for
//! the write's version on the very store that answers, where bookmarks count. A deletion needs no wait at all: an object
//! with the deleted uid will never be again, so it is hidden.
//! The rejected way, controller-runtime's record of all events of a kind, lets one namespace's event end another's wait,
//! and hangs on objects that the cache does not select.

mod service;

mod cache;
mod config;
mod error;
mod lister;
mod typed;

mod read;
mod route;
mod write;
mod writes;

#[cfg(test)]
mod tests;

pub use self::cache::Cache;
pub use self::config::{Config, OnMissing};
pub use self::error::CacheError;
pub use self::lister::{Listed, Lister};
pub use self::service::{CacheClient, CacheFuture, CacheLayer};
pub use self::typed::{Typed, TypedHandler};
