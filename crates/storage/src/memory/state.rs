//! The multi-version state: pure transitions, time passed in.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use kubestrata_api_types::Tick;
use smallvec::SmallVec;

use super::Config;
use crate::storage::{
    Change, ChangeKind, Entry, Expected, Make, Page, Range, ReadError, Revision, Value, WriteError,
};

/// All keys with all their remembered versions.
pub(super) struct State<V> {
    config: Config,
    /// The newest revision.
    revision: Revision,
    /// Reads before this are refused.
    oldest: Revision,
    /// Versions of each key, oldest first, never empty. Almost every key has exactly one.
    keys: BTreeMap<Arc<str>, SmallVec<[Version<V>; 1]>>,
    /// What a compaction up to a revision makes forgettable, in the order of revisions.
    garbage: VecDeque<Garbage>,
    garbage_bytes: usize,
}

struct Version<V> {
    revision: Revision,
    /// `None` where the key was deleted.
    value: Option<V>,
}

/// The write at `revision` has superseded an older version of `key`.
struct Garbage {
    revision: Revision,
    at: Tick,
    key: Arc<str>,
    bytes: usize,
}

impl<V: Value> State<V> {
    pub(super) fn new(config: Config) -> Self {
        let first = config.first_revision.max(1);
        Self {
            config,
            revision: first,
            oldest: first,
            keys: BTreeMap::new(),
            garbage: VecDeque::new(),
            garbage_bytes: 0,
        }
    }

    /// Puts an entry of a backup in place, before the first write.
    pub(super) fn restore(&mut self, entry: Entry<V>) {
        let Entry { key, revision, value } = entry;
        self.revision = self.revision.max(revision);
        self.oldest = self.revision;
        self.keys.insert(key, smallvec::smallvec![Version { revision, value: Some(value) }]);
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn oldest(&self) -> Revision {
        self.oldest
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry<V>> {
        let (key, versions) = self.keys.get_key_value(key)?;
        let last = versions.last()?;
        let value = last.value.clone()?;
        Some(Entry { key: key.clone(), revision: last.revision, value })
    }

    pub(super) fn range(&self, range: &Range<'_>) -> Result<Page<V>, ReadError> {
        let at = if range.at == 0 { self.revision } else { range.at };
        if at > self.revision {
            return Err(ReadError::Future { requested: at, current: self.revision });
        }
        if at < self.oldest {
            return Err(ReadError::Compacted { requested: at, oldest: self.oldest });
        }
        let from = if range.start > range.prefix { range.start } else { range.prefix };
        let mut page = Page { items: Vec::new(), count: 0, revision: at };
        let keys = self.keys.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        for (key, versions) in keys.take_while(|(key, _)| key.starts_with(range.prefix)) {
            let version = versions.iter().rev().find(|version| version.revision <= at);
            let Some(Version { revision, value: Some(value) }) = version else { continue };
            page.count += 1;
            if range.limit == 0 || page.items.len() < range.limit {
                let (key, value) = (key.clone(), value.clone());
                page.items.push(Entry { key, revision: *revision, value });
            }
        }
        Ok(page)
    }

    pub(super) fn put(
        &mut self,
        now: Tick,
        key: &str,
        expected: Expected,
        make: Make<'_, V>,
    ) -> Result<Change<V>, WriteError<V>> {
        let current = self.get(key);
        let as_expected = match expected {
            Expected::Absent => current.is_none(),
            Expected::Revision(revision) => {
                current.as_ref().is_some_and(|current| current.revision == revision)
            }
        };
        if !as_expected {
            return Err(WriteError::Conflict { current });
        }
        let value = make(self.revision + 1);
        let stored = Some(value.clone());
        let key = current.as_ref().map_or_else(|| Arc::from(key), |current| current.key.clone());
        Ok(self.write(now, key, ChangeKind::Put, stored, value, current))
    }

    pub(super) fn delete(
        &mut self,
        now: Tick,
        key: &str,
        expected: Revision,
        last: Make<'_, V>,
    ) -> Result<Change<V>, WriteError<V>> {
        let current = match self.get(key) {
            Some(current) if current.revision == expected => current,
            current => return Err(WriteError::Conflict { current }),
        };
        let value = last(self.revision + 1);
        Ok(self.write(now, current.key.clone(), ChangeKind::Delete, None, value, Some(current)))
    }

    fn write(
        &mut self,
        now: Tick,
        key: Arc<str>,
        kind: ChangeKind,
        stored: Option<V>,
        value: V,
        current: Option<Entry<V>>,
    ) -> Change<V> {
        self.revision += 1;
        let revision = self.revision;
        let versions = self.keys.entry(key.clone()).or_default();
        if !versions.is_empty() {
            let bytes = current.as_ref().map_or(0, |current| current.value.size());
            self.garbage_bytes += bytes;
            self.garbage.push_back(Garbage { revision, at: now, key: key.clone(), bytes });
        }
        versions.push(Version { revision, value: stored });
        self.enforce(now);
        Change { key, revision, kind, value, previous: current.map(|current| current.value) }
    }

    /// Forgets the oldest history while a bound of the configuration is exceeded.
    fn enforce(&mut self, now: Tick) {
        while let Some(first) = self.garbage.front() {
            let within = self.garbage.len() <= self.config.history_values
                && self.garbage_bytes <= self.config.history_bytes
                && now.since(first.at) <= self.config.history_age;
            if within {
                break;
            }
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some(Garbage { revision, key, bytes, .. }) = self.garbage.pop_front() else { return };
        self.garbage_bytes -= bytes;
        self.oldest = self.oldest.max(revision);
        let Some(versions) = self.keys.get_mut(&key) else { return };
        // Reads start at `oldest` now: of the versions up to it, only the newest can be seen.
        let seen = versions.iter().rposition(|version| version.revision <= self.oldest);
        versions.drain(..seen.unwrap_or(0));
        let gone = versions
            .first()
            .is_some_and(|version| version.value.is_none() && version.revision <= self.oldest);
        if gone {
            versions.remove(0);
        }
        if versions.is_empty() {
            self.keys.remove(&key);
        } else if versions.spilled() && versions.len() == 1 {
            versions.shrink_to_fit();
        }
    }

    pub(super) fn compact(&mut self, revision: Revision) -> Result<(), ReadError> {
        if revision > self.revision {
            return Err(ReadError::Future { requested: revision, current: self.revision });
        }
        if revision < self.oldest {
            return Err(ReadError::Compacted { requested: revision, oldest: self.oldest });
        }
        while self.garbage.front().is_some_and(|garbage| garbage.revision <= revision) {
            self.forget_first();
        }
        self.oldest = revision;
        Ok(())
    }
}
