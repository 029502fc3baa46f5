//! The queue as tasks see it: a lock around the state, wake-ups, and one timer.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use kubestrata_api_types::{FOREVER, Tick};
use kubestrata_telemetry::{Noop, Provider};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::limiter::{ExponentialBackoff, Key, RateLimiter};
use crate::metrics::Metrics;
use crate::state::{AddOptions, Ageing, Popped, Refused, State};
use crate::sync::Mutex;
use crate::waiters::{Slot, Waiters};

#[cfg(all(test, kubestrata_loom))]
mod loom_tests;
#[cfg(all(test, not(kubestrata_loom)))]
mod tests;

/// Settings of a queue.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal with ..Default")]
pub struct Config {
    /// Value of the label `name` of the metrics. An empty name (the default) means no metrics, as in client-go.
    pub name: String,
    /// Distinct keys that the queue holds: ready, waiting and being processed. At the bound a new key has to wait
    /// ([`WorkQueue::add`]) or is given back ([`WorkQueue::try_add`]); none is lost. Default 2^20; Go has no bound.
    pub max_keys: usize,
    /// When old keys go before keys of higher priority.
    pub ageing: Ageing,
    /// Where metrics go. Default: nowhere.
    pub metrics: Arc<dyn Provider>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: String::new(),
            max_keys: 1 << 20,
            ageing: Ageing::default(),
            metrics: Arc::new(Noop),
        }
    }
}

/// The queue takes no more keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work queue is shutting down")]
#[non_exhaustive]
pub struct Closed;

/// A key that could not be added at once, given back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryAddError<K> {
    /// The queue holds as many keys as it may: [`Config::max_keys`].
    #[error("the work queue is full")]
    Full(K),
    /// The queue is shutting down.
    #[error("the work queue is shutting down")]
    Closed(K),
}

/// A work queue; a clone is another handle of the same queue.
///
/// Keys with a delay need tokio's timer where [`get`](Self::get) is awaited; nothing here spawns a task.
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    inner: Mutex<Inner<K>>,
    /// What the ticks of the state count from.
    origin: Instant,
}

struct Inner<K> {
    state: State<K>,
    metrics: Metrics,
    /// Tasks in `get`; the first also keeps the timer.
    getters: Waiters,
    /// Tasks in `add`, at the bound.
    adders: Waiters,
    /// Tasks in `drain`.
    drainers: Waiters,
}

/// What [`Shared::poll_get`] found.
enum Got<K: Key> {
    Item(Item<K>),
    Finished,
    /// Registered. The first of the waiting tasks has to come back at this time.
    Pending(Option<Tick>),
}

impl<K: Key> WorkQueue<K> {
    /// A queue with client-go's back-off per key: 5 ms doubling up to 1000 s, and no overall rate.
    pub fn new(config: Config) -> Self {
        Self::with_limiter(config, ExponentialBackoff::default())
    }

    /// A queue with a rate limiter of one's own.
    pub fn with_limiter(config: Config, limiter: impl RateLimiter<K>) -> Self {
        let metrics = if config.name.is_empty() {
            Metrics::none()
        } else {
            Metrics::new(&config.name, config.metrics)
        };
        let state = State::new(Box::new(limiter), config.max_keys, config.ageing);
        let inner = Inner {
            state,
            metrics,
            getters: Waiters::default(),
            adders: Waiters::default(),
            drainers: Waiters::default(),
        };
        Self { shared: Arc::new(Shared { inner: Mutex::new(inner), origin: Instant::now() }) }
    }
}

impl<K: Key> WorkQueue<K> {
    /// Adds a key at once, with priority 0. See [`add_with`](Self::add_with).
    ///
    /// # Errors
    ///
    /// [`Closed`] once a shutdown has begun.
    pub async fn add(&self, key: K) -> Result<(), Closed> {
        self.add_with(key, AddOptions::new()).await
    }

    /// Adds a key; waits while the queue is full and does not hold the key already.
    ///
    /// Who waits longest comes first. Cancel-safe: a dropped future has not added the key.
    ///
    /// # Errors
    ///
    /// [`Closed`] once a shutdown has begun, also for those that wait then.
    pub async fn add_with(&self, key: K, options: AddOptions) -> Result<(), Closed> {
        let mut place = Place::new(&self.shared, |inner| &mut inner.adders);
        poll_fn(|cx| {
            let now = self.shared.now();
            self.shared.poll_add(cx.waker(), now, &mut place.slot, &key, options)
        })
        .await
    }

    /// Adds a key at once, with priority 0, if there is room.
    ///
    /// # Errors
    ///
    /// [`TryAddError`] with the key.
    pub fn try_add(&self, key: K) -> Result<(), TryAddError<K>> {
        self.try_add_with(key, AddOptions::new())
    }

    /// Adds a key if there is room. A key that is queued or being processed always has.
    ///
    /// # Errors
    ///
    /// [`TryAddError`] with the key.
    pub fn try_add_with(&self, key: K, options: AddOptions) -> Result<(), TryAddError<K>> {
        match self.shared.add(self.shared.now(), &key, options, &mut Slot::default()) {
            Ok(()) => Ok(()),
            Err(Refused::Full) => Err(TryAddError::Full(key)),
            Err(Refused::Closed) => Err(TryAddError::Closed(key)),
        }
    }

    /// Waits for the next key, which stays this caller's until the [`Item`] is dropped. `None` after a shutdown: at
    /// once after [`shut_down`](Self::shut_down), when nothing is left to hand out after [`drain`](Self::drain).
    ///
    /// Cancel-safe: a dropped future has taken no key.
    ///
    /// # Panics
    ///
    /// If it has to wait for a delayed key outside of a tokio runtime with a timer.
    pub async fn get(&self) -> Option<Item<K>> {
        let mut place = Place::new(&self.shared, |inner| &mut inner.getters);
        let mut timer = pin!(None::<Sleep>);
        poll_fn(|cx| {
            loop {
                match Shared::poll_get(&self.shared, cx.waker(), self.shared.now(), &mut place.slot)
                {
                    Got::Item(item) => return Poll::Ready(Some(item)),
                    Got::Finished => return Poll::Ready(None),
                    Got::Pending(None) => return Poll::Pending,
                    Got::Pending(Some(at)) => {
                        let at = self.shared.origin + at.since_origin().min(FOREVER);
                        timer.set(Some(sleep_until(at)));
                        let sleep = timer.as_mut().as_pin_mut();
                        if sleep.is_none_or(|sleep| sleep.poll(cx).is_pending()) {
                            return Poll::Pending;
                        }
                    }
                }
            }
        })
        .await
    }

    /// The next key, if one is ready now.
    pub fn try_get(&self) -> Option<Item<K>> {
        Shared::try_get(&self.shared, self.shared.now(), &mut Slot::default())
    }

    /// Shuts down at once: takes no more keys, hands out none, and all waiting calls return. Queued keys are dropped;
    /// those being processed end as they will. Also ends a [`drain`](Self::drain). Further calls do nothing.
    pub fn shut_down(&self) {
        let mut inner = self.shared.inner.lock();
        inner.state.close();
        inner.report_depth();
        let wakers = inner.everyone();
        drop(inner);
        wake(wakers);
    }

    /// Takes no more keys, and waits until all that are ready have been handed out and all work is done. Delayed keys
    /// are dropped. Returns whether it came to that: not if [`shut_down`](Self::shut_down) cut it short.
    ///
    /// Needs workers that go on calling [`get`](Self::get), so give it a deadline. Dropping the future ends the wait,
    /// not the shutdown. Any number of calls may wait.
    pub async fn drain(&self) -> bool {
        self.shared.begin_drain();
        let mut place = Place::new(&self.shared, |inner| &mut inner.drainers);
        poll_fn(|cx| self.shared.poll_drained(cx.waker(), &mut place.slot)).await
    }

    /// Clears the failures of a key.
    pub fn forget(&self, key: &K) {
        self.shared.inner.lock().state.forget(key);
    }

    /// Failures of a key since it was last forgotten (client-go `NumRequeues`).
    pub fn failures(&self, key: &K) -> u32 {
        self.shared.inner.lock().state.failures(key)
    }

    /// Keys that are ready.
    pub fn len(&self) -> usize {
        let mut inner = self.shared.inner.lock();
        inner.state.promote(self.shared.now());
        inner.report_depth();
        inner.state.len()
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys being processed.
    pub fn running(&self) -> usize {
        self.shared.inner.lock().state.running()
    }

    /// Whether a shutdown has begun.
    pub fn is_closing(&self) -> bool {
        self.shared.inner.lock().state.is_closing()
    }

    /// Brings the gauges `workqueue_unfinished_work_seconds` and `workqueue_longest_running_processor_seconds` up to
    /// date, which change while nothing happens. client-go does it every 500 ms.
    pub fn update_metrics(&self) {
        let now = self.shared.now();
        let inner = self.shared.inner.lock();
        inner.metrics.running(inner.state.running_since().map(|since| now.since(since)));
    }
}

impl<K: Key> Shared<K> {
    fn now(&self) -> Tick {
        Tick::from_origin(self.origin.elapsed())
    }

    fn add(&self, now: Tick, key: &K, options: AddOptions, slot: &mut Slot) -> Result<(), Refused> {
        let mut inner = self.inner.lock();
        let wakers = inner.add(now, key, options, slot)?;
        drop(inner);
        wake(wakers.into_iter().flatten());
        Ok(())
    }

    fn poll_add(
        &self,
        waker: &Waker,
        now: Tick,
        slot: &mut Slot,
        key: &K,
        options: AddOptions,
    ) -> Poll<Result<(), Closed>> {
        let mut inner = self.inner.lock();
        match inner.add(now, key, options, slot) {
            Ok(wakers) => {
                drop(inner);
                wake(wakers.into_iter().flatten());
                Poll::Ready(Ok(()))
            }
            Err(Refused::Closed) => Poll::Ready(Err(Closed)),
            Err(Refused::Full) => {
                inner.adders.register(slot, waker);
                Poll::Pending
            }
        }
    }

    fn try_get(this: &Arc<Self>, now: Tick, slot: &mut Slot) -> Option<Item<K>> {
        let mut inner = this.inner.lock();
        let (popped, next) = inner.pop(now, slot)?;
        drop(inner);
        wake(next);
        Some(Item::new(popped, this))
    }

    fn poll_get(this: &Arc<Self>, waker: &Waker, now: Tick, slot: &mut Slot) -> Got<K> {
        let mut inner = this.inner.lock();
        if let Some((popped, next)) = inner.pop(now, slot) {
            drop(inner);
            wake(next);
            return Got::Item(Item::new(popped, this));
        }
        if inner.state.is_finished() {
            return Got::Finished;
        }
        let first = inner.getters.register(slot, waker);
        Got::Pending(if first { inner.state.next_deadline() } else { None })
    }

    fn begin_drain(&self) {
        let mut inner = self.inner.lock();
        inner.state.drain();
        let wakers = inner.everyone();
        drop(inner);
        wake(wakers);
    }

    fn poll_drained(&self, waker: &Waker, slot: &mut Slot) -> Poll<bool> {
        let mut inner = self.inner.lock();
        if inner.state.is_closed() {
            Poll::Ready(false)
        } else if inner.state.total() == 0 {
            Poll::Ready(true)
        } else {
            inner.drainers.register(slot, waker);
            Poll::Pending
        }
    }

    fn done(&self, key: &K, forget: bool) {
        let now = self.now();
        let mut inner = self.inner.lock();
        if forget {
            inner.state.forget(key);
        }
        if let Some(worked) = inner.state.done(now, key) {
            inner.metrics.worked.observe(worked.as_secs_f64());
        }
        inner.report_depth();
        let wakers = if inner.state.is_finished() {
            inner.everyone()
        } else {
            let getter = if inner.state.is_empty() { None } else { inner.getters.first() };
            let adder = if inner.state.has_room() { inner.adders.first() } else { None };
            getter.into_iter().chain(adder).collect()
        };
        drop(inner);
        wake(wakers);
    }
}

impl<K: Key> Inner<K> {
    fn report_depth(&mut self) {
        let metrics = &mut self.metrics;
        self.state.for_each_depth_change(|priority, depth| metrics.depth(priority, depth));
    }

    /// Adds a key for the task in `slot`; gives whom to wake.
    fn add(
        &mut self,
        now: Tick,
        key: &K,
        options: AddOptions,
        slot: &mut Slot,
    ) -> Result<[Option<Waker>; 2], Refused> {
        // A newcomer does not overtake those that wait for room.
        if !self.adders.may_go(slot) && !self.state.is_closing() && !self.state.contains(key) {
            return Err(Refused::Full);
        }
        let deadline = self.state.next_deadline();
        if self.state.add(now, key, options)? {
            self.metrics.adds.increment();
        }
        if options.rate_limited || !options.after.is_zero() {
            self.metrics.retries.increment();
        }
        self.report_depth();
        let getter = !self.state.is_empty() || self.state.next_deadline() != deadline;
        let adder = self.adders.leave(slot) && self.state.has_room();
        Ok([
            if getter { self.getters.first() } else { None },
            if adder { self.adders.first() } else { None },
        ])
    }

    /// Takes the next ready key for the task in `slot`; gives also whom to wake.
    fn pop(&mut self, now: Tick, slot: &mut Slot) -> Option<(Popped<K>, Option<Waker>)> {
        let popped = self.state.pop(now);
        self.report_depth();
        let popped = popped?;
        self.metrics.waited.observe(popped.waited.as_secs_f64());
        Some((popped, self.getter_after(slot)))
    }

    /// Takes a task out of the getters; gives the one that now has to look after keys and timer.
    fn getter_after(&mut self, slot: &mut Slot) -> Option<Waker> {
        let was_first = self.getters.leave(slot);
        let work = !self.state.is_empty() || self.state.waiting() > 0;
        if was_first && work { self.getters.first() } else { None }
    }

    fn everyone(&self) -> Vec<Waker> {
        let mut wakers = self.getters.all();
        wakers.extend(self.adders.all());
        wakers.extend(self.drainers.all());
        wakers
    }
}

/// Wakes tasks, outside of the lock: a waker may run code of an executor that we know nothing of.
fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

/// A future's place among the waiting tasks, left when the future is dropped.
struct Place<'a, K: Key> {
    shared: &'a Shared<K>,
    list: fn(&mut Inner<K>) -> &mut Waiters,
    slot: Slot,
}

impl<'a, K: Key> Place<'a, K> {
    fn new(shared: &'a Shared<K>, list: fn(&mut Inner<K>) -> &mut Waiters) -> Self {
        Self { shared, list, slot: Slot::default() }
    }
}

impl<K: Key> Drop for Place<'_, K> {
    fn drop(&mut self) {
        if self.slot.is_empty() {
            return;
        }
        let mut inner = self.shared.inner.lock();
        let list = (self.list)(&mut inner);
        // The wake-up may have been meant for this task: the next one has to look.
        let next = if list.leave(&mut self.slot) { list.first() } else { None };
        drop(inner);
        wake(next);
    }
}

/// A key that is this holder's alone until it is dropped, which says that the work is done.
///
/// What the methods add is dropped once a shutdown has begun, as in client-go.
#[must_use = "dropping it says that the work is done"]
pub struct Item<K: Key> {
    key: K,
    priority: i32,
    failures: u32,
    /// Whether the failures are to be cleared when the work ends.
    forget: bool,
    shared: Arc<Shared<K>>,
}

impl<K: Key> Item<K> {
    fn new(popped: Popped<K>, shared: &Arc<Shared<K>>) -> Self {
        let Popped { key, priority, failures, .. } = popped;
        Self { key, priority, failures, forget: false, shared: Arc::clone(shared) }
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The priority that the key had in the queue.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Failures of the key since it was last forgotten, when it was handed out.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Clears the failures: the work has succeeded.
    pub fn forget(&self) {
        self.shared.inner.lock().state.forget(&self.key);
    }

    /// Ends the work as done: [`forget`](Self::forget) and drop in one.
    pub fn succeed(mut self) {
        self.forget = true;
    }

    /// Ends the work as failed: counts it, and adds the key again after its back-off, with the same priority.
    pub fn retry(self) {
        self.requeue(AddOptions::new().rate_limited().priority(self.priority));
    }

    /// Ends the work as done for now: clears the failures, and adds the key again after `delay`, with the same priority.
    pub fn requeue_after(mut self, delay: Duration) {
        self.forget = true;
        self.requeue(AddOptions::new().after(delay).priority(self.priority));
    }

    /// Adds the key again, while it is still being processed. Never waits: the key has its room in the queue.
    pub fn requeue(&self, options: AddOptions) {
        // Refused only after a shutdown has begun, where the key is dropped by contract.
        let _ = self.shared.add(self.shared.now(), &self.key, options, &mut Slot::default());
    }
}

impl<K: Key> Deref for Item<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        self.shared.done(&self.key, self.forget);
    }
}

impl<K: Key> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("state", &self.shared.inner.lock().state).finish()
    }
}
