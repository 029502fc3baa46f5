//! Tests of the queue, with a consumer that applies batches as client-go's informer does.

mod contract;
mod differences;
mod handle;
mod model;
mod vectors;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use kubestrata_api_types::{
    Bookmark, Event, ObjectKey, ResourceVersion, Snapshot, Unreadable, Update,
};
use kubestrata_testkit::Thing;

use crate::{
    Batch, Deleted, Delta, DeltaFifo, KnownObjects, Limits, Merging, Popped, Queue, RealFifo,
    Tombstone,
};

fn thing(text: &str) -> Thing {
    text.parse().unwrap()
}

/// Updates from text: `+a@1`, `~a@2`, `-a@3`, `bookmark@4`, and `[a@1 b@2]@5` for a state.
fn update(text: &str) -> Update<Thing> {
    if let Some((items, version)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return Update::Replace(Snapshot {
            items: items.split_whitespace().map(thing).collect(),
            unreadable: Vec::new(),
            resource_version: ResourceVersion::new(version.trim_start_matches('@')),
        });
    }
    Update::Event(if let Some(text) = text.strip_prefix('+') {
        Event::Added(thing(text))
    } else if let Some(text) = text.strip_prefix('~') {
        Event::Modified(thing(text))
    } else if let Some(text) = text.strip_prefix('-') {
        Event::Deleted(thing(text))
    } else if let Some(text) = text.strip_prefix('?') {
        Event::Unreadable(Unreadable {
            key: text.parse().ok(),
            resource_version: ResourceVersion::UNSET,
            problem: "test".into(),
        })
    } else {
        let version = text.strip_prefix("bookmark@").unwrap();
        Event::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: false })
    })
}

fn fifo() -> RealFifo<Thing> {
    RealFifo::new(Limits::default(), |_| 1)
}

/// Every queue there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Atomic,
    Apart,
    Delta,
    DeltaToNewest,
}

impl Which {
    const ALL: [Self; 4] = [Self::Atomic, Self::Apart, Self::Delta, Self::DeltaToNewest];

    /// A queue, with the consumer whose store it knows.
    fn queue(self, limits: Limits) -> (Box<dyn Queue<Thing>>, Applied) {
        let applied = Applied::default();
        let store = Arc::new(applied.store.clone());
        let queue: Box<dyn Queue<Thing>> = match self {
            Self::Atomic => Box::new(RealFifo::new(limits, |_| 1)),
            Self::Apart => Box::new(RealFifo::with_known_objects(limits, |_| 1, store)),
            Self::Delta => Box::new(DeltaFifo::new(limits, |_| 1, store, Merging::Deletions)),
            Self::DeltaToNewest => {
                Box::new(DeltaFifo::new(limits, |_| 1, store, Merging::ToNewest))
            }
        };
        (queue, applied)
    }
}

fn push(queue: &mut dyn Queue<Thing>, updates: &[&str]) {
    for text in updates {
        queue.push(update(text));
    }
}

/// The store of a consumer, shared with queues that ask it.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<BTreeMap<ObjectKey, Thing>>>);

impl KnownObjects<Thing> for Store {
    fn for_each_key(&self, f: &mut dyn FnMut(&ObjectKey)) {
        self.0.lock().unwrap().keys().for_each(f);
    }

    fn get(&self, key: &ObjectKey) -> Option<Thing> {
        self.0.lock().unwrap().get(key).cloned()
    }
}

/// A consumer by the table of client-go's `processDeltas`: store first, then the notification, on one line each.
#[derive(Default)]
struct Applied {
    store: Store,
    log: String,
}

impl Applied {
    /// Pops and applies all there is.
    fn drain(&mut self, queue: &mut dyn Queue<Thing>) -> &mut Self {
        while self.one(queue) {}
        self
    }

    /// Pops and applies one batch.
    fn one(&mut self, queue: &mut dyn Queue<Thing>) -> bool {
        let Popped::Batch(batch) = queue.pop() else { return false };
        self.batch(batch);
        queue.processed();
        true
    }

    /// Applies one batch.
    fn batch(&mut self, batch: Batch<Thing>) {
        for delta in batch.deltas {
            self.apply(delta, batch.initial);
        }
    }

    /// What was told since the last call.
    fn told(&mut self) -> String {
        std::mem::take(&mut self.log)
    }

    fn line(&mut self, line: &str) {
        writeln!(self.log, "{line}").unwrap();
    }

    fn put(&mut self, object: &Thing, initial: bool) {
        let key = kubestrata_api_types::Object::key(object);
        let old = self.store.0.lock().unwrap().insert(key, object.clone());
        self.tell(old, object, initial);
    }

    fn tell(&mut self, old: Option<Thing>, object: &Thing, initial: bool) {
        match old {
            Some(old) => self.line(&format!("update {old} {object}")),
            None if initial => self.line(&format!("add {object} initial")),
            None => self.line(&format!("add {object}")),
        }
    }

    fn apply(&mut self, delta: Delta<Thing>, initial: bool) {
        match delta {
            Delta::Added(object)
            | Delta::Updated(object)
            | Delta::Replaced(object)
            | Delta::Sync(object) => self.put(&object, initial),
            Delta::Deleted(deleted) => {
                self.store.0.lock().unwrap().remove(&deleted.key());
                self.line(&match deleted {
                    Deleted::Observed(object) => format!("delete {object}"),
                    Deleted::Missed(tombstone) => show(&tombstone),
                });
            }
            Delta::ReplacedAll(snapshot) => self.replace(snapshot, initial),
            Delta::SyncAll => {
                let all: Vec<_> = self.store.0.lock().unwrap().values().cloned().collect();
                for object in all {
                    self.line(&format!("update {object} {object}"));
                }
            }
            Delta::Bookmark(version) => self.line(&format!("version {version}")),
            Delta::Unreadable(unreadable) => self.line(&unreadable.to_string()),
        }
    }

    fn replace(&mut self, snapshot: Snapshot<Thing>, initial: bool) {
        let key = kubestrata_api_types::Object::key;
        let new = snapshot.items.iter().map(|object| (key(object), object.clone())).collect();
        let old = std::mem::replace(&mut *self.store.0.lock().unwrap(), new);
        self.line(&format!("version {}", snapshot.resource_version));
        for (key, object) in &old {
            if self.store.get(key).is_none() {
                let tombstone = Tombstone { key: key.clone(), last: Some(object.clone()) };
                self.line(&show(&tombstone));
            }
        }
        for object in &snapshot.items {
            self.tell(old.get(&key(object)).cloned(), object, initial);
        }
        for unreadable in snapshot.unreadable {
            self.line(&unreadable.to_string());
        }
    }
}

fn show(tombstone: &Tombstone<Thing>) -> String {
    let last = tombstone.last.as_ref().map_or_else(|| "nothing".to_owned(), Thing::to_string);
    format!("delete {} last {last}", tombstone.key)
}
