//! Who waits for which turn.

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::bucket::Bucket;

/// Turns are given away when they are asked for: each is a time, and later ones are asked for later. So nobody has to do
/// anything for those behind, and they do not wait for anybody who forgets that it is his turn.
#[derive(Debug)]
pub(super) struct Line {
    bucket: Bucket,
    /// Those whose time has not come, in order, of the number as of the time. As many as callers wait, which are no more than
    /// turns come in the longest wait.
    waiting: VecDeque<Waiting>,
    /// How many there have been.
    numbers: u64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    at: Instant,
    /// Of who waits, as long as he has not been woken for an earlier turn.
    waker: Option<Waker>,
}

/// A turn, if there is one in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is now.
    Now,
    /// It will come; this is its number.
    Later(u64),
    /// It would come after the longest wait, and was not taken.
    TooLate,
}

impl Line {
    pub(super) fn new(bucket: Bucket) -> Self {
        Self { bucket, waiting: VecDeque::new(), numbers: 0 }
    }

    /// Takes the next turn, if that is no later than in `wait`.
    pub(super) fn enter(&mut self, now: Instant, wait: Duration) -> Turn {
        while self.waiting.front().is_some_and(|first| first.at <= now) {
            self.waiting.pop_front();
        }
        let at = self.bucket.next(now);
        if at.duration_since(now) > wait {
            return Turn::TooLate;
        }
        self.bucket.take(at);
        if at <= now {
            return Turn::Now;
        }
        self.numbers += 1;
        let number = self.numbers;
        self.waiting.push_back(Waiting { number, at, waker: None });
        Turn::Later(number)
    }

    /// When this turn is, which can become earlier: `waker` is told then. `None`: its time has come.
    pub(super) fn at(&mut self, number: u64, waker: &Waker) -> Option<Instant> {
        let index = self.index(number)?;
        let waiting = &mut self.waiting[index];
        if !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            waiting.waker = Some(waker.clone());
        }
        Some(waiting.at)
    }

    /// Gives back a turn whose time has not come: all behind it move up. One whose time has come is lost, as the next may be
    /// under way already. Returns those to wake, which must be done without a lock on the line.
    pub(super) fn leave(&mut self, number: u64, now: Instant) -> Vec<Waker> {
        let Some(index) = self.index(number) else { return Vec::new() };
        let Some(Waiting { mut at, .. }) = self.waiting.remove(index) else { return Vec::new() };
        if at <= now {
            return Vec::new();
        }
        let mut woken = Vec::new();
        for waiting in self.waiting.range_mut(index..) {
            std::mem::swap(&mut at, &mut waiting.at);
            woken.extend(waiting.waker.take());
        }
        // What is free now is the last turn.
        self.bucket.give_back();
        woken
    }

    fn index(&self, number: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&number, |waiting| waiting.number).ok()
    }
}
