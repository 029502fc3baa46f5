//! What a writer does, and what it learns by it.

use kubestrata_api_types::{ObjectKey, ResourceVersion};

use crate::IndexProblem;

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "made by the writer's caller; each is all there is")]
pub enum Change<T> {
    /// The object is now this. The store's version advances to the object's.
    Upsert(T),
    /// The object is gone.
    Delete {
        /// Its key.
        key: ObjectKey,
        /// Version of the deletion, to which the store advances; unset if it is not known.
        version: ResourceVersion,
    },
    /// Nothing changed up to this version.
    Bookmark(ResourceVersion),
}

/// What a batch of changes did.
#[derive(Debug)]
#[non_exhaustive]
pub struct Batch<T> {
    /// For each change, in order, the object that was there before it.
    pub previous: Vec<Option<T>>,
    /// Objects that are stored but could not be put into some index.
    pub problems: Vec<IndexProblem>,
}

/// What a replacement did.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replaced<T> {
    /// For each new object, in order, the one that was stored under its key before.
    pub previous: Vec<Option<T>>,
    /// Objects that were stored before and are not among the new ones.
    pub removed: Vec<T>,
    /// Whether the new version is below the store's: the source was reset to an older state, and a new epoch began.
    pub rewound: bool,
    /// Objects that are stored but could not be put into some index.
    pub problems: Vec<IndexProblem>,
}
