//! Tasks that wait for one thing, in order.

use std::collections::VecDeque;
use std::task::Waker;

/// A queue of wakers of which only the first is ever woken.
///
/// The first one stays first until it leaves, by success or because its future is dropped, and whoever takes it out wakes
/// the next if there is still something to do. So a wake-up cannot get lost with a dropped future, and one task keeps
/// the timer for all.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    next_id: u64,
    list: VecDeque<(u64, Waker)>,
}

/// One task's place, held by its future.
#[derive(Debug, Default)]
pub(crate) struct Slot(Option<u64>);

impl Slot {
    /// Whether the task does not wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Waiters {
    /// Puts a task at the end, or renews its waker in its place. Returns whether it is the first.
    pub(crate) fn register(&mut self, slot: &mut Slot, waker: &Waker) -> bool {
        if let Some(id) = slot.0 {
            if let Some((_, old)) = self.list.iter_mut().find(|(other, _)| *other == id) {
                old.clone_from(waker);
            }
        } else {
            let id = self.next_id;
            self.next_id += 1;
            self.list.push_back((id, waker.clone()));
            slot.0 = Some(id);
        }
        self.list.front().map(|(id, _)| *id) == slot.0
    }

    /// Takes a task out. Returns whether it was the first, so that the next one has to be told.
    pub(crate) fn leave(&mut self, slot: &mut Slot) -> bool {
        let Some(id) = slot.0.take() else { return false };
        let Some(index) = self.list.iter().position(|(other, _)| *other == id) else {
            return false;
        };
        self.list.remove(index);
        index == 0
    }

    /// The first task's waker.
    pub(crate) fn first(&self) -> Option<Waker> {
        self.list.front().map(|(_, waker)| waker.clone())
    }

    /// All wakers; the tasks keep their places until they leave.
    pub(crate) fn all(&self) -> Vec<Waker> {
        self.list.iter().map(|(_, waker)| waker.clone()).collect()
    }

    /// Whether `slot` may go before all that wait: nobody does, or it is the first.
    pub(crate) fn may_go(&self, slot: &Slot) -> bool {
        match self.list.front() {
            None => true,
            Some((id, _)) => slot.0 == Some(*id),
        }
    }
}
