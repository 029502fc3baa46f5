#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! This crate is re-exports and a prelude, and no mechanism: every layer is a crate of its own, and a user of the facade
//! meets the same names as one who takes a layer alone. The rejected way, a facade with types of its own, has to be
//! learned twice and hides what is below.

pub use kubestrata_api_types as api_types;
pub use kubestrata_apireader as apireader;
pub use kubestrata_cache_client as cache_client;
pub use kubestrata_codec as codec;
pub use kubestrata_informer as informer;
pub use kubestrata_manager as manager;
pub use kubestrata_realfifo as realfifo;
pub use kubestrata_reflector as reflector;
pub use kubestrata_store_index as store_index;
pub use kubestrata_telemetry as telemetry;
pub use kubestrata_transport as transport;
pub use kubestrata_workqueue as workqueue;

/// `#[derive(Object)]` for structs of your own; the trait of this name is in [`prelude`] and in [`api_types`].
pub use kubestrata_derive::FacadeObject as Object;

/// `#[derive(Kind)]` for structs of your own; the trait of this name is in [`prelude`] and in [`api_types`].
pub use kubestrata_derive::FacadeKind as Kind;

/// What a controller needs: `use kubestrata_controller::prelude::*`.
pub mod prelude {
    pub use kubestrata_api_types::{
        BoxError, DeleteOptions, Kind, LabelSelector, ListOptions, Object, ObjectKey, ObjectMeta,
        OwnerReference, PatchKind, ResourceType, ResourceVersion, Scope, Status,
    };
    pub use kubestrata_apireader::{ApiReader, Consistency, Query};
    pub use kubestrata_codec::{Client as _, ClientError, Dynamic, Encoded, Tracked};
    // Traits and derives of one name live in different namespaces of the language: one import brings both.
    pub use kubestrata_derive::{FacadeKind as Kind, FacadeObject as Object};
    pub use kubestrata_manager::{
        Action, CacheOptions, Client, Context, Controller, Manager, Reconciler, TerminalError,
        Trigger, Watch, async_trait, predicate,
    };
    pub use kubestrata_transport::{Config, Transport};
}
