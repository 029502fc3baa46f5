//! A handler that compares what it is told with what really happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubestrata_informer::Handler;
use kubestrata_informer::store::{Reader, Stored};

use crate::log::note;
use crate::sim::{Sim, View};
use crate::truth::{Objects, Place, Seen};

/// What one handler was told, and what is wrong with it.
///
/// The notifications of an object must form its history up to gaps: each state is one that the object really had, they
/// come in the order in which it had them, and an object of a new UID is told only after the end of the old one.
///
/// What waits for it may become one: a state may be left out then, and a deletion may be told in a later state than the last
/// that was told.
pub(crate) struct Recorder<T: Stored> {
    name: String,
    sim: Arc<Sim>,
    view: View,
    reader: Reader<T>,
    /// Whether what waits for it may become one, in the queue or in its backlog.
    merges: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the handler takes to be there.
    known: Objects,
    /// The last place in its history that each object was told at.
    places: BTreeMap<String, Place>,
    /// All objects that it was ever told of.
    told: BTreeSet<(String, String)>,
    /// It was removed, and its last call has returned.
    ended: bool,
}

impl<T: Stored> Recorder<T> {
    /// A recorder for a handler of `view`.
    pub(crate) fn new(
        name: String,
        sim: Arc<Sim>,
        view: View,
        reader: Reader<T>,
        merges: bool,
    ) -> Self {
        Self { name, sim, view, reader, merges, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the handler takes to be there.
    pub(crate) fn known(&self) -> Objects {
        self.lock().known.clone()
    }

    /// Whether it was ever told of this object.
    pub(crate) fn was_told(&self, object: &(String, String)) -> bool {
        self.lock().told.contains(object)
    }

    /// The handler was removed: nothing may come any more.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
    }

    fn fail(&self, text: String) {
        self.sim.log.violation(format!("{}: {text}", self.name));
    }

    /// The object is in this state now, which must be one that it had after the last.
    fn is_now(&self, state: &mut State, key: &str, seen: Seen) {
        if state.ended {
            self.fail(format!("{key} was told after the end"));
        }
        let last = state.places.get(key).copied().unwrap_or_default();
        let truth = self.sim.truth(self.view.kind);
        if !self.view.scope.sees(key, &seen) {
            self.fail(format!("{key} is told in a state that the selector hides: {seen:?}"));
        }
        match truth.find_state(last, key, &seen) {
            Some(epoch) => {
                state.places.insert(key.to_owned(), Place { epoch, version: seen.version });
            }
            None => self.fail(format!("{key} was never so after {last:?}: {seen:?}")),
        }
        let rewound = truth.epoch() > 0;
        drop(truth);
        let stored =
            self.reader.get_by_name(key.split('/').next(), key.split('/').nth(1).unwrap_or(""));
        if let Some(stored) = stored.map(|stored| Seen::of(&stored))
            && stored.uid == seen.uid
            && stored.version < seen.version
            && !rewound
        {
            self.fail(format!("{key} is told at {} before the store has it", seen.version));
        }
        state.told.insert((key.to_owned(), seen.uid.clone()));
        state.known.insert(key.to_owned(), seen);
    }
}

impl<T: Stored> Handler<T> for Recorder<T> {
    fn on_add(&self, object: &T, initial: bool) {
        let (key, seen) = (object.key().to_string(), Seen::of(object));
        note!(self.sim.log, "{} + {key}@{} initial={initial}", self.name, seen.version);
        let mut state = self.lock();
        if let Some(known) = state.known.get(&key) {
            self.fail(format!("{key} is added twice: known {known:?}, new {seen:?}"));
        }
        self.is_now(&mut state, &key, seen);
    }

    fn on_update(&self, old: &T, new: &T) {
        let (key, old, new) = (new.key().to_string(), Seen::of(old), Seen::of(new));
        note!(self.sim.log, "{} ~ {key}@{} -> {}", self.name, old.version, new.version);
        let mut state = self.lock();
        match state.known.get(&key) {
            Some(known) if *known == old => {}
            known => self.fail(format!("{key} is updated from {old:?}, but known as {known:?}")),
        }
        if old.uid != new.uid {
            self.fail(format!("{key} is updated into another object: {old:?}, {new:?}"));
        }
        self.is_now(&mut state, &key, new);
    }

    fn on_delete(&self, last: &T, final_state_known: bool) {
        let (key, seen) = (last.key().to_string(), Seen::of(last));
        note!(self.sim.log, "{} - {key}@{} known={final_state_known}", self.name, seen.version);
        let mut state = self.lock();
        if state.ended {
            self.fail(format!("{key} was told after the end"));
        }
        let place = state.places.get(&key).copied().unwrap_or_default();
        match state.known.remove(&key) {
            Some(known) if known.uid != seen.uid => {
                self.fail(format!("{key}: {seen:?} is deleted, but {known:?} is known"));
            }
            Some(known) if !final_state_known && known != seen && !self.merges => {
                self.fail(format!("{key} is deleted in {seen:?}, but known as {known:?}"));
            }
            Some(_) => {}
            // A deletion that the network repeats is told again: client-go tells every one.
            None if final_state_known => {}
            None => self.fail(format!("{key} is deleted, but was not known")),
        }
        if final_state_known {
            let truth = self.sim.truth(self.view.kind);
            let end = (seen.version, seen.uid.as_str());
            match truth.find_end(place, &key, end, self.view.scope) {
                Some(epoch) => {
                    state.places.insert(key, Place { epoch, version: seen.version });
                }
                None => self.fail(format!("{key} never ended so after {place:?}: {seen:?}")),
            }
        }
    }
}
