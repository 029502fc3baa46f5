//! The seam behind which queues can be swapped.

use std::ops::{AddAssign, SubAssign};

use kubestrata_api_types::Update;

use crate::Batch;

/// A queue engine: pure state, without lock, clock or runtime.
///
/// Whatever the implementation, three things hold: a consumer that applies the batches in order ends in the state that the
/// updates describe; no deletion is lost; and [`Queue::has_synced`] turns true only after the first state was processed.
pub trait Queue<T>: Send {
    /// How much `update` would add. Costs a look at each object of a state.
    fn measure(&self, update: &Update<T>) -> Load;

    /// Whether a load fits now. Whatever its size, a load fits into an empty queue.
    fn admits(&self, load: Load) -> bool;

    /// Appends an update. Bounds are the caller's part, by [`Queue::admits`]; nothing is ever refused or dropped here.
    fn push(&mut self, update: Update<T>);

    /// Asks for all known objects once more.
    fn resync(&mut self);

    /// Nothing more will come. What is queued can still be popped.
    fn close(&mut self);

    /// Takes the next batch. The caller reports it by [`Queue::processed`] before it pops again.
    fn pop(&mut self) -> Popped<T>;

    /// The batch popped last has been applied, and handlers were told. Updates may have been pushed since.
    fn processed(&mut self);

    /// Whether the first state has been processed. Never false again once true.
    fn has_synced(&self) -> bool;

    /// What is queued.
    fn load(&self) -> Load;
}

/// An amount of queued work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "made by every queue")]
pub struct Load {
    /// In deltas; a whole state counts its objects, and at least one.
    pub items: usize,
    /// In bytes, as far as the queue's weight function knows them.
    pub bytes: usize,
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.items += other.items;
        self.bytes += other.bytes;
    }
}

impl SubAssign for Load {
    fn sub_assign(&mut self, other: Self) {
        self.items -= other.items;
        self.bytes -= other.bytes;
    }
}

/// What [`Queue::pop`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a consumer must decide for each")]
pub enum Popped<T> {
    /// Work.
    Batch(Batch<T>),
    /// Nothing yet.
    Empty,
    /// Nothing, and nothing will come.
    Closed,
}
