//! How far the store has followed its source.

use kubestrata_api_types::{NotComparable, ResourceVersion};

/// The version of a store, with the epoch in which it counts.
///
/// Versions only grow within an epoch. When the source is reset to an older state (a server restored from a backup), a
/// snapshot below the store's version begins the next epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoreVersion {
    /// Counts the resets, from 0.
    pub epoch: u64,
    /// All changes of the source up to this version are in the store; unset before the first.
    pub version: ResourceVersion,
}

impl StoreVersion {
    /// Moves forward to `version`, never back.
    ///
    /// Where versions cannot be compared the later told wins: a source with such versions gives them in order.
    pub(crate) fn advance(&mut self, version: &ResourceVersion) {
        if version.is_unset() || self.version.is_at_least(version) == Some(true) {
            return;
        }
        self.version = version.clone();
    }

    /// Takes the version of a snapshot. Returns whether a new epoch began.
    pub(crate) fn reset(&mut self, version: &ResourceVersion) -> bool {
        let rewound = version.is_at_least(&self.version) == Some(false);
        if rewound {
            self.epoch += 1;
            self.version = version.clone();
        } else {
            self.advance(version);
        }
        rewound
    }

    /// Whether `want`, asked for in `epoch`, has been reached.
    pub(crate) fn reached(&self, epoch: u64, want: &ResourceVersion) -> Result<bool, WaitError> {
        if self.epoch != epoch {
            return Err(WaitError::Rewound { want: want.clone(), have: self.version.clone() });
        }
        if want.is_unset() || want.is_any() {
            return Ok(!self.version.is_unset());
        }
        if self.version.is_unset() || self.version == *want {
            return Ok(self.version == *want);
        }
        Ok(self.version.compare(want)?.is_ge())
    }
}

/// A store has not reached a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// Not yet, within the time allowed. Ask again later: a controller requeues (KEP-5647).
    #[error("the store is at version {have}, which is older than {want}")]
    Stale {
        /// The store's version; unset if it was never filled.
        have: ResourceVersion,
        /// The version asked for.
        want: ResourceVersion,
    },
    /// Never: the source went back to an older state, and what was written at that version may be lost.
    #[error("the store went back to version {have} while {want} was waited for")]
    Rewound {
        /// The store's version in its new epoch.
        have: ResourceVersion,
        /// The version asked for.
        want: ResourceVersion,
    },
    /// The versions have no order.
    #[error("the store's version cannot be compared with the one asked for")]
    NotComparable(#[from] NotComparable),
    /// Never: the writer is gone.
    #[error("the store is no longer written to")]
    Closed,
}

impl WaitError {
    /// Whether the same wait may succeed later.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. })
    }
}
