//! Random operations against a naive model: the plain list of all that was pushed.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use kubestrata_api_types::{Event, Object as _, ObjectKey, Snapshot, Update, World as _};
use kubestrata_testkit::{FakeWorld, Thing};

use super::{Applied, Store};
use crate::{
    Deleted, Delta, DeltaFifo, KnownObjects, Limits, Load, Merging, Popped, Queue, RealFifo,
    Tombstone,
};

/// The naive queue: one entry per update, and rules told once more in the most direct way.
#[derive(Default)]
struct Model {
    queued: VecDeque<Update<Thing>>,
    /// The state that a consumer reaches who applies everything.
    state: BTreeMap<ObjectKey, Thing>,
    seen_any: bool,
    first_is_state: bool,
    taken_first: bool,
    first_processed: bool,
}

impl Model {
    fn push(&mut self, update: &Update<Thing>) {
        match update {
            Update::Replace(snapshot) => {
                self.state =
                    snapshot.items.iter().map(|object| (object.key(), object.clone())).collect();
            }
            Update::Event(Event::Added(object) | Event::Modified(object)) => {
                self.state.insert(object.key(), object.clone());
            }
            Update::Event(Event::Deleted(object)) => {
                self.state.remove(&object.key());
            }
            Update::Event(_) => {
                self.queued.push_back(update.clone());
                return;
            }
        }
        if !self.seen_any {
            self.seen_any = true;
            self.first_is_state = matches!(update, Update::Replace(_));
            self.first_processed = !self.first_is_state;
            self.taken_first = self.first_processed;
        }
        self.queued.push_back(update.clone());
    }

    /// Checks a batch against the head of the list, and removes it there.
    fn popped(&mut self, deltas: &[Delta<Thing>], most: usize) {
        let mut keys = HashSet::new();
        for delta in deltas {
            let update = self.queued.pop_front().expect("the queue gave more than it got");
            assert_eq!(as_update(delta), Some(update), "order of arrival");
            assert!(delta.key().is_none_or(|key| keys.insert(key)), "keys are unique");
            assert!(deltas.len() == 1 || delta.is_batchable());
        }
        assert!(!deltas.is_empty() && deltas.len() <= most);
        // The batch is as long as the rules allow, but for the end of the first state.
        let next = self.queued.front().and_then(key_of);
        let could_go_on = next.is_some_and(|key| !keys.contains(&key))
            && deltas.len() < most
            && deltas.iter().all(Delta::is_batchable);
        assert!(!could_go_on, "the batch ended too early");
        // A state counts once it is processed itself: what was taken before it came does not.
        self.taken_first |= self.seen_any;
    }
}

fn key_of(update: &Update<Thing>) -> Option<ObjectKey> {
    match update {
        Update::Event(event) => event.object().map(Thing::key),
        Update::Replace(_) => None,
    }
}

fn as_update(delta: &Delta<Thing>) -> Option<Update<Thing>> {
    Some(match delta {
        Delta::Added(object) => Update::Event(Event::Added(object.clone())),
        Delta::Updated(object) => Update::Event(Event::Modified(object.clone())),
        Delta::Deleted(deleted) => Update::Event(Event::Deleted(deleted.last()?.clone())),
        Delta::ReplacedAll(snapshot) => Update::Replace(snapshot.clone()),
        Delta::Bookmark(version) => {
            Update::Event(Event::Bookmark(kubestrata_api_types::Bookmark {
                resource_version: version.clone(),
                initial_events_end: false,
            }))
        }
        _ => return None,
    })
}

/// A random update: mostly events of few keys, sometimes a state.
fn random_update(world: &FakeWorld, version: u64) -> Update<Thing> {
    let object = Thing::new(&format!("k{}", world.below(12)), version);
    Update::Event(match world.below(100) {
        0..=44 => Event::Modified(object),
        45..=69 => Event::Added(object),
        70..=89 => Event::Deleted(object),
        90..=94 => Event::Bookmark(kubestrata_api_types::Bookmark {
            resource_version: version.into(),
            initial_events_end: false,
        }),
        _ => {
            let items = (0..12)
                .filter(|_| world.chance(50))
                .map(|n| Thing::new(&format!("k{n}"), version))
                .collect();
            return Update::Replace(Snapshot {
                items,
                unreadable: Vec::new(),
                resource_version: version.into(),
            });
        }
    })
}

/// Two hundred seeds of an atomic queue: order, batches, load, sync and final state.
#[test]
fn atomic_queue_is_the_plain_list() {
    for seed in 0..200 {
        let world = FakeWorld::new(seed);
        let limits = Limits { batch: 1 + world.below(8) as usize, items: 20, bytes: usize::MAX };
        let mut queue = RealFifo::new(limits, |object: &Thing| object.name.len());
        let mut model = Model::default();
        let mut applied = Applied::default();
        // Pushes fall between pop and processed, as they do between the two async ends.
        let mut in_process = false;
        for version in 1..300 {
            if world.chance(60) {
                let update = random_update(&world, version);
                if queue.admits(queue.measure(&update)) {
                    model.push(&update);
                    queue.push(update);
                }
            } else if in_process {
                in_process = false;
                model.first_processed = model.taken_first;
                queue.processed();
            } else if let Popped::Batch(batch) = queue.pop() {
                in_process = true;
                assert_eq!(batch.initial, !model.first_processed);
                model.popped(&batch.deltas, limits.batch);
                batch.deltas.into_iter().for_each(|delta| applied.apply(delta, false));
            }
            let items: usize = model.queued.iter().map(|update| queue.measure(update).items).sum();
            assert_eq!(queue.load().items, items, "seed {seed}");
            assert_eq!(queue.has_synced(), model.first_processed && model.seen_any, "seed {seed}");
        }
        queue.processed();
        applied.drain(&mut queue);
        assert_eq!(*applied.store.0.lock().unwrap(), model.state, "seed {seed}");
        assert_eq!(queue.load(), Load::default());
    }
}

/// The same for a queue with known objects: final state, and no deletion lost on the way to the handlers.
#[test]
fn known_objects_queue_reaches_the_same_state() {
    for seed in 0..200 {
        let world = FakeWorld::new(seed);
        let mut applied = Applied::default();
        let store = Arc::new(applied.store.clone());
        let mut queue = RealFifo::with_known_objects(Limits::default(), |_| 1, store);
        let mut model = Model::default();
        for version in 1..300 {
            match world.below(10) {
                0..=5 => {
                    let update = random_update(&world, version);
                    model.push(&update);
                    queue.push(update);
                }
                6 => queue.resync(),
                _ => {
                    applied.one(&mut queue);
                }
            }
        }
        applied.drain(&mut queue);
        assert_eq!(*applied.store.0.lock().unwrap(), model.state, "seed {seed}");
        assert_eq!(
            handlers_view(&applied.log),
            model.state.keys().map(ToString::to_string).collect::<Vec<_>>()
        );
        let _ = world.random();
    }
}

/// The naive `DeltaFifo`: one list of all that waits; what is taken is gathered by key at the moment of taking.
#[derive(Default)]
struct ByKey {
    queued: Vec<(ObjectKey, Delta<Thing>)>,
    version: Option<u64>,
}

impl ByKey {
    fn put(&mut self, delta: Delta<Thing>) {
        self.queued.push((delta.key().expect("this model pushes named objects"), delta));
    }

    fn newest(&self, key: &ObjectKey) -> Option<&Delta<Thing>> {
        self.queued.iter().rev().find(|(other, _)| other == key).map(|(_, delta)| delta)
    }

    /// The oldest waiting key and all that waits for it.
    fn take(&mut self) -> Option<Vec<Delta<Thing>>> {
        let Some((key, _)) = self.queued.first().cloned() else {
            return Some(vec![Delta::Bookmark(self.version.take()?.into())]);
        };
        let (taken, left) =
            std::mem::take(&mut self.queued).into_iter().partition(|(k, _)| *k == key);
        self.queued = left;
        let taken: Vec<(ObjectKey, Delta<Thing>)> = taken;
        Some(compressed(taken.into_iter().map(|(_, delta)| delta)))
    }
}

/// client-go's `dedupDeltas`, applied to each pair in turn.
fn compressed(deltas: impl Iterator<Item = Delta<Thing>>) -> Vec<Delta<Thing>> {
    let mut out: Vec<Delta<Thing>> = Vec::new();
    for delta in deltas {
        let both = matches!((out.last(), &delta), (Some(Delta::Deleted(_)), Delta::Deleted(_)));
        let older_is_tombstone = matches!(out.last(), Some(Delta::Deleted(Deleted::Missed(_))));
        match (both, older_is_tombstone) {
            (true, true) => *out.last_mut().unwrap() = delta,
            (true, false) => {}
            (false, _) => out.push(delta),
        }
    }
    out
}

/// Two hundred seeds of a `DeltaFifo` with client-go's merging: each batch is what the naive list gathers.
#[test]
fn delta_fifo_is_the_plain_list_gathered_by_key() {
    for seed in 0..200 {
        let world = FakeWorld::new(seed);
        let store = Store::default();
        let known = Arc::new(store.clone());
        let mut queue = DeltaFifo::new(Limits::default(), |_| 1, known, Merging::Deletions);
        let (mut model, mut applied) =
            (ByKey::default(), Applied { store: store.clone(), log: String::new() });
        // The model has no word for what is in process, so here nothing is pushed meanwhile.
        for version in 1..300 {
            if !world.chance(60) {
                let popped = match queue.pop() {
                    Popped::Batch(batch) => Some(batch.deltas),
                    _ => None,
                };
                assert_eq!(popped, model.take(), "seed {seed}");
                popped.into_iter().flatten().for_each(|delta| applied.apply(delta, false));
                queue.processed();
                continue;
            }
            let update = random_update(&world, version);
            queue.push(update.clone());
            match update {
                Update::Event(Event::Added(object)) => model.put(Delta::Added(object)),
                Update::Event(Event::Modified(object)) => model.put(Delta::Updated(object)),
                Update::Event(Event::Deleted(object)) => {
                    let (newest, key) = (model.newest(&object.key()), object.key());
                    // The version of a deletion that is dropped, or that merges into an earlier one, is told.
                    let dropped = match newest {
                        None => store.get(&key).is_none(),
                        Some(delta) => matches!(delta, Delta::Deleted(Deleted::Observed(_))),
                    };
                    if dropped {
                        model.version = Some(version);
                    } else {
                        model.put(Delta::Deleted(Deleted::Observed(object)));
                    }
                }
                Update::Event(_) => model.version = Some(version),
                Update::Replace(state) => {
                    let present: HashSet<ObjectKey> = state.items.iter().map(Thing::key).collect();
                    let mut gone: Vec<ObjectKey> = Vec::new();
                    let queued = model.queued.iter().map(|(key, _)| key.clone());
                    let mut known = Vec::new();
                    store.for_each_key(&mut |key| known.push(key.clone()));
                    for key in queued.chain(known) {
                        if !present.contains(&key) && !gone.contains(&key) {
                            gone.push(key);
                        }
                    }
                    state.items.into_iter().for_each(|object| model.put(Delta::Replaced(object)));
                    for key in gone {
                        let last = match model.newest(&key) {
                            Some(delta) => delta.object().cloned(),
                            None => store.get(&key),
                        };
                        model.put(Delta::Deleted(Deleted::Missed(Tombstone { key, last })));
                    }
                    model.version = Some(version);
                }
            }
        }
    }
}

/// The keys that someone knows who sees the notifications only.
fn handlers_view(log: &str) -> Vec<String> {
    let mut keys = std::collections::BTreeSet::new();
    for line in log.lines() {
        let mut words = line.split_whitespace();
        let (verb, object) = (words.next(), words.next().unwrap_or_default());
        let key = object.split('@').next().unwrap_or_default().to_owned();
        match verb {
            Some("add") => assert!(keys.insert(key), "added twice: {line}"),
            Some("update") => assert!(keys.contains(&key), "updated and not there: {line}"),
            Some("delete") => {
                keys.remove(&key);
            }
            _ => {}
        }
    }
    keys.into_iter().collect()
}
