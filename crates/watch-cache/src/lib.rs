#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! A watcher is a position in one shared ring, and reads from it at its own pace.
//! A slow watcher costs nothing until the ring's end passes its position, and then it is closed and its client
//! resumes or starts afresh. The rejected way, a queue for each watcher as in kube-apiserver's cacher, copies every event
//! to every queue, and needs queue sizes by guess, a budget for blocked queues, and a rule for dropping watchers.

mod ordered;
mod state;

mod cache;
mod wake;
mod watcher;

#[cfg(test)]
mod tests;

pub use self::cache::{NotFresh, WatchCache};
pub use self::ordered::{Iter, Ordered};
pub use self::state::{Change, Config, From, Item, Snapshot, TooOld};
pub use self::watcher::{End, Next, WatchConfig, Watcher};
