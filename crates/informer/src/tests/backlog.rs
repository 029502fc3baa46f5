//! What waits for a handler: merging, against someone who follows what is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestrata_testkit::{FakeWorld, Thing};

use super::Log;
use crate::notice::Notice;
use crate::waiting::Waiting;
use crate::{Handler as _, Overflow};

fn thing(text: &str) -> Thing {
    text.parse().unwrap()
}

/// From text, as the log writes it: `+a@1`, `a@1~a@2`, `-a@2`, `resync`, `synced`.
fn notice(text: &str) -> Notice<Thing> {
    if let Some(object) = text.strip_prefix('+') {
        return Notice::Add { object: thing(object), initial: false };
    }
    if let Some(last) = text.strip_prefix('-') {
        return Notice::Delete { last: thing(last), final_state_known: true };
    }
    match text.split_once('~') {
        Some((old, new)) => Notice::Update { old: thing(old), new: thing(new), unchanged: false },
        None if text == "resync" => Notice::Resync(Arc::new(Vec::<Thing>::new())),
        None => Notice::Synced,
    }
}

fn show(log: &Log, notice: Notice<Thing>) {
    match notice {
        Notice::Add { object, initial } => log.on_add(&object, initial),
        Notice::Update { old, new, .. } => log.on_update(&old, &new),
        Notice::Delete { last, final_state_known } => log.on_delete(&last, final_state_known),
        other => log.0.lock().push(format!("{other:?}").to_lowercase()),
    }
}

/// What comes out of a backlog of `limit` into which all of `notices` went.
fn coalesced(limit: usize, notices: &str) -> String {
    let mut waiting = Waiting::new(limit, Overflow::Coalesce);
    notices.split_whitespace().for_each(|text| waiting.push(notice(text)));
    let log = Log::default();
    while let Some(notice) = waiting.pop() {
        show(&log, notice);
    }
    log.take()
}

#[test]
fn beyond_the_bound_changes_of_one_object_become_one() {
    let updates = "+a@1 a@1~a@2 a@2~a@3 a@3~a@4";
    assert_eq!(coalesced(9, updates), updates, "there is room");
    assert_eq!(coalesced(2, updates), "+a@1 a@1~a@4");
    assert_eq!(coalesced(1, updates), "+a@4");
    assert_eq!(coalesced(1, "a@1~a@2 a@2~a@3 -a@4"), "-a@4");
    assert_eq!(coalesced(1, "x@1~x@2 +a@1 a@1~a@2 -a@3"), "x@1~x@2", "came and went");
    assert_eq!(coalesced(1, "-a@1 +a@2 a@2~a@3"), "-a@1 +a@3", "two objects of one name");
    assert_eq!(coalesced(1, "-a@1 +a@2 -a@3 +a@4"), "-a@1 +a@4");
    assert_eq!(coalesced(1, "a@1~a@2 b@1~b@2 a@2~a@3 b@2~b@3"), "a@1~a@3 b@1~b@3");
}

/// A resync tells of states between: nothing merges across it. And one that waits stands for all.
#[test]
fn nothing_merges_across_a_resync_and_one_is_enough() {
    assert_eq!(
        coalesced(1, "a@1~a@2 resync a@2~a@3 a@3~a@4 synced"),
        "a@1~a@2 resync a@2~a@4 synced"
    );
    assert_eq!(coalesced(9, "resync +a@1 resync resync"), "resync +a@1");
    let mut waiting = Waiting::new(9, Overflow::Block);
    waiting.push(notice("resync"));
    waiting.push(notice("resync"));
    assert!(waiting.pop().is_some() && waiting.pop().is_none());
    waiting.push(notice("resync"));
    assert!(waiting.pop().is_some(), "the next is due again");
}

/// Two thousand steps of a true history, taken out at random: whoever follows the notices ends in the true state, each
/// notice follows from those before, and no more waits than is promised.
#[test]
fn what_is_merged_is_still_a_true_history() {
    for seed in 0..200 {
        let world = FakeWorld::new(seed);
        let limit = 1 + world.below(6) as usize;
        let mut waiting = Waiting::new(limit, Overflow::Coalesce);
        let (mut truth, mut told) = (BTreeMap::<String, Thing>::new(), BTreeMap::new());
        for version in 1..2000 {
            if world.chance(40) {
                if let Some(notice) = waiting.pop() {
                    follow(&mut told, notice);
                }
                continue;
            }
            let object = Thing::new(&format!("k{}", world.below(5)), version);
            let name = object.name.clone();
            waiting.push(match truth.get(&name).cloned() {
                Some(last) if world.chance(30) => {
                    truth.remove(&name);
                    Notice::Delete { last, final_state_known: false }
                }
                Some(old) => {
                    truth.insert(name, object.clone());
                    Notice::Update { old, new: object, unchanged: false }
                }
                None => {
                    truth.insert(name, object.clone());
                    Notice::Add { object, initial: false }
                }
            });
            assert!(waiting.len() <= limit + 2 * 5, "seed {seed}: {}", waiting.len());
        }
        while let Some(notice) = waiting.pop() {
            follow(&mut told, notice);
        }
        assert_eq!(told, truth, "seed {seed}");
        assert!(waiting.merged > 0);
    }
}

fn follow(told: &mut BTreeMap<String, Thing>, notice: Notice<Thing>) {
    match notice {
        Notice::Add { object, .. } => {
            assert_eq!(told.insert(object.name.clone(), object), None);
        }
        Notice::Update { old, new, .. } => {
            assert_eq!(told.insert(new.name.clone(), new), Some(old));
        }
        Notice::Delete { last, .. } => {
            assert!(told.remove(&last.name).is_some());
        }
        Notice::Resync(_) | Notice::Synced => {}
    }
}
