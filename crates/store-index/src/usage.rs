//! What a store costs.

use std::sync::Arc;

/// Bytes and counts of a store, so that an index that costs more than the objects is seen in one look.
///
/// Bytes are those of allocations as asked for, not as the allocator rounds them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Number of objects.
    pub objects: usize,
    /// Bytes of the objects' heads, as [`Weigh`](kubestrata_api_types::Weigh) tells them.
    pub heads: usize,
    /// Bytes of the objects' bodies, as [`Weigh`](kubestrata_api_types::Weigh) tells them.
    pub bodies: usize,
    /// Bytes of slots, and of the map from keys to slots.
    pub keys: usize,
    /// Each index, the built-in one over namespaces first.
    pub indexes: Vec<IndexUsage>,
}

impl Usage {
    /// All bytes together.
    pub fn total(&self) -> usize {
        let indexes: usize = self.indexes.iter().map(|index| index.bytes).sum();
        self.heads + self.bodies + self.keys + indexes
    }
}

/// Bytes and counts of one index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexUsage {
    /// Name of the index.
    pub name: Arc<str>,
    /// Number of different values.
    pub values: usize,
    /// Number of pairs of object and value.
    pub entries: usize,
    /// Objects whose values could not be computed: lookups do not find them.
    pub unindexed: usize,
    /// Bytes of the index.
    pub bytes: usize,
}
