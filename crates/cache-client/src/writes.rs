//! What one client has written and its reads must show: pure state, no waiting.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use kubestrata_api_types::{ObjectKey, ResourceType, ResourceVersion, Tick};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Config;

/// Entries from which on those that the cache has reached are looked for.
const SWEEP_FROM: usize = 64;

/// Which writes concern a read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// Those of one object.
    Key(&'a ObjectKey),
    /// Those in one namespace, or with `None` all.
    Namespace(Option<&'a str>),
}

impl Scope<'_> {
    fn has(self, key: &ObjectKey) -> bool {
        match self {
            Self::Key(own) => own == key,
            Self::Namespace(namespace) => {
                namespace.is_none_or(|namespace| key.namespace() == Some(namespace))
            }
        }
    }
}

/// What a read needs before it may be answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Need {
    /// The store must have this version, in this epoch.
    pub(crate) version: Option<(u64, ResourceVersion)>,
    /// The one object that is asked for was written and is not selected by the cache.
    pub(crate) not_selected: bool,
}

/// The writes of one client. Bounded for each kind by the configuration.
#[derive(Debug)]
pub(crate) struct Writes {
    state: Mutex<State>,
    tracked: usize,
    remember: std::time::Duration,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Searched in order, as a client writes some few kinds. None is ever removed, so that its place stays.
    kinds: Vec<Kind>,
}

#[derive(Debug, Default)]
struct Kind {
    /// Group and plural name: versions of one resource are comparable whatever API version is used.
    group: String,
    plural: String,
    in_flight: HashMap<u64, InFlight>,
    written: HashMap<ObjectKey, Written>,
    /// When to look for entries of `written` that are not needed any more.
    sweep_at: usize,
    /// The newest of all writes that are no longer remembered one by one.
    all: Option<(u64, ResourceVersion)>,
    /// Shared with the lists that filter by it.
    deleted: Arc<HashSet<Arc<str>>>,
    /// The same uids, oldest first.
    deleted_at: VecDeque<(Tick, Arc<str>)>,
}

#[derive(Debug)]
struct InFlight {
    /// Unknown for an object whose name the server makes.
    key: Option<ObjectKey>,
    namespace: Option<Arc<str>>,
    /// Ends when the write has.
    ended: watch::Receiver<()>,
}

#[derive(Debug, Clone)]
struct Written {
    epoch: u64,
    version: ResourceVersion,
    /// Whether an event of it will come.
    selected: bool,
    /// Whether the present state is outside the cache's selectors.
    outside: bool,
}

/// A write that was recorded.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) key: ObjectKey,
    pub(crate) version: ResourceVersion,
    /// The epoch of the store that will show it.
    pub(crate) epoch: u64,
    /// The cache selects the object as it is now.
    pub(crate) selected: bool,
    /// The cache holds an earlier state of it, so that an event will come whether it is selected or not.
    pub(crate) held: bool,
}

/// A write on its way. Dropping it ends the waits of reads for it.
#[derive(Debug)]
pub(crate) struct Guard<'a> {
    writes: &'a Writes,
    /// Place of its kind.
    kind: usize,
    id: u64,
    /// Its receivers learn by its end.
    _running: watch::Sender<()>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut state = self.writes.state.lock();
        if let Some(kind) = state.kinds.get_mut(self.kind) {
            kind.in_flight.remove(&self.id);
        }
    }
}

impl State {
    fn place(&self, resource: &ResourceType) -> Option<usize> {
        self.kinds
            .iter()
            .position(|kind| kind.plural == resource.plural && kind.group == resource.group)
    }

    fn kind(&self, resource: &ResourceType) -> Option<&Kind> {
        self.kinds.get(self.place(resource)?)
    }

    /// The kind and its place, made if this is its first write.
    fn kind_mut(&mut self, resource: &ResourceType) -> (usize, &mut Kind) {
        let place = self.place(resource).unwrap_or_else(|| {
            let (group, plural) = (resource.group.to_string(), resource.plural.to_string());
            self.kinds.push(Kind { group, plural, ..Kind::default() });
            self.kinds.len() - 1
        });
        (place, &mut self.kinds[place])
    }
}

impl Writes {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            state: Mutex::new(State::default()),
            tracked: config.tracked_writes,
            remember: config.remember_deletes,
        }
    }

    /// A write begins. Reads that begin from now on wait for its end.
    pub(crate) fn begin(
        &self,
        resource: &ResourceType,
        key: Option<ObjectKey>,
        namespace: Option<Arc<str>>,
    ) -> Guard<'_> {
        let (running, ended) = watch::channel(());
        let mut state = self.state.lock();
        state.next += 1;
        let id = state.next;
        let (place, kind) = state.kind_mut(resource);
        kind.in_flight.insert(id, InFlight { key, namespace, ended });
        Guard { writes: self, kind: place, id, _running: running }
    }

    /// The writes that are on their way now and concern a read.
    pub(crate) fn in_flight(
        &self,
        resource: &ResourceType,
        scope: Scope<'_>,
    ) -> Vec<watch::Receiver<()>> {
        let state = self.state.lock();
        let Some(kind) = state.kind(resource) else { return Vec::new() };
        let concerns = |write: &&InFlight| match (&write.key, scope) {
            (Some(key), scope) => scope.has(key),
            // A reader cannot know the name before the server has made it.
            (None, Scope::Key(_)) => false,
            (None, Scope::Namespace(namespace)) => {
                namespace.is_none() || write.namespace.as_deref() == namespace
            }
        };
        kind.in_flight.values().filter(concerns).map(|write| write.ended.clone()).collect()
    }

    /// Records a write that the server has committed. `reached` tells whether the cache has a version of a key by now.
    pub(crate) fn written(
        &self,
        resource: &ResourceType,
        record: Record,
        reached: impl Fn(&ObjectKey, &ResourceVersion) -> bool,
    ) {
        let Record { key, version, epoch, selected, held } = record;
        let mut state = self.state.lock();
        let kind = state.kind_mut(resource).1;
        let before = kind.written.get(&key);
        if before.is_some_and(|before| before.version.is_at_least(&version) == Some(true)) {
            return;
        }
        // If an earlier write will lead to an event, so will the one that takes the object out of the selection.
        let pending = before.is_some_and(|before| before.selected);
        let event = selected || held || pending;
        let written = Written { epoch, version, selected: event, outside: !selected };
        kind.written.insert(key, written);
        if kind.written.len() >= kind.sweep_at.max(SWEEP_FROM) {
            kind.written.retain(|key, written| written.outside || !reached(key, &written.version));
            kind.sweep_at = 2 * kind.written.len();
        }
        if kind.written.len() > self.tracked {
            kind.merge();
        }
    }

    /// Records that the server has removed the object with this uid.
    pub(crate) fn deleted(&self, resource: &ResourceType, key: &ObjectKey, uid: &str, now: Tick) {
        let mut state = self.state.lock();
        let kind = state.kind_mut(resource).1;
        kind.written.remove(key);
        let uid: Arc<str> = Arc::from(uid);
        let deleted = Arc::make_mut(&mut kind.deleted);
        if deleted.insert(Arc::clone(&uid)) {
            kind.deleted_at.push_back((now, uid));
        }
        while let Some((at, uid)) = kind.deleted_at.front() {
            if now.since(*at) <= self.remember && kind.deleted_at.len() <= self.tracked {
                break;
            }
            deleted.remove(uid);
            kind.deleted_at.pop_front();
        }
    }

    /// Whether this client has deleted the object with this uid.
    pub(crate) fn hides(&self, resource: &ResourceType, uid: Option<&str>) -> bool {
        let state = self.state.lock();
        let kind = state.kind(resource);
        kind.zip(uid).is_some_and(|(kind, uid)| kind.deleted.contains(uid))
    }

    /// The uids that this client has deleted, where there are any.
    pub(crate) fn hidden(&self, resource: &ResourceType) -> Arc<HashSet<Arc<str>>> {
        let state = self.state.lock();
        let kind = state.kind(resource);
        kind.map(|kind| Arc::clone(&kind.deleted)).unwrap_or_default()
    }

    /// What a read must wait for.
    pub(crate) fn need(&self, resource: &ResourceType, scope: Scope<'_>) -> Need {
        let state = self.state.lock();
        let Some(kind) = state.kind(resource) else { return Need::default() };
        let one = |key| kind.written.get(key).into_iter();
        let (single, many) = match scope {
            Scope::Key(key) => (Some(one(key)), None),
            Scope::Namespace(_) => {
                let inside = kind.written.iter().filter(move |(key, _)| scope.has(key));
                (None, Some(inside.map(|(_, written)| written)))
            }
        };
        let mut need = Need { version: kind.all.clone(), not_selected: false };
        for written in single.into_iter().flatten().chain(many.into_iter().flatten()) {
            need.not_selected |= matches!(scope, Scope::Key(_)) && written.outside;
            if written.selected {
                need.version = newer(need.version, (written.epoch, written.version.clone()));
            }
        }
        need
    }

    /// Forgets what a read has found the cache to have, or, after the cache went back, what it never will.
    pub(crate) fn forget(
        &self,
        resource: &ResourceType,
        scope: Scope<'_>,
        reached: impl Fn(u64, &ResourceVersion) -> bool,
    ) {
        let mut state = self.state.lock();
        let Some(place) = state.place(resource) else { return };
        let kind = &mut state.kinds[place];
        if kind.all.as_ref().is_some_and(|(epoch, version)| reached(*epoch, version)) {
            kind.all = None;
        }
        let drop = |written: &Written| !written.outside && reached(written.epoch, &written.version);
        match scope {
            Scope::Key(key) => {
                if kind.written.get(key).is_some_and(drop) {
                    kind.written.remove(key);
                }
            }
            Scope::Namespace(_) => {
                kind.written.retain(|key, written| !(scope.has(key) && drop(written)));
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let state = self.state.lock();
        state.kinds.iter().map(|kind| kind.written.len() + kind.in_flight.len()).sum()
    }
}

impl Kind {
    /// Gives up the single entries for the newest version of all.
    fn merge(&mut self) {
        for (_, written) in self.written.drain() {
            if written.selected {
                self.all = newer(self.all.take(), (written.epoch, written.version));
            }
        }
        self.sweep_at = 0;
    }
}

/// The one with the greater epoch or, within it, version. Versions that cannot be compared leave the first.
fn newer(
    one: Option<(u64, ResourceVersion)>,
    other: (u64, ResourceVersion),
) -> Option<(u64, ResourceVersion)> {
    match one {
        Some(one) if one.0 > other.0 => Some(one),
        Some(one) if one.0 == other.0 && other.1.is_at_least(&one.1) != Some(true) => Some(one),
        _ => Some(other),
    }
}
