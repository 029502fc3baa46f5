//! What is checked of a store.

use std::sync::{Mutex, PoisonError};

use kubestrata_informer::store::{Reader, Stored};

use crate::sim::{Sim, View};
use crate::truth::{Follower, Objects, Place, Seen};

/// All objects of a store.
pub(super) fn contents<T: Stored>(reader: &Reader<T>) -> Objects {
    reader.freeze().iter().map(|object| (object.key().to_string(), Seen::of(object))).collect()
}

/// The store must be what the server was at the store's version, at every instant.
///
/// Without a follower less can be asked, as the store is behind a queue that takes a state apart or loses the order between
/// objects: each object must be in a state that it had.
pub(super) fn check_store<T: Stored>(
    sim: &Sim,
    number: usize,
    view: View,
    reader: &Reader<T>,
    follower: Option<&Mutex<Follower>>,
) {
    let frozen = reader.freeze();
    let have: Objects =
        frozen.iter().map(|object| (object.key().to_string(), Seen::of(object))).collect();
    let truth = sim.truth(view.kind);
    let Some(follower) = follower else {
        for (key, seen) in &have {
            let was = truth.find_state(Place::default(), key, seen).is_some();
            if !was || !view.scope.sees(key, seen) {
                sim.log.violation(format!("client {number} holds {key} as it never was: {seen:?}"));
            }
        }
        return;
    };
    let version = &frozen.version().version;
    if version.is_unset() {
        if !have.is_empty() {
            sim.log.violation(format!("client {number} has no version and holds {have:?}"));
        }
        return;
    }
    let version = version.as_u64().unwrap_or_default();
    let mut follower = follower.lock().unwrap_or_else(PoisonError::into_inner);
    if truth.find(&mut follower, version, &have).is_none() {
        let want = truth.expected(version, view.scope);
        sim.log.violation(format!(
            "client {number} holds at {version} {have:?}, but the server had {want:?}"
        ));
    }
}
