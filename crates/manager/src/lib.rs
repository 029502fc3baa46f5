#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! A reconciler is told a key, and reads the state from a cache that is synced before the first reconcile. The rejected
//! way, kube-rs's, to hand it the object that was read from the store when its turn came, cannot tell it of a deletion,
//! and makes the one object that did not change since the read look like all there is to know.
//!
//! Watches, predicates and mappers see objects as `dyn` [`Inspect`]: their heads and fields, never a Rust type. So they are
//! compiled once, and work for kinds that are kept as bytes, decoded, or as metadata.

mod manager;

mod controller;
mod reconciler;

mod action;
mod client;
mod context;
mod trigger;

mod watch;

pub mod mapper;
pub mod predicate;

mod inspect;

mod cache;

mod error;

mod enqueue;
mod metrics;
mod own_writes;
mod runner;
mod worker;

#[cfg(test)]
mod tests;

use kubestrata_api_types::{ApiRequest, ApiResponse, BoxError};
use kubestrata_codec::Encoded;

pub use async_trait::async_trait;
pub use kubestrata_cache_client::{CacheError, Listed, Lister};

pub use self::action::{Action, TerminalError};
pub use self::cache::{Cache, CacheOptions, owner_index_name};
pub use self::client::Client;
pub use self::context::Context;
pub use self::controller::{Controller, ControllerBuilder};
pub use self::error::{ReconcilePanic, ReconcileTimeout, RunError, SetupError};
pub use self::inspect::Inspect;
pub use self::manager::{Manager, ManagerBuilder};
pub use self::reconciler::{FromFn, Reconciler, from_fn};
pub use self::trigger::Trigger;
pub use self::watch::{LOW_PRIORITY, Watch};

/// The service of a manager, of any stack of layers: named, so that reconcilers have no type parameter for it.
pub type ApiService = tower::util::BoxCloneSyncService<ApiRequest, ApiResponse<Encoded>, BoxError>;
