//! The queue without clock, lock and tasks: pure transitions, with the time passed in.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use hashbrown::HashMap;
use kubestrata_api_types::Tick;

use crate::limiter::{Key, RateLimiter};

#[cfg(all(test, not(kubestrata_loom)))]
mod tests;

/// How a key is to be added. The default is at once, with priority 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
#[non_exhaustive]
pub struct AddOptions {
    /// Not before this much time has passed.
    pub after: Duration,
    /// Not before the queue's rate limiter says so, which counts this as a failure of the key.
    /// With `after` too, the shorter of both counts, as in controller-runtime.
    pub rate_limited: bool,
    /// Higher goes first. Kubernetes controllers use 0, and -100 for what nobody waits for.
    pub priority: i32,
}

impl AddOptions {
    /// At once, with priority 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Not before `delay` has passed.
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    /// Not before the rate limiter says so.
    pub fn rate_limited(mut self) -> Self {
        self.rate_limited = true;
        self
    }

    /// With this priority.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

/// When a key that has waited long goes before keys of higher priority.
///
/// controller-runtime has no such rule, so that steady traffic at priority 0 starves -100 for ever (issue 3496 there).
/// Raising priorities with age alone would, after a large initial list, put every new event behind the whole list; so
/// the old keys get a share instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair of two values, written as a literal")]
pub struct Ageing {
    /// How long a key must have been ready. Default 10 s.
    pub after: Duration,
    /// One hand-out in so many goes to the key that is ready for longest, if it is ready for `after`. Default 4.
    /// 0 turns ageing off; 1 makes the queue first in, first out once keys are that old.
    pub one_in: u32,
}

impl Default for Ageing {
    fn default() -> Self {
        Self { after: Duration::from_secs(10), one_in: 4 }
    }
}

/// A key handed out by [`State::pop`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Popped<K> {
    /// The key. It is being processed until [`State::done`].
    pub key: K,
    /// The priority it had in the queue.
    pub priority: i32,
    /// How long it was ready.
    pub waited: Duration,
    /// Its failures since it was last forgotten.
    pub failures: u32,
}

/// Why a key was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the handle must act on each")]
pub enum Refused {
    /// The queue holds as many keys as it may, and this is none of them.
    Full,
    /// The queue is shutting down.
    Closed,
}

/// Where a key is, apart from being processed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not queued; such a key is being processed, or else it has no entry. Goes to any other place by an add.
    Out,
    /// To be handed out, in the order of priority and `seq`. Only a key that is not being processed is here.
    Ready { seq: u64 },
    /// To become ready, or again, at this time.
    Waiting { at: Tick, seq: u64 },
    /// Being processed, and to be ready again when that is done.
    Again,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    /// Priority of the place; without meaning while out.
    priority: i32,
    /// Since when a worker has the key, with a number that makes the pair unique.
    running: Option<(Tick, u64)>,
}

/// What goes on with new and queued keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Keys come and go.
    Open,
    /// No key is taken any more; those that are there are handed out. Next: `Closed`, when there are none left or by force.
    Draining,
    /// Nothing is taken and nothing handed out.
    Closed,
}

/// The queue as a structure.
///
/// Every key has at most one place: a direct add takes a waiting key out of the wait (client-go runs it twice), a second
/// delay keeps the earlier time, a key added while it is processed becomes ready when that is done.
/// Keys of one priority are handed out in the order in which they became ready.
pub struct State<K> {
    entries: HashMap<K, Entry>,
    /// Highest priority first, then first come.
    ready: BTreeMap<(Reverse<i32>, u64), K>,
    /// The ready keys in the order in which they became so.
    ages: BTreeMap<u64, (i32, Tick)>,
    waiting: BTreeMap<(Tick, u64), K>,
    running: BTreeSet<(Tick, u64)>,
    /// Keys in the place `Again`.
    again: usize,
    limiter: Box<dyn RateLimiter<K>>,
    phase: Phase,
    limit: usize,
    ageing: Ageing,
    /// Hand-outs since the last one that went to an old key.
    since_aged: u32,
    next_seq: u64,
    /// Ready keys by priority, and the priorities whose number has changed since the caller last looked.
    depths: BTreeMap<i32, usize>,
    touched: Vec<i32>,
}

impl<K: Key> State<K> {
    /// An empty queue that holds up to `limit` distinct keys, at least 1.
    pub fn new(limiter: Box<dyn RateLimiter<K>>, limit: usize, ageing: Ageing) -> Self {
        Self {
            entries: HashMap::new(),
            ready: BTreeMap::new(),
            ages: BTreeMap::new(),
            waiting: BTreeMap::new(),
            running: BTreeSet::new(),
            again: 0,
            limiter,
            phase: Phase::Open,
            limit: limit.max(1),
            ageing,
            since_aged: 0,
            next_seq: 0,
            depths: BTreeMap::new(),
            touched: Vec::new(),
        }
    }

    /// Adds a key. Returns whether it was not queued before, so that this made work.
    ///
    /// # Errors
    ///
    /// [`Refused`], and then nothing has changed. A key that is queued or being processed is never refused as `Full`.
    pub fn add(&mut self, now: Tick, key: &K, options: AddOptions) -> Result<bool, Refused> {
        if self.phase != Phase::Open {
            return Err(Refused::Closed);
        }
        let known = self.entries.get(key).map(|entry| (entry.place, entry.priority));
        if known.is_none() && self.entries.len() >= self.limit {
            return Err(Refused::Full);
        }
        let delay = self.delay(now, key, options);
        let due = now + delay;
        match known {
            None => {
                let entry = Entry { place: Place::Out, priority: options.priority, running: None };
                self.entries.insert(key.clone(), entry);
                self.enter(now, key, delay, options.priority);
                Ok(true)
            }
            Some((Place::Out, _)) => {
                self.enter(now, key, delay, options.priority);
                Ok(true)
            }
            Some((Place::Waiting { at, seq }, priority)) => {
                let priority = priority.max(options.priority);
                if delay.is_zero() || due < at {
                    self.waiting.remove(&(at, seq));
                    self.enter(now, key, delay, priority);
                } else {
                    self.entry(key).priority = priority;
                }
                Ok(false)
            }
            // What is to run anyway needs no delay.
            Some((Place::Again, priority)) => {
                self.entry(key).priority = priority.max(options.priority);
                Ok(false)
            }
            Some((Place::Ready { seq }, priority)) => {
                if options.priority > priority {
                    // As in controller-runtime: raised means at the end of the higher priority.
                    self.unready(priority, seq);
                    self.enter(now, key, Duration::ZERO, options.priority);
                }
                Ok(false)
            }
        }
    }

    /// Hands out the next ready key, which is being processed until [`State::done`].
    pub fn pop(&mut self, now: Tick) -> Option<Popped<K>> {
        if self.phase == Phase::Closed {
            return None;
        }
        self.promote(now);
        let (priority, seq) = self.next_ready(now)?;
        let (_, since) = self.ages[&seq];
        let key = self.unready(priority, seq);
        let running = (now, self.seq());
        self.running.insert(running);
        let entry = self.entry(&key);
        entry.place = Place::Out;
        entry.running = Some(running);
        let failures = self.limiter.failures(&key);
        Some(Popped { key, priority, waited: now.since(since), failures })
    }

    /// The work on a key is done; if it was added meanwhile it becomes ready. Returns how long the work took.
    /// `None` and no change if the key was not being processed (client-go would queue it twice then).
    pub fn done(&mut self, now: Tick, key: &K) -> Option<Duration> {
        let entry = self.entries.get_mut(key)?;
        let running = entry.running.take()?;
        let (place, priority) = (entry.place, entry.priority);
        self.running.remove(&running);
        match place {
            Place::Again => {
                self.again -= 1;
                self.enter(now, key, Duration::ZERO, priority);
            }
            Place::Out => {
                self.entries.remove(key);
            }
            Place::Ready { .. } | Place::Waiting { .. } => {}
        }
        Some(now.since(running.0))
    }

    /// Clears the failures of a key.
    pub fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    /// Failures of a key since it was last forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        self.limiter.failures(key)
    }

    /// Moves the keys whose time has come. Returns when the next one's comes.
    pub fn promote(&mut self, now: Tick) -> Option<Tick> {
        while let Some((&(at, seq), _)) = self.waiting.first_key_value() {
            if at > now {
                return Some(at);
            }
            let Some(key) = self.waiting.remove(&(at, seq)) else { break };
            let priority = self.entry(&key).priority;
            self.enter(at, &key, Duration::ZERO, priority);
        }
        None
    }

    /// Takes no more keys, and hands out those that are ready. Delayed keys are dropped, as in client-go.
    pub fn drain(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
            self.drop_waiting();
        }
    }

    /// Takes no more keys, hands out none, and drops all that are queued. Those being processed end with [`State::done`].
    pub fn close(&mut self) {
        self.phase = Phase::Closed;
        self.drop_waiting();
        while let Some((&(Reverse(priority), seq), _)) = self.ready.first_key_value() {
            let key = self.unready(priority, seq);
            self.entries.remove(&key);
        }
        for entry in self.entries.values_mut() {
            entry.place = Place::Out;
        }
        self.again = 0;
    }

    /// Whether no key will be handed out any more: closed, or draining with nothing left that is or will become ready.
    pub fn is_finished(&self) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Draining => self.ready.is_empty() && self.again == 0,
            Phase::Closed => true,
        }
    }

    /// Whether it takes no more keys.
    pub fn is_closing(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Whether it has been closed, not only drained.
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Ready keys.
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Keys that wait for their time.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Keys being processed.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// All keys, each once.
    pub fn total(&self) -> usize {
        self.entries.len()
    }

    /// When the next waiting key becomes ready.
    pub fn next_deadline(&self) -> Option<Tick> {
        self.waiting.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Whether the key is queued or being processed.
    pub fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    /// Whether a key that is not in the queue would be taken.
    pub fn has_room(&self) -> bool {
        self.entries.len() < self.limit
    }

    /// Since when each key that is being processed is so, oldest first.
    pub fn running_since(&self) -> impl Iterator<Item = Tick> + '_ {
        self.running.iter().map(|(since, _)| *since)
    }

    /// Calls `f` with each priority whose number of ready keys may have changed since the last call, and that number.
    pub fn for_each_depth_change(&mut self, mut f: impl FnMut(i32, usize)) {
        for priority in self.touched.drain(..) {
            f(priority, self.depths.get(&priority).copied().unwrap_or(0));
        }
    }

    fn delay(&mut self, now: Tick, key: &K, options: AddOptions) -> Duration {
        if !options.rate_limited {
            return options.after;
        }
        let limited = self.limiter.when(now, key);
        if options.after.is_zero() { limited } else { options.after.min(limited) }
    }

    /// Puts a key that is in no place into the one that fits.
    fn enter(&mut self, now: Tick, key: &K, delay: Duration, priority: i32) {
        let seq = self.seq();
        let entry = self.entry(key);
        entry.priority = priority;
        if !delay.is_zero() {
            let at = now + delay;
            entry.place = Place::Waiting { at, seq };
            self.waiting.insert((at, seq), key.clone());
        } else if entry.running.is_some() {
            entry.place = Place::Again;
            self.again += 1;
        } else {
            entry.place = Place::Ready { seq };
            self.ready.insert((Reverse(priority), seq), key.clone());
            self.ages.insert(seq, (priority, now));
            *self.depths.entry(priority).or_insert(0) += 1;
            self.touch(priority);
        }
    }

    /// Takes a ready key out of the order.
    fn unready(&mut self, priority: i32, seq: u64) -> K {
        self.ages.remove(&seq);
        if let Some(depth) = self.depths.get_mut(&priority) {
            *depth -= 1;
            if *depth == 0 {
                self.depths.remove(&priority);
            }
        }
        self.touch(priority);
        self.ready.remove(&(Reverse(priority), seq)).expect("a ready key is in the order of keys")
    }

    /// Which ready key comes next.
    fn next_ready(&mut self, now: Tick) -> Option<(i32, u64)> {
        let (&(Reverse(priority), seq), _) = self.ready.first_key_value()?;
        self.since_aged = self.since_aged.saturating_add(1);
        if self.ageing.one_in > 0
            && self.since_aged >= self.ageing.one_in
            && let Some((&oldest, &(low, since))) = self.ages.first_key_value()
            && now.since(since) >= self.ageing.after
        {
            self.since_aged = 0;
            return Some((low, oldest));
        }
        Some((priority, seq))
    }

    fn drop_waiting(&mut self) {
        while let Some((_, key)) = self.waiting.pop_first() {
            let entry = self.entry(&key);
            entry.place = Place::Out;
            if entry.running.is_none() {
                self.entries.remove(&key);
            }
        }
    }

    fn entry(&mut self, key: &K) -> &mut Entry {
        self.entries.get_mut(key).expect("a key in a place has an entry")
    }

    fn touch(&mut self, priority: i32) {
        if self.touched.last() != Some(&priority) {
            self.touched.push(priority);
        }
    }

    fn seq(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }
}

/// Shows numbers, never keys.
impl<K> fmt::Debug for State<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("phase", &self.phase)
            .field("ready", &self.ready.len())
            .field("waiting", &self.waiting.len())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
