//! The shared handle: a lock and a wake-up around the state.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{FOREVER, Tick};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::ordered::Ordered;
use crate::state::{Change, Config, From, Item, Snapshot, State, TooOld};
use crate::wake::Wake;
use crate::watcher::{WatchConfig, Watcher};

/// How often a wait for a revision looks whether the source has progressed without a change of this resource
/// (kube-apiserver asks etcd for progress at this pace).
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// State and history of one resource. A clone shares it.
pub struct WatchCache<T>(Arc<Shared<T>>);

pub(crate) struct Shared<T> {
    pub(crate) state: Mutex<State<T>>,
    pub(crate) wake: Wake,
    origin: Instant,
    delivered: Delivered,
}

/// Tells a revision up to which all changes have been applied, if the source can say so without being asked.
type Delivered = Box<dyn Fn() -> Option<u64> + Send + Sync>;

/// The cache did not reach a revision in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Too large resource version: {requested}, current: {current}")]
#[non_exhaustive]
pub struct NotFresh {
    /// What was waited for.
    pub requested: u64,
    /// How far the cache is.
    pub current: u64,
}

impl<T> Clone for WatchCache<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for WatchCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchCache").field("wake", &self.0.wake).finish_non_exhaustive()
    }
}

impl<T: Item> WatchCache<T> {
    /// An empty cache at revision 0.
    pub fn new(config: Config) -> Self {
        Self::with_progress(config, || None)
    }

    /// An empty cache whose source can say at any time up to which revision it has told everything.
    ///
    /// `delivered` is called often: it must be quick and must not call the cache.
    pub fn with_progress(
        config: Config,
        delivered: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State::new(config)),
            wake: Wake::default(),
            origin: Instant::now(),
            delivered: Box::new(delivered),
        }))
    }

    /// The state is now this, at `revision`. All watchers are closed: their clients resume or start afresh.
    pub fn replace(&self, items: impl IntoIterator<Item = (Arc<str>, T)>, revision: u64) {
        let mut ordered = Ordered::default();
        for (key, value) in items {
            ordered.insert(key, value);
        }
        self.0.state.lock().replace(ordered, revision);
        self.0.wake.changed();
    }

    /// A change happened. Changes must come in the order of their revisions, each above the cache's.
    pub fn apply(&self, change: Change<T>) {
        let now = Tick::from_origin(self.0.origin.elapsed());
        self.0.state.lock().apply(now, change);
        self.0.wake.changed();
    }

    /// All changes up to `revision` have been applied.
    pub fn progress(&self, revision: u64) {
        self.0.state.lock().progress(revision);
        self.0.wake.changed();
    }

    /// Forgets history up to and including `revision`, as time does by itself: for tests of what an expired version does.
    pub fn compact(&self, revision: u64) {
        self.0.state.lock().compact(revision);
    }

    /// Ends all watchers, now and later: the resource is no longer served.
    pub fn close(&self) {
        self.0.wake.close();
    }

    /// The revision of the state.
    pub fn revision(&self) -> u64 {
        self.0.revision()
    }

    /// The state, as it is now.
    pub fn snapshot(&self) -> Snapshot<T> {
        self.0.current(State::snapshot)
    }

    /// One object.
    pub fn get(&self, key: &str) -> Option<T> {
        self.0.state.lock().get(key)
    }

    /// Waits until the state is at least as new as `revision`.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`NotFresh`] after `patience`.
    pub async fn fresh(&self, revision: u64, patience: Duration) -> Result<(), NotFresh> {
        let deadline = Instant::now() + patience.min(FOREVER);
        loop {
            let seen = self.0.wake.changes();
            let current = self.revision();
            if current >= revision {
                return Ok(());
            }
            let now = Instant::now();
            if now >= deadline {
                return Err(NotFresh { requested: revision, current });
            }
            let pause = PROGRESS_INTERVAL.min(deadline - now);
            // The revision is looked at again whichever way this ends.
            let _ = tokio::time::timeout(pause, self.0.wake.beyond(seen)).await;
        }
    }

    /// A watcher.
    ///
    /// # Errors
    ///
    /// [`TooOld`] if history no longer holds all changes after the revision.
    pub fn watch(&self, from: From, config: WatchConfig) -> Result<Watcher<T>, TooOld> {
        let (position, snapshot) = self.0.current(|state| state.start(from))?;
        Ok(Watcher::new(self.0.clone(), position, snapshot, config))
    }
}

impl<T: Item> Shared<T> {
    /// Looks at the state after it has learnt of progress.
    pub(crate) fn current<R>(&self, look: impl FnOnce(&State<T>) -> R) -> R {
        // Read before the lock: what the source had delivered by then has been applied by now.
        let delivered = (self.delivered)();
        let mut state = self.state.lock();
        if let Some(delivered) = delivered {
            state.progress(delivered);
        }
        look(&state)
    }

    pub(crate) fn revision(&self) -> u64 {
        self.current(State::revision)
    }
}
