//! What a queue holds, against its bounds.

use std::mem::size_of;

use kubestrata_api_types::{Event, Snapshot, Update};

use crate::{Deleted, Delta, Load};

/// Bounds of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Limits {
    /// Deltas in one batch of a [`RealFifo`](crate::RealFifo). Default 1000, as in client-go.
    pub batch: usize,
    /// Queued items from which on the producer waits. Default 2000: client-go holds its lock, and so stops its
    /// reflector, from two full batches on.
    pub items: usize,
    /// Queued bytes from which on the producer waits. Default 64 MiB; client-go has no such bound.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { batch: 1000, items: 2000, bytes: 64 << 20 }
    }
}

/// A delta with what it weighs: weighed once, so that what comes is what goes.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    pub(crate) delta: Delta<T>,
    pub(crate) load: Load,
}

/// Weighs deltas and compares with the bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale<T> {
    pub(crate) limits: Limits,
    weigh: fn(&T) -> usize,
}

impl<T> Scale<T> {
    pub(crate) fn new(limits: Limits, weigh: fn(&T) -> usize) -> Self {
        Self { limits, weigh }
    }

    pub(crate) fn slot(&self, delta: Delta<T>) -> Slot<T> {
        let load = self.delta(&delta);
        Slot { delta, load }
    }

    fn delta(&self, delta: &Delta<T>) -> Load {
        let bytes = match delta {
            Delta::Added(object)
            | Delta::Updated(object)
            | Delta::Replaced(object)
            | Delta::Sync(object)
            | Delta::Deleted(Deleted::Observed(object)) => (self.weigh)(object),
            Delta::Deleted(Deleted::Missed(tombstone)) => {
                tombstone.last.as_ref().map_or(0, self.weigh)
            }
            Delta::ReplacedAll(snapshot) => return self.snapshot(snapshot),
            Delta::Unreadable(unreadable) => unreadable.problem.len(),
            Delta::SyncAll | Delta::Bookmark(_) => 0,
        };
        Load { items: 1, bytes: bytes + size_of::<Slot<T>>() }
    }

    fn snapshot(&self, snapshot: &Snapshot<T>) -> Load {
        let problems: usize = snapshot.unreadable.iter().map(|object| object.problem.len()).sum();
        Load {
            items: (snapshot.items.len() + snapshot.unreadable.len()).max(1),
            bytes: snapshot.items.iter().map(self.weigh).sum::<usize>()
                + problems
                + size_of::<Slot<T>>(),
        }
    }

    pub(crate) fn update(&self, update: &Update<T>) -> Load {
        let slot = size_of::<Slot<T>>();
        match update {
            Update::Replace(snapshot) => self.snapshot(snapshot),
            Update::Event(Event::Unreadable(unreadable)) => {
                Load { items: 1, bytes: unreadable.problem.len() + slot }
            }
            Update::Event(event) => {
                Load { items: 1, bytes: event.object().map_or(0, self.weigh) + slot }
            }
        }
    }

    /// Whether `more` fits to what is queued.
    pub(crate) fn admits(&self, queued: Load, more: Load) -> bool {
        queued.items.saturating_add(more.items) <= self.limits.items
            && queued.bytes.saturating_add(more.bytes) <= self.limits.bytes
    }
}
