#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! [`Transport`] is one concrete type, and what lies below it is boxed once: connections made by this crate, or any
//! service of HTTP. So whoever is above, from a reflector to a manager, has no type parameter for how the server is
//! reached, and a test that puts a server into its own process runs the same layers as a program in a cluster.
//! The rejected way, a stack of generic layers that ends in the type of the connector, shows its whole type in every
//! signature above it and is compiled once more for each way to reach a server.

mod transport;

mod answer;
mod request;

mod blocking;
mod errand;
mod tasks;

mod limit;
mod observe;
mod pool;
mod retry;
mod wire;

mod auth;
mod config;
mod error;
mod kubeconfig;
mod tls;

#[cfg(test)]
mod tests;

pub use self::auth::{Auth, AuthError, AuthLayer, AuthService, Impersonation};
pub use self::config::{
    Compression, Config, ConfigError, InCluster, InClusterError, Limits, NoProxy, Observe,
    Protocol, Proxy, ProxyVariableError, RateLimit, Resolver, Retry, ServerUrlError, Timeouts,
    WarningHook,
};
pub use self::error::{ConnectError, Phase, Shared, TransportError};
pub use self::kubeconfig::{EntryName, Kubeconfig, KubeconfigError, Place};
pub use self::limit::{RateLimitLayer, RateLimitService, RateLimited};
pub use self::observe::{ObserveLayer, ObserveService};
pub use self::pool::Pool;
pub use self::retry::{MayBreak, RetryLayer, RetryService};
pub use self::tls::{
    CertificateProblem, CertificateProblemKind, ClientCertificateRefusal, Identity, Pem, Tls,
    TlsError,
};
pub use self::transport::{Connections, Transport};
pub use self::wire::{RequestBody, ResponseBody};
