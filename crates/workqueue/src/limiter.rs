//! How long a failed key waits before it is tried again.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;
use kubestrata_api_types::Tick;

/// What a key must be: cheap to clone, as each is held up to three times. Implemented for every type that fits.
pub trait Key: Hash + Eq + Clone + fmt::Debug + Send + 'static {}

impl<K: Hash + Eq + Clone + fmt::Debug + Send + 'static> Key for K {}

/// Decides how long a rate-limited key waits (client-go `TypedRateLimiter`).
///
/// It is called under the queue's lock: it must be quick and must not call the queue.
pub trait RateLimiter<K>: fmt::Debug + Send + 'static {
    /// The delay for `key` from `now` on, and counts one failure of it.
    fn when(&mut self, now: Tick, key: &K) -> Duration;
    /// The key has succeeded, or is given up: its next failure counts as the first.
    fn forget(&mut self, key: &K);
    /// Failures of the key since it was last forgotten (client-go `NumRequeues`).
    fn failures(&self, key: &K) -> u32;
}

impl<K, L: RateLimiter<K> + ?Sized> RateLimiter<K> for Box<L> {
    fn when(&mut self, now: Tick, key: &K) -> Duration {
        (**self).when(now, key)
    }

    fn forget(&mut self, key: &K) {
        (**self).forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        (**self).failures(key)
    }
}

/// Counts failures per key, in bounded memory.
///
/// Keys that are never forgotten would fill client-go's map for ever. Here the count of a key is kept while fewer than
/// half of the limit of other keys have failed since its last failure, and lost at the latest when as many as the limit
/// have.
#[derive(Debug)]
struct Failures<K> {
    /// Keys that failed since the last turn.
    young: HashMap<K, u32>,
    /// Keys that failed in the turn before.
    old: HashMap<K, u32>,
    half: usize,
}

impl<K: Key> Failures<K> {
    fn new(limit: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: (limit / 2).max(1) }
    }

    /// Counts one failure and returns how many there were before.
    fn count(&mut self, key: &K) -> u32 {
        if let Some(count) = self.young.get_mut(key) {
            let before = *count;
            *count = before.saturating_add(1);
            return before;
        }
        let before = self.old.remove(key).unwrap_or(0);
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key.clone(), before.saturating_add(1));
        before
    }

    fn get(&self, key: &K) -> u32 {
        self.young.get(key).or_else(|| self.old.get(key)).copied().unwrap_or(0)
    }

    fn forget(&mut self, key: &K) {
        if !self.young.is_empty() {
            self.young.remove(key);
        }
        if !self.old.is_empty() {
            self.old.remove(key);
        }
    }
}

/// `base · 2^failures` per key, at most `cap` (client-go `ItemExponentialFailureRateLimiter`).
#[derive(Debug)]
pub struct ExponentialBackoff<K> {
    base: Duration,
    cap: Duration,
    failures: Failures<K>,
}

impl<K: Key> ExponentialBackoff<K> {
    /// The delay after the first failure, as in client-go: 5 ms.
    pub const BASE: Duration = Duration::from_millis(5);
    /// The longest delay, as in client-go: 1000 s.
    pub const CAP: Duration = Duration::from_secs(1000);
    /// Failed keys that are remembered, by default: 2^17. client-go remembers all for ever.
    pub const REMEMBERED: usize = 1 << 17;

    /// A back-off from `base` to `cap`, that remembers up to `remembered` failed keys.
    pub fn new(base: Duration, cap: Duration, remembered: usize) -> Self {
        Self { base, cap, failures: Failures::new(remembered) }
    }
}

impl<K: Key> Default for ExponentialBackoff<K> {
    fn default() -> Self {
        Self::new(Self::BASE, Self::CAP, Self::REMEMBERED)
    }
}

impl<K: Key> RateLimiter<K> for ExponentialBackoff<K> {
    fn when(&mut self, _: Tick, key: &K) -> Duration {
        let failures = self.failures.count(key);
        1_u32
            .checked_shl(failures)
            .and_then(|factor| self.base.checked_mul(factor))
            .map_or(self.cap, |delay| delay.min(self.cap))
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.failures.get(key)
    }
}

/// A short delay for the first failures of a key, a long one after (client-go `ItemFastSlowRateLimiter`).
#[derive(Debug)]
pub struct FastSlow<K> {
    fast: Duration,
    slow: Duration,
    fast_tries: u32,
    failures: Failures<K>,
}

impl<K: Key> FastSlow<K> {
    /// `fast` for the first `fast_tries` failures, then `slow`; remembers up to `remembered` failed keys.
    pub fn new(fast: Duration, slow: Duration, fast_tries: u32, remembered: usize) -> Self {
        Self { fast, slow, fast_tries, failures: Failures::new(remembered) }
    }
}

impl<K: Key> RateLimiter<K> for FastSlow<K> {
    fn when(&mut self, _: Tick, key: &K) -> Duration {
        if self.failures.count(key) < self.fast_tries { self.fast } else { self.slow }
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.failures.get(key)
    }
}

/// One rate for all keys together (client-go `BucketRateLimiter`).
#[derive(Debug)]
pub struct TokenBucket {
    interval: Duration,
    /// How far the next free token may lie behind the present: the burst, as time.
    slack: Duration,
    /// When the next token is free if nothing was ever saved up.
    next: Duration,
}

impl TokenBucket {
    /// One token each `interval`, and up to `burst` saved up. client-go's default for controllers is 100 ms and 100.
    pub fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, slack: interval.saturating_mul(burst), next: Duration::ZERO }
    }
}

impl<K> RateLimiter<K> for TokenBucket {
    fn when(&mut self, now: Tick, _: &K) -> Duration {
        // The generic cell rate algorithm: the bucket is full when `next` lies in the past.
        let now = now.since_origin();
        self.next = self.next.max(now).saturating_add(self.interval);
        self.next.saturating_sub(now).saturating_sub(self.slack)
    }

    fn forget(&mut self, _: &K) {}

    fn failures(&self, _: &K) -> u32 {
        0
    }
}

/// The longer of two delays (client-go `MaxOfRateLimiter`).
#[derive(Debug)]
pub struct MaxOf<A, B>(A, B);

impl<A, B> MaxOf<A, B> {
    /// The longer of what `a` and `b` say. Both count each failure.
    pub fn new(a: A, b: B) -> Self {
        Self(a, b)
    }
}

impl<K, A: RateLimiter<K>, B: RateLimiter<K>> RateLimiter<K> for MaxOf<A, B> {
    fn when(&mut self, now: Tick, key: &K) -> Duration {
        let a = self.0.when(now, key);
        a.max(self.1.when(now, key))
    }

    fn forget(&mut self, key: &K) {
        self.0.forget(key);
        self.1.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.0.failures(key).max(self.1.failures(key))
    }
}
