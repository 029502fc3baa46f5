//! The store in memory: a lock, a clock and the list of observers around [`state::State`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kubestrata_api_types::Tick;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::storage::{
    Change, Entry, Expected, Make, Observer, Page, Range, ReadError, Revision, Storage, Subscribed,
    Subscription, Value, WriteError,
};

mod state;

use self::state::State;

/// How much of the past a [`Memory`] keeps. Whichever bound is reached first ends it.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Config {
    /// Superseded values older than this are forgotten at the next write. Default 5 minutes, the interval at which
    /// kube-apiserver compacts etcd.
    pub history_age: Duration,
    /// Bytes of superseded values. Default 64 MiB.
    pub history_bytes: usize,
    /// Number of superseded values. Default 100,000.
    pub history_values: usize,
    /// The revision of the empty store; the first write gets the next. Default 1, as in etcd; 0 counts as 1.
    ///
    /// A store that takes the place of another before the eyes of the same clients must begin above every revision of
    /// that one: a client that resumes at a revision which means something else now would miss changes, and nothing would
    /// tell it so. Older revisions are answered as compacted.
    pub first_revision: Revision,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            history_age: Duration::from_secs(5 * 60),
            history_bytes: 64 << 20,
            history_values: 100_000,
            first_revision: 1,
        }
    }
}

/// A multi-version store in memory. A clone shares it.
#[derive(Debug)]
pub struct Memory<V>(Arc<Shared<V>>);

impl<V> Clone for Memory<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Shared<V> {
    origin: Instant,
    inner: RwLock<Inner<V>>,
    /// The newest revision that all observers know. Written within the lock after they were told, read without it:
    /// the Release of the writer pairs with the Acquire of [`Storage::delivered`].
    delivered: AtomicU64,
}

struct Inner<V> {
    state: State<V>,
    observers: Vec<Registered<V>>,
    next_id: u64,
}

struct Registered<V> {
    id: u64,
    prefix: Box<str>,
    observer: Arc<dyn Observer<V>>,
}

impl<V> std::fmt::Debug for Shared<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("delivered", &self.delivered).finish_non_exhaustive()
    }
}

impl<V: Value> Memory<V> {
    /// An empty store at [`Config::first_revision`].
    pub fn new(config: Config) -> Self {
        Self::over(State::new(config))
    }

    /// A store that holds the entries of a backup and is at `revision`, or at the newest revision of an entry if that is
    /// higher. History begins there: earlier revisions are compacted.
    ///
    /// With the revision of the backup, revisions are given a second time, for other writes than the first; with one above
    /// all that were ever given they are not (`etcdutl snapshot restore --bump-revision --mark-compacted`).
    pub fn restored(
        config: Config,
        entries: impl IntoIterator<Item = Entry<V>>,
        revision: Revision,
    ) -> Self {
        let mut state = State::new(Config { first_revision: revision, ..config });
        for entry in entries {
            state.restore(entry);
        }
        Self::over(state)
    }

    fn over(state: State<V>) -> Self {
        let delivered = AtomicU64::new(state.revision());
        Self(Arc::new(Shared {
            origin: Instant::now(),
            inner: RwLock::new(Inner { state, observers: Vec::new(), next_id: 0 }),
            delivered,
        }))
    }

    fn now(&self) -> Tick {
        Tick::from_origin(self.0.origin.elapsed())
    }

    /// Runs one write and tells the observers of it, all within the lock, so that they see the order of the commits.
    fn commit(
        &self,
        write: impl FnOnce(&mut State<V>, Tick) -> Result<Change<V>, WriteError<V>>,
    ) -> Result<Entry<V>, WriteError<V>> {
        let now = self.now();
        let mut inner = self.0.inner.write();
        let change = write(&mut inner.state, now)?;
        for registered in &inner.observers {
            if change.key.starts_with(&*registered.prefix) {
                registered.observer.changed(&change);
            }
        }
        self.0.delivered.store(change.revision, Ordering::Release);
        Ok(Entry { key: change.key, revision: change.revision, value: change.value })
    }

    fn unsubscribe(&self, id: u64) {
        let mut inner = self.0.inner.write();
        let gone = inner.observers.iter().position(|registered| registered.id == id);
        let observer = gone.map(|at| inner.observers.swap_remove(at));
        // An observer may own much: its drop happens after the lock.
        drop(inner);
        drop(observer);
    }
}

#[async_trait]
impl<V: Value> Storage<V> for Memory<V> {
    async fn get(&self, key: &str) -> Result<Option<Entry<V>>, ReadError> {
        Ok(self.0.inner.read().state.get(key))
    }

    async fn range(&self, range: Range<'_>) -> Result<Page<V>, ReadError> {
        self.0.inner.read().state.range(&range)
    }

    async fn put(
        &self,
        key: &str,
        expected: Expected,
        make: Make<'_, V>,
    ) -> Result<Entry<V>, WriteError<V>> {
        self.commit(|state, now| state.put(now, key, expected, make))
    }

    async fn delete(
        &self,
        key: &str,
        expected: Revision,
        last: Make<'_, V>,
    ) -> Result<Entry<V>, WriteError<V>> {
        self.commit(|state, now| state.delete(now, key, expected, last))
    }

    async fn subscribe(
        &self,
        prefix: &str,
        observer: Arc<dyn Observer<V>>,
    ) -> Result<Subscribed<V>, ReadError> {
        let mut inner = self.0.inner.write();
        let state = inner.state.range(&Range::prefix(prefix))?;
        let id = inner.next_id;
        inner.next_id += 1;
        inner.observers.push(Registered { id, prefix: prefix.into(), observer });
        drop(inner);
        let store = self.clone();
        Ok(Subscribed::new(state, Subscription::new(move || store.unsubscribe(id))))
    }

    async fn current(&self) -> Result<Revision, ReadError> {
        Ok(self.0.inner.read().state.revision())
    }

    fn delivered(&self) -> Option<Revision> {
        Some(self.0.delivered.load(Ordering::Acquire))
    }

    async fn compact(&self, revision: Revision) -> Result<(), ReadError> {
        self.0.inner.write().state.compact(revision)
    }

    fn oldest(&self) -> Revision {
        self.0.inner.read().state.oldest()
    }
}
