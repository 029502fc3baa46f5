//! State and history of one resource: pure transitions, time passed in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::Tick;

use crate::ordered::Ordered;

/// What is cached. A clone must be cheap, as in `Arc`.
pub trait Item: Clone + Send + Sync + 'static {
    /// Heap bytes, roughly, for the bound on history.
    fn size(&self) -> usize;
}

impl Item for String {
    fn size(&self) -> usize {
        self.len()
    }
}

/// How much history is kept.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Config {
    /// So many changes stay however old they are, so that a quiet resource can be resumed. Default 100, as kube-apiserver.
    pub history_min: usize,
    /// Never more changes than this. Default 102,400, as kube-apiserver.
    pub history_max: usize,
    /// Never more bytes of objects than this. Default 64 MiB.
    pub history_bytes: usize,
    /// Changes younger than this stay within those bounds. Default 75 s, as kube-apiserver: longer than the time
    /// between two bookmarks, so that a client that resumes from a bookmark finds its place.
    pub history_age: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            history_min: 100,
            history_max: 100 * 1024,
            history_bytes: 64 << 20,
            history_age: Duration::from_secs(75),
        }
    }
}

/// One change of the resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<T> {
    /// Key of the object.
    pub key: Arc<str>,
    /// Revision of the change.
    pub revision: u64,
    /// Whether the object is gone.
    pub deleted: bool,
    /// The object after the change; its last state if it is gone.
    pub object: T,
    /// The object before the change; with it a selector can tell what enters and what leaves.
    pub previous: Option<T>,
}

impl<T> Change<T> {
    /// An object was created or changed.
    pub fn put(key: Arc<str>, revision: u64, object: T, previous: Option<T>) -> Self {
        Self { key, revision, deleted: false, object, previous }
    }

    /// An object was deleted; `last` is its last state, with the version of the deletion.
    pub fn delete(key: Arc<str>, revision: u64, last: T, previous: Option<T>) -> Self {
        Self { key, revision, deleted: true, object: last, previous }
    }
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the watch API has these")]
pub enum From {
    /// With the state, then every change after it.
    State,
    /// With the next change.
    Now,
    /// With the first change after this revision, from history. A revision of the future is allowed:
    /// what comes up to it is left out.
    After(u64),
}

/// The state at one revision.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot<T> {
    /// All objects.
    pub items: Ordered<T>,
    /// The revision of the state.
    pub revision: u64,
}

/// History no longer reaches back far enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({oldest})")]
#[non_exhaustive]
pub struct TooOld {
    /// Where the watch was to begin.
    pub requested: u64,
    /// The lowest revision that can be resumed from.
    pub oldest: u64,
}

/// A reader's place: the sequence number of the next change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) sequence: u64,
    /// Changes up to this revision are not for the reader.
    pub(crate) after: u64,
    /// The state's revision when the place was taken.
    pub(crate) revision: u64,
}

/// The ring has passed a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overtaken;

/// A change in the ring.
struct Entry<T> {
    at: Tick,
    /// The object's size when the change came in: it may grow by what is cached in it.
    bytes: usize,
    change: Arc<Change<T>>,
}

/// Current state and history.
pub(crate) struct State<T> {
    config: Config,
    items: Ordered<T>,
    revision: u64,
    ring: VecDeque<Entry<T>>,
    ring_bytes: usize,
    /// Sequence number of the ring's first change. It never goes back, not even across `replace`, so that a stale
    /// position is recognised.
    first: u64,
    /// All changes after this revision are in the ring.
    floor: u64,
}

impl<T: Item> State<T> {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            items: Ordered::default(),
            revision: 0,
            ring: VecDeque::new(),
            ring_bytes: 0,
            first: 0,
            floor: 0,
        }
    }

    /// The state is now this. Every position taken before is overtaken.
    pub(crate) fn replace(&mut self, items: Ordered<T>, revision: u64) {
        self.first += self.ring.len() as u64 + 1;
        self.ring.clear();
        self.ring_bytes = 0;
        self.items = items;
        self.revision = revision;
        self.floor = revision;
    }

    pub(crate) fn apply(&mut self, now: Tick, change: Change<T>) {
        debug_assert!(change.revision > self.revision, "changes come in the order of revisions");
        self.revision = change.revision;
        if change.deleted {
            self.items.remove(&change.key);
        } else {
            self.items.insert(change.key.clone(), change.object.clone());
        }
        let bytes = change.object.size();
        self.ring_bytes += bytes;
        self.ring.push_back(Entry { at: now, bytes, change: Arc::new(change) });
        self.enforce(now);
    }

    /// All changes up to `revision` have been applied.
    pub(crate) fn progress(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
    }

    fn enforce(&mut self, now: Tick) {
        while let Some(first) = self.ring.front() {
            let young = now.since(first.at) <= self.config.history_age;
            let within = self.ring.len() <= self.config.history_max
                && self.ring_bytes <= self.config.history_bytes
                && (young || self.ring.len() <= self.config.history_min);
            if within {
                break;
            }
            self.evict();
        }
    }

    fn evict(&mut self) {
        if let Some(gone) = self.ring.pop_front() {
            self.first += 1;
            self.ring_bytes -= gone.bytes;
            self.floor = match self.ring.front() {
                Some(next) => next.change.revision - 1,
                None => gone.change.revision,
            };
        }
    }

    /// Forgets history up to and including `revision`.
    pub(crate) fn compact(&mut self, revision: u64) {
        while self.ring.front().is_some_and(|first| first.change.revision <= revision) {
            self.evict();
        }
        self.floor = self.floor.max(revision.min(self.revision));
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn snapshot(&self) -> Snapshot<T> {
        Snapshot { items: self.items.clone(), revision: self.revision }
    }

    pub(crate) fn get(&self, key: &str) -> Option<T> {
        self.items.get(key).cloned()
    }

    /// Takes a position, and for [`From::State`] the state that it goes on from: in one step, so that there is
    /// neither a gap nor a duplicate between the two.
    pub(crate) fn start(&self, from: From) -> Result<(Position, Option<Snapshot<T>>), TooOld> {
        let revision = self.revision;
        let end = self.first + self.ring.len() as u64;
        match from {
            From::State => {
                let position = Position { sequence: end, after: revision, revision };
                Ok((position, Some(self.snapshot())))
            }
            From::Now => Ok((Position { sequence: end, after: revision, revision }, None)),
            From::After(after) if after < self.floor => {
                Err(TooOld { requested: after, oldest: self.floor })
            }
            From::After(after) => {
                let skip = self.ring.partition_point(|entry| entry.change.revision <= after);
                let sequence = self.first + skip as u64;
                Ok((Position { sequence, after, revision }, None))
            }
        }
    }

    /// Reads up to `limit` changes at a position and moves it.
    pub(crate) fn read(
        &self,
        position: &mut Position,
        limit: usize,
        out: &mut VecDeque<Arc<Change<T>>>,
    ) -> Result<(), Overtaken> {
        let skip = position.sequence.checked_sub(self.first).ok_or(Overtaken)?;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(self.ring.len());
        for entry in self.ring.range(skip..).take(limit) {
            position.sequence += 1;
            if entry.change.revision > position.after {
                out.push_back(entry.change.clone());
            }
        }
        Ok(())
    }

    /// Whether a position has read everything.
    pub(crate) fn is_at_end(&self, position: &Position) -> bool {
        position.sequence == self.first + self.ring.len() as u64
    }
}
