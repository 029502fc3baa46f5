//! The trait, and the words of its methods.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

/// A point in the one global history of a store. The first write gets 2, as in etcd; 0 is never a revision.
pub type Revision = u64;

/// What a store keeps. A clone must be cheap, as in `Arc`.
pub trait Value: Clone + fmt::Debug + Send + Sync + 'static {
    /// Heap bytes, roughly, for the bound on history.
    fn size(&self) -> usize;
}

impl Value for String {
    fn size(&self) -> usize {
        self.len()
    }
}

/// Makes the value from the revision that its write gets, so that an object can carry its own version.
///
/// It may be called more than once, and the memory store calls it within its lock: it must be quick and must not call the store.
pub type Make<'a, V> = &'a (dyn Fn(Revision) -> V + Send + Sync);

/// What must be true of a key for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "etcd's transactions of Kubernetes have these two")]
pub enum Expected {
    /// The key is not there.
    Absent,
    /// The key is there, last written at this revision.
    Revision(Revision),
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a triple")]
pub struct Entry<V> {
    /// The key.
    pub key: Arc<str>,
    /// The revision of the write that made the value.
    pub revision: Revision,
    /// The value.
    pub value: V,
}

/// Which keys to read, and as of when.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Range<'a> {
    /// Keys must start with this.
    pub prefix: &'a str,
    /// Keys must be at or after this, in byte order. Empty for the start of the prefix.
    pub start: &'a str,
    /// At most so many items; 0 for all.
    pub limit: usize,
    /// As of this revision; 0 for now.
    pub at: Revision,
}

impl<'a> Range<'a> {
    /// All keys under a prefix, as of now.
    pub fn prefix(prefix: &'a str) -> Self {
        Self { prefix, start: "", limit: 0, at: 0 }
    }

    /// Only keys at or after `start`.
    #[must_use]
    pub fn start(mut self, start: &'a str) -> Self {
        self.start = start;
        self
    }

    /// At most `limit` items; 0 for all.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// As of `revision`; 0 for now.
    #[must_use]
    pub fn at(mut self, revision: Revision) -> Self {
        self.at = revision;
        self
    }
}

/// The answer to a range read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page<V> {
    /// Items in the byte order of their keys.
    pub items: Vec<Entry<V>>,
    /// How many keys the range holds without its limit, this page included.
    pub count: usize,
    /// The revision as of which the page was read.
    pub revision: Revision,
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an observer that misses a kind of change is wrong")]
pub enum ChangeKind {
    /// The key has the value.
    Put,
    /// The key is gone; the value is what [`Storage::delete`] was given for its last state.
    Delete,
}

/// One committed write, as observers see it.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "made by every storage, tests included")]
pub struct Change<V> {
    /// The key.
    pub key: Arc<str>,
    /// The revision of this write. Strictly increasing over all changes of a store.
    pub revision: Revision,
    /// What it did.
    pub kind: ChangeKind,
    /// The new value, or the last state.
    pub value: V,
    /// The value before this write.
    pub previous: Option<V>,
}

/// Sees every change under a prefix, in order.
pub trait Observer<V>: Send + Sync {
    /// A change was committed. Called within the commit: it must be quick and must not call the store.
    fn changed(&self, change: &Change<V>);

    /// All changes up to `revision` have been reported.
    fn progressed(&self, revision: Revision);
}

/// Ends a subscription when it is dropped.
pub struct Subscription(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Subscription {
    /// A subscription that `cancel` ends.
    pub fn new(cancel: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(cancel)))
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            cancel();
        }
    }
}

/// A subscription, with the state from which its changes go on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Subscribed<V> {
    /// Everything under the prefix as of `revision`. The observer sees exactly the changes after it.
    pub state: Page<V>,
    /// Ends the subscription when dropped.
    pub subscription: Subscription,
}

impl<V> Subscribed<V> {
    /// A subscription that goes on from `state`.
    pub fn new(state: Page<V>, subscription: Subscription) -> Self {
        Self { state, subscription }
    }
}

/// A read did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The revision is older than the history.
    #[error("revision {requested} has been compacted, history starts at {oldest}")]
    Compacted {
        /// What was asked for.
        requested: Revision,
        /// The oldest revision that can be read.
        oldest: Revision,
    },
    /// The revision has not been reached.
    #[error("revision {requested} is in the future, the current one is {current}")]
    Future {
        /// What was asked for.
        requested: Revision,
        /// The newest revision.
        current: Revision,
    },
    /// The store cannot be reached.
    #[error("the storage is not available: {0}")]
    Unavailable(String),
}

/// A write did not happen.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError<V> {
    /// The key is not as expected.
    #[error("the key is not as the write expects")]
    Conflict {
        /// What is there.
        current: Option<Entry<V>>,
    },
    /// The store cannot be reached, and whether the write happened is not known.
    #[error("the storage is not available: {0}")]
    Unavailable(String),
}

/// A multi-version key-value store with one linear history: what Kubernetes asks of etcd.
///
/// Keys are `/registry/...`, ordered by bytes. Every method is atomic, and a dropped future either has no effect or the whole one.
#[async_trait]
pub trait Storage<V: Value>: fmt::Debug + Send + Sync + 'static {
    /// The newest value of a key.
    ///
    /// # Errors
    ///
    /// [`ReadError::Unavailable`].
    async fn get(&self, key: &str) -> Result<Option<Entry<V>>, ReadError>;

    /// The keys of a range, as of one revision.
    ///
    /// # Errors
    ///
    /// Every [`ReadError`].
    async fn range(&self, range: Range<'_>) -> Result<Page<V>, ReadError>;

    /// Writes a key if it is as expected.
    ///
    /// # Errors
    ///
    /// Every [`WriteError`].
    async fn put(
        &self,
        key: &str,
        expected: Expected,
        make: Make<'_, V>,
    ) -> Result<Entry<V>, WriteError<V>>;

    /// Deletes a key that was last written at `expected`; `last` makes the state that observers see.
    ///
    /// # Errors
    ///
    /// Every [`WriteError`].
    async fn delete(
        &self,
        key: &str,
        expected: Revision,
        last: Make<'_, V>,
    ) -> Result<Entry<V>, WriteError<V>>;

    /// Reads a prefix and subscribes to every change after that read, with no gap and no duplicate.
    ///
    /// # Errors
    ///
    /// [`ReadError::Unavailable`].
    async fn subscribe(
        &self,
        prefix: &str,
        observer: Arc<dyn Observer<V>>,
    ) -> Result<Subscribed<V>, ReadError>;

    /// The newest revision.
    ///
    /// # Errors
    ///
    /// [`ReadError::Unavailable`].
    async fn current(&self) -> Result<Revision, ReadError>;

    /// A revision up to which every observer has been told everything, if that can be said without asking anyone.
    fn delivered(&self) -> Option<Revision>;

    /// Forgets what only reads before `revision` can see.
    ///
    /// # Errors
    ///
    /// [`ReadError::Compacted`] if that has happened, [`ReadError::Future`], [`ReadError::Unavailable`].
    async fn compact(&self, revision: Revision) -> Result<(), ReadError>;

    /// The oldest revision that can be read.
    fn oldest(&self) -> Revision;
}
