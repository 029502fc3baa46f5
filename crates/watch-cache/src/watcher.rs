//! One watch: state, end mark, changes, bookmarks, in the right order and at the right time.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::cache::Shared;
use crate::ordered::Iter;
use crate::state::{Change, Item, Position, Snapshot};

mod schedule;

use self::schedule::Schedule;

/// Changes that are taken out of the ring under one lock.
const BATCH: usize = 100;

/// What a watch is to send beside changes.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct WatchConfig {
    /// Whether to mark the end of the initial state (KEP-3157).
    pub initial_end: bool,
    /// Whether to send bookmarks.
    pub bookmarks: bool,
    /// Time between two bookmarks. Default 60 s, as kube-apiserver.
    pub bookmark_interval: Duration,
    /// After this time the watch ends. Default 30 minutes, as kube-apiserver's `--min-request-timeout`.
    pub timeout: Duration,
    /// Only keys that start with this.
    pub prefix: Arc<str>,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self {
            initial_end: false,
            bookmarks: false,
            bookmark_interval: Duration::from_secs(60),
            timeout: Duration::from_secs(30 * 60),
            prefix: Arc::from(""),
        }
    }
}

/// What comes next on a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a consumer that misses one sends a wrong stream")]
pub enum Next<T> {
    /// An object of the initial state.
    Initial(T),
    /// The initial state, as of this revision, is complete.
    InitialEnd(u64),
    /// A change.
    Change(Arc<Change<T>>),
    /// All changes up to this revision have been handed out.
    Bookmark(u64),
    /// The watch is over.
    End(End),
}

/// Why a watch is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Its time is up.
    Timeout,
    /// It was too slow: history it had not read is gone. The client must start from what it has seen.
    Overtaken,
    /// The resource is no longer served.
    Closed,
}

/// A cursor over the history of a [`WatchCache`](crate::WatchCache).
pub struct Watcher<T> {
    shared: Arc<Shared<T>>,
    /// The changes that there were when the state was read last.
    seen: u64,
    position: Position,
    initial: Option<Iter<T>>,
    owes_end: bool,
    prefix: Arc<str>,
    ready: VecDeque<Arc<Change<T>>>,
    schedule: Schedule,
    /// The newest revision that the client has been told.
    sent: u64,
    ended: Option<End>,
}

impl<T> fmt::Debug for Watcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("position", &self.position)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl<T: Item> Watcher<T> {
    pub(crate) fn new(
        shared: Arc<Shared<T>>,
        position: Position,
        snapshot: Option<Snapshot<T>>,
        config: WatchConfig,
    ) -> Self {
        let owes_end = config.initial_end && snapshot.is_some();
        let interval = config.bookmarks.then_some(config.bookmark_interval);
        Self {
            shared,
            seen: 0,
            position,
            initial: snapshot.map(|snapshot| snapshot.items.iter_from(&config.prefix, "")),
            owes_end,
            prefix: config.prefix,
            ready: VecDeque::new(),
            schedule: Schedule::new(Instant::now(), interval, config.timeout),
            sent: 0,
            ended: None,
        }
    }

    /// The revision of the state when the watch began.
    pub fn revision(&self) -> u64 {
        self.position.revision
    }

    /// The client has been sent a change of this revision. Bookmarks go only above it; a change that a selector
    /// hides from the client does not count.
    pub fn mark_sent(&mut self, revision: u64) {
        self.sent = self.sent.max(revision);
    }

    /// What comes next. After [`Next::End`] it is that for ever.
    ///
    /// Cancel-safe: nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Next<T> {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            let due = self.schedule.next();
            tokio::select! {
                // Changes before the clock, so that a bookmark or the end never overtakes one.
                biased;
                () = self.shared.wake.beyond(self.seen) => {}
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    /// What comes next, if it is there without waiting.
    pub fn try_next(&mut self) -> Option<Next<T>> {
        if let Some(end) = self.ended {
            return Some(Next::End(end));
        }
        // Before the state is read: no change between the two is slept through.
        self.seen = self.shared.wake.changes();
        if self.shared.wake.is_closed() {
            return Some(self.end(End::Closed));
        }
        if let Some(initial) = &mut self.initial {
            if let Some((_, item)) = initial.next() {
                return Some(Next::Initial(item));
            }
            self.initial = None;
        }
        if std::mem::take(&mut self.owes_end) {
            self.sent = self.position.revision;
            return Some(Next::InitialEnd(self.position.revision));
        }
        loop {
            if let Some(change) = self.ready.pop_front() {
                if change.key.starts_with(&*self.prefix) {
                    return Some(Next::Change(change));
                }
                continue;
            }
            // A bookmark's revision is read together with the changes, so that it promises only what has been read.
            let Self { shared, position, ready, .. } = self;
            let read = shared.current(|state| {
                state.read(position, BATCH, ready)?;
                Ok::<_, crate::state::Overtaken>((state.is_at_end(position), state.revision()))
            });
            let Ok((at_end, revision)) = read else { return Some(self.end(End::Overtaken)) };
            if self.ready.is_empty() && at_end {
                return self.on_time(revision);
            }
        }
    }

    /// Everything up to `revision` has been handed out: is a bookmark due, or the end?
    fn on_time(&mut self, revision: u64) -> Option<Next<T>> {
        let now = Instant::now();
        if self.schedule.is_over(now) {
            return Some(self.end(End::Timeout));
        }
        // A watch from the future has promised nothing yet.
        if self.schedule.take_bookmark(now)
            && revision > self.sent
            && revision >= self.position.after
        {
            self.sent = revision;
            return Some(Next::Bookmark(revision));
        }
        None
    }

    fn end(&mut self, end: End) -> Next<T> {
        self.ended = Some(end);
        self.ready.clear();
        self.initial = None;
        Next::End(end)
    }
}
