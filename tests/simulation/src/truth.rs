//! What really happened on the server, as the one who did it knows it.

use std::collections::BTreeMap;

use kubestrata_api_types::Object;

/// One state of an object, as far as the oracles look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Resource version.
    pub(crate) version: u64,
    /// UID.
    pub(crate) uid: String,
    /// Label `app`, by which objects enter and leave selections.
    pub(crate) app: Option<String>,
    /// Label `n`: the number of the write, so that no two states are alike.
    pub(crate) number: u64,
}

impl Seen {
    /// The state that an object shows.
    pub(crate) fn of(object: &impl Object) -> Self {
        Self {
            version: object.resource_version().as_u64().unwrap_or_default(),
            uid: object.uid().unwrap_or_default().to_owned(),
            app: object.label("app").map(str::to_owned),
            number: object.label("n").and_then(|n| n.parse().ok()).unwrap_or_default(),
        }
    }
}

/// Objects by `namespace/name`.
pub(crate) type Objects = BTreeMap<String, Seen>;

/// Which objects of a kind a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Only this namespace.
    pub(crate) namespace: Option<&'static str>,
    /// The label selector, one of the three that this module knows.
    pub(crate) selector: &'static str,
    /// The field selector, one of the three that this module knows.
    pub(crate) fields: &'static str,
    /// Only objects whose uid has this highest bit in its hash: one of two shards.
    pub(crate) half: Option<u64>,
}

impl Scope {
    /// The selectors: everything, those with a label, those without it.
    pub(crate) const SELECTORS: [&'static str; 3] = ["", "app=x", "app!=x"];

    /// The field selectors beside the empty one.
    pub(crate) const FIELDS: [&'static str; 2] = ["metadata.name!=o1", "metadata.name=o2"];

    /// Whether a state of an object belongs to it.
    pub(crate) fn sees(self, key: &str, state: &Seen) -> bool {
        let is_x = state.app.as_deref() == Some("x");
        let (namespace, name) = key.split_once('/').unwrap_or_default();
        self.namespace.is_none_or(|own| own == namespace)
            && match self.selector {
                "app=x" => is_x,
                "app!=x" => !is_x,
                _ => true,
            }
            && match self.fields {
                "metadata.name!=o1" => name != "o1",
                "metadata.name=o2" => name == "o2",
                _ => true,
            }
            && self.half.is_none_or(|half| hash(&state.uid) >> 63 == half)
    }

    /// The part of `objects` that belongs to it.
    pub(crate) fn select(self, objects: &Objects) -> Objects {
        let selected = objects.iter().filter(|(key, state)| self.sees(key, state));
        selected.map(|(key, state)| (key.clone(), state.clone())).collect()
    }
}

/// 64-bit FNV-1a, by which KEP-5866 makes shards.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The history of one kind. A new epoch begins when the server is put back to an older state.
#[derive(Debug)]
pub(crate) struct Truth {
    epochs: Vec<Epoch>,
}

#[derive(Debug)]
struct Epoch {
    /// The revision at which it began, with this state.
    begin: u64,
    base: Objects,
    /// The last revision of the server in it, once it is over.
    end: Option<u64>,
    changes: Vec<Change>,
    now: Objects,
}

/// One write.
#[derive(Debug, Clone)]
struct Change {
    revision: u64,
    key: String,
    /// `None` where the object was deleted.
    state: Option<Seen>,
}

impl Truth {
    /// A history that begins empty.
    pub(crate) fn new(revision: u64) -> Self {
        Self { epochs: vec![Epoch::new(revision, Objects::new())] }
    }

    fn last(&mut self) -> &mut Epoch {
        self.epochs.last_mut().expect("a history has at least one epoch")
    }

    /// An object was written.
    pub(crate) fn put(&mut self, key: &str, state: Seen) {
        let epoch = self.last();
        epoch.now.insert(key.to_owned(), state.clone());
        let revision = state.version;
        epoch.changes.push(Change { revision, key: key.to_owned(), state: Some(state) });
    }

    /// An object was deleted.
    pub(crate) fn delete(&mut self, key: &str, revision: u64) {
        let epoch = self.last();
        epoch.now.remove(key);
        epoch.changes.push(Change { revision, key: key.to_owned(), state: None });
    }

    /// The server, which was at `end`, goes on at `begin` with `objects`.
    pub(crate) fn rewind(&mut self, end: u64, begin: u64, objects: Objects) {
        self.last().end = Some(end);
        self.epochs.push(Epoch::new(begin, objects));
    }

    /// The objects now.
    pub(crate) fn now(&self) -> &Objects {
        &self.epochs[self.epoch()].now
    }

    /// The number of the present epoch.
    pub(crate) fn epoch(&self) -> usize {
        self.epochs.len() - 1
    }

    /// The first epoch in which a client saw exactly `objects` at `revision`, from the one on in which it was found last.
    pub(crate) fn find(
        &self,
        follower: &mut Follower,
        revision: u64,
        objects: &Objects,
    ) -> Option<usize> {
        let found = (follower.confirmed..self.epochs.len())
            .find(|epoch| follower.at(self, *epoch, revision) == Some(objects))?;
        follower.confirmed = found;
        Some(found)
    }

    /// What a client of `scope` saw at a revision, in the last epoch that had it.
    pub(crate) fn expected(&self, revision: u64, scope: Scope) -> Option<Objects> {
        let mut follower = Follower::new(scope);
        (0..self.epochs.len()).rev().find_map(|epoch| follower.at(self, epoch, revision).cloned())
    }

    /// The first epoch in which the object had this state, not before the place `after`.
    pub(crate) fn find_state(&self, after: Place, key: &str, state: &Seen) -> Option<usize> {
        self.epochs_after(after, state.version).find(|epoch| {
            let epoch = &self.epochs[*epoch];
            epoch.base.get(key) == Some(state)
                || epoch
                    .changes
                    .iter()
                    .any(|change| change.key == key && change.state.as_ref() == Some(state))
        })
    }

    /// The same for a deletion, or a change that took the object with this UID out of `scope`.
    pub(crate) fn find_end(
        &self,
        after: Place,
        key: &str,
        (revision, uid): (u64, &str),
        scope: Scope,
    ) -> Option<usize> {
        self.epochs_after(after, revision).find(|epoch| {
            let epoch = &self.epochs[*epoch];
            let mut before = epoch.base.get(key);
            for change in epoch.changes.iter().filter(|change| change.key == key) {
                let state = change.state.as_ref();
                if change.revision == revision {
                    let was = before.is_some_and(|b| b.uid == uid && scope.sees(key, b));
                    return was && !state.is_some_and(|state| scope.sees(key, state));
                }
                before = state;
            }
            false
        })
    }

    /// Epochs in which `version` comes after a place, or is the version of that place.
    fn epochs_after(&self, after: Place, version: u64) -> impl Iterator<Item = usize> {
        (after.epoch..self.epochs.len())
            .filter(move |epoch| *epoch > after.epoch || version >= after.version)
    }

    /// Objects that a client of `scope` saw at every revision from an instant up to `revision`.
    pub(crate) fn throughout(
        &self,
        Instant { epoch, writes }: Instant,
        revision: u64,
        scope: Scope,
    ) -> Vec<(String, String)> {
        let epoch = &self.epochs[epoch];
        if epoch.end.is_some() {
            // The first state may be of the next epoch, of which nothing is known here.
            return Vec::new();
        }
        let (before, after) = epoch.changes.split_at(writes.min(epoch.changes.len()));
        let mut objects = epoch.base.clone();
        for change in before {
            match &change.state {
                Some(state) => objects.insert(change.key.clone(), state.clone()),
                None => objects.remove(&change.key),
            };
        }
        objects.retain(|key, state| scope.sees(key, state));
        for change in after.iter().take_while(|change| change.revision <= revision) {
            let stays = change.state.as_ref().is_some_and(|state| {
                scope.sees(&change.key, state)
                    && objects.get(&change.key).is_some_and(|old| old.uid == state.uid)
            });
            if !stays {
                objects.remove(&change.key);
            }
        }
        objects.into_iter().map(|(key, state)| (key, state.uid)).collect()
    }

    /// Now.
    pub(crate) fn instant(&self) -> Instant {
        let epoch = self.epoch();
        Instant { epoch, writes: self.epochs[epoch].changes.len() }
    }
}

impl Epoch {
    fn new(begin: u64, base: Objects) -> Self {
        Self { begin, now: base.clone(), base, end: None, changes: Vec::new() }
    }
}

/// An instant in the history of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instant {
    epoch: usize,
    /// How many writes the epoch had seen.
    writes: usize,
}

/// A place in the history of an object: the version within an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Place {
    /// The epoch.
    pub(crate) epoch: usize,
    /// The version.
    pub(crate) version: u64,
}

/// The objects of a scope at one revision after the other, worked out step by step.
#[derive(Debug)]
pub(crate) struct Follower {
    scope: Scope,
    /// The epoch in which the client was seen last.
    confirmed: usize,
    epoch: Option<usize>,
    revision: u64,
    /// The first change that is not in `objects`.
    next: usize,
    objects: Objects,
}

impl Follower {
    /// A follower of a scope.
    pub(crate) fn new(scope: Scope) -> Self {
        let objects = Objects::new();
        Self { scope, confirmed: 0, epoch: None, revision: 0, next: 0, objects }
    }

    /// The objects at a revision of an epoch, if it had that revision.
    fn at(&mut self, truth: &Truth, number: usize, revision: u64) -> Option<&Objects> {
        let epoch = &truth.epochs[number];
        if revision < epoch.begin || epoch.end.is_some_and(|end| revision > end) {
            return None;
        }
        if self.epoch != Some(number) || revision < self.revision {
            self.epoch = Some(number);
            self.next = 0;
            self.objects = self.scope.select(&epoch.base);
        }
        self.revision = revision;
        while let Some(change) = epoch.changes.get(self.next)
            && change.revision <= revision
        {
            self.next += 1;
            match &change.state {
                Some(state) if self.scope.sees(&change.key, state) => {
                    self.objects.insert(change.key.clone(), state.clone());
                }
                _ => {
                    self.objects.remove(&change.key);
                }
            }
        }
        Some(&self.objects)
    }
}
