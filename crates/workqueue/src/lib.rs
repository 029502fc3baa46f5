#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! One structure knows every key and its place: ready, waiting, being processed, or to be processed again.
//! The rejected way, client-go's, is a queue inside a delaying queue inside a rate-limiting queue: a key can then be in
//! two of them, so that a direct add leaves the delayed one behind and the key runs twice.
//!
//! The structure is [`State`], without clock and lock; [`WorkQueue`] is the asynchronous handle around it.

mod limiter;
mod state;

mod handle;
mod metrics;
mod sync;
mod waiters;

pub use self::handle::{Closed, Config, Item, TryAddError, WorkQueue};
pub use self::limiter::{ExponentialBackoff, FastSlow, Key, MaxOf, RateLimiter, TokenBucket};
pub use self::state::{AddOptions, Ageing, Popped, Refused, State};
