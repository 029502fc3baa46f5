#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! A subscriber is an [`Observer`] that the store calls in commit order, not a channel that it reads.
//! So the memory store tells its observers within the commit itself, and a cache that observes it is never behind:
//! a consistent read needs no wait. The rejected way, a queue for each subscriber, needs a task for each resource,
//! a bound, a rule for what happens at the bound, and makes every consistent read wait for progress.

mod memory;
mod storage;

#[cfg(test)]
mod tests;

pub use self::memory::{Config, Memory};
pub use self::storage::{
    Change, ChangeKind, Entry, Expected, Make, Observer, Page, Range, ReadError, Revision, Storage,
    Subscribed, Subscription, Value, WriteError,
};
