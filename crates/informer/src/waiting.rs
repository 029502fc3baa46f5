//! What waits for one handler: pure state, no lock, no waker.

use std::collections::{BTreeMap, HashMap, VecDeque};

use kubestrata_api_types::{Object, ObjectKey};

use crate::Overflow;
use crate::notice::{Merged, Notice};

/// Notices in order, within a bound.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    limit: usize,
    /// One resync waits: it tells of everything, and a second would tell the same.
    resync: bool,
    lane: Lane<T>,
    /// Notices that became one with an earlier one, so far.
    pub(crate) merged: u64,
}

#[derive(Debug)]
enum Lane<T> {
    /// Full is full.
    Block(VecDeque<Notice<T>>),
    /// Beyond the bound notices of one object become one.
    Coalesce(Coalesce<T>),
}

#[derive(Debug)]
struct Coalesce<T> {
    /// By number, so that one can be taken out of the middle.
    notices: BTreeMap<u64, Notice<T>>,
    next: u64,
    /// Numbers of the notices of a key since the last resync, oldest first. Nothing merges across a resync, which tells
    /// of states between.
    of_key: HashMap<ObjectKey, Vec<u64>>,
}

impl<T: Object> Waiting<T> {
    pub(crate) fn new(limit: usize, overflow: Overflow) -> Self {
        let lane = match overflow {
            Overflow::Block => Lane::Block(VecDeque::new()),
            Overflow::Coalesce => Lane::Coalesce(Coalesce {
                notices: BTreeMap::new(),
                next: 0,
                of_key: HashMap::new(),
            }),
        };
        Self { limit: limit.max(1), resync: false, lane, merged: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.lane {
            Lane::Block(notices) => notices.len(),
            Lane::Coalesce(coalesce) => coalesce.notices.len(),
        }
    }

    /// Whether one more is taken.
    pub(crate) fn has_room(&self) -> bool {
        matches!(self.lane, Lane::Coalesce(_)) || self.len() < self.limit
    }

    /// Takes a notice, whether there is room or not.
    pub(crate) fn push(&mut self, notice: Notice<T>) {
        if matches!(notice, Notice::Resync(_)) && std::mem::replace(&mut self.resync, true) {
            return;
        }
        let full = self.len() >= self.limit;
        match &mut self.lane {
            Lane::Block(notices) => notices.push_back(notice),
            Lane::Coalesce(coalesce) if full => self.merged += coalesce.merge(notice),
            Lane::Coalesce(coalesce) => coalesce.push(notice),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Notice<T>> {
        let notice = match &mut self.lane {
            Lane::Block(notices) => {
                let notice = notices.pop_front();
                if notices.is_empty() && notices.capacity() > FEW {
                    // A burst must not pin its memory for ever.
                    notices.shrink_to(FEW);
                }
                notice
            }
            Lane::Coalesce(coalesce) => coalesce.pop(),
        };
        if matches!(notice, Some(Notice::Resync(_))) {
            self.resync = false;
        }
        notice
    }
}

/// Notices for which an empty backlog keeps its room.
const FEW: usize = 64;

impl<T: Object> Coalesce<T> {
    fn push(&mut self, notice: Notice<T>) {
        let number = self.next;
        self.next += 1;
        match notice.key() {
            Some(key) => self.of_key.entry(key).or_default().push(number),
            None if matches!(notice, Notice::Resync(_)) => self.of_key.clear(),
            None => {}
        }
        self.notices.insert(number, notice);
    }

    /// Merges with the last notice of the same key, if there is one. Returns how many notices that saved.
    fn merge(&mut self, notice: Notice<T>) -> u64 {
        let last = notice.key().and_then(|key| {
            let number = *self.of_key.get(&key)?.last()?;
            Some((key, number, self.notices.remove(&number)?))
        });
        let Some((key, number, first)) = last else {
            self.push(notice);
            return 0;
        };
        match Notice::merge(first, notice) {
            Merged::One(one) => {
                self.notices.insert(number, one);
                1
            }
            Merged::Nothing => {
                self.forget(&key, number);
                2
            }
            Merged::Both(first, second) => {
                self.notices.insert(number, first);
                self.push(second);
                0
            }
        }
    }

    fn pop(&mut self) -> Option<Notice<T>> {
        let (number, notice) = self.notices.pop_first()?;
        if let Some(key) = notice.key() {
            self.forget(&key, number);
        }
        Some(notice)
    }

    fn forget(&mut self, key: &ObjectKey, number: u64) {
        if let Some(numbers) = self.of_key.get_mut(key) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.of_key.remove(key);
            }
        }
    }
}
