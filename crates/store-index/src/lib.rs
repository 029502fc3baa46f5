#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! Objects lie in chunks that are shared until written to, and indexes hold slot numbers.
//! A reader takes the lock only to find slot numbers and to share the chunks, then filters and clones without it: no
//! reader holds up the writer for longer than the smallest index set of its query takes (compare k/k#130767), and what it
//! reads is the state of one instant.
//! The rejected ways: a map under one lock, which a list of all objects holds for its whole length; and a persistent map,
//! which pays for every reader's comfort with every write and a third of the memory.
//!
//! Functions of users (index functions, `Weigh`, `View`) never run while readers are locked out. Of an object only its
//! name and namespace are asked for under the lock: the store holds no keys beside its objects.

mod change;
mod query;
mod version;

mod reader;
mod writer;

mod index;
mod usage;

mod state;
mod table;

mod sync;
mod waiters;

#[cfg(test)]
#[cfg(kubestrata_loom)]
mod loom_tests;
#[cfg(test)]
#[cfg(not(kubestrata_loom))]
mod tests;

use kubestrata_api_types::{Object, View, Weigh};

pub use self::change::{Batch, Change, Replaced};
pub use self::index::{Index, IndexFailure, IndexProblem, NameTaken};
pub use self::query::{Query, QueryError, Selected};
pub use self::reader::Reader;
pub use self::table::Frozen;
pub use self::usage::{IndexUsage, Usage};
pub use self::version::{StoreVersion, WaitError};
pub use self::waiters::AtLeast;
pub use self::writer::{Writer, store};

/// What can be stored. Implemented for everything that fits; a clone should be cheap, as reads give clones.
pub trait Stored: Object + View + Weigh + Clone {}

impl<T: Object + View + Weigh + Clone> Stored for T {}
