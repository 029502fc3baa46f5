//! The vectors Q1 to Q9 of a queue, and public bugs by their numbers.

use std::sync::Arc;

use expect_test::expect;

use super::{Applied, Store, fifo, push, thing, update};
use crate::{Delta, KnownObjects, Limits, Popped, Queue, RealFifo};

/// A queue of known objects, and the consumer whose store it knows.
fn known() -> (RealFifo<kubestrata_testkit::Thing>, Applied) {
    let applied = Applied::default();
    let store = Arc::new(applied.store.clone());
    (RealFifo::with_known_objects(Limits::default(), |_| 1, store), applied)
}

/// Lengths of the batches that are queued.
fn batches(queue: &mut impl Queue<kubestrata_testkit::Thing>) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let Popped::Batch(batch) = queue.pop() {
        queue.processed();
        lengths.push(batch.deltas.len());
    }
    lengths
}

/// Three changes of one key while nobody looks: three notifications, in order.
#[test]
fn q1_no_change_is_merged() {
    let mut queue = fifo();
    push(&mut queue, &["[]@0", "+a@1", "~a@2", "~a@3"]);
    let mut applied = Applied::default();
    applied.drain(&mut queue);
    expect![[r#"
        version 0
        add a@1
        update a@1 a@2
        update a@2 a@3
    "#]]
    .assert_eq(&applied.log);
}

/// Atomic replace: the store is swapped first; then deletions, then the state in its order.
#[test]
fn q2_atomic_replace() {
    let mut queue = fifo();
    let mut applied = Applied::default();
    push(&mut queue, &["[a@1 b@1]@1"]);
    applied.drain(&mut queue);
    applied.log.clear();
    push(&mut queue, &["[b@2 c@2]@2"]);
    applied.drain(&mut queue);
    expect![[r#"
        version 2
        delete a last a@1
        update b@1 b@2
        add c@2
    "#]]
    .assert_eq(&applied.log);
}

/// Queued and never consumed, then absent from a new state: added, then deleted (k/k#115658).
#[test]
fn q3_queued_only_key_is_deleted() {
    let (mut queue, mut applied) = known();
    push(&mut queue, &["[a@1]@1"]);
    applied.drain(&mut queue);
    applied.log.clear();
    push(&mut queue, &["+d@4", "+e@5", "-e@6", "[b@7]@7"]);
    applied.drain(&mut queue);
    expect![[r#"
        add d@4
        add e@5
        delete e@6
        delete d last d@4
        delete a last a@1
        add b@7
        version 7
    "#]]
    .assert_eq(&applied.log);

    // The atomic queue leaves it to the consumer, who gets there too.
    let mut queue = fifo();
    let mut applied = Applied::default();
    push(&mut queue, &["[]@1", "+d@4", "[]@7"]);
    applied.drain(&mut queue);
    expect![[r#"
        version 1
        add d@4
        version 7
        delete d last d@4
    "#]]
    .assert_eq(&applied.log);
}

/// An empty first state: synced at once where states are taken apart, and after processing where they are not.
#[test]
fn q4_empty_first_state() {
    let (mut queue, _) = known();
    push(&mut queue, &["[]@5"]);
    assert!(queue.has_synced());

    let mut queue = fifo();
    push(&mut queue, &["[]@5"]);
    assert!(!queue.has_synced());
    let Popped::Batch(batch) = queue.pop() else { panic!() };
    assert!(batch.initial && !queue.has_synced());
    queue.processed();
    assert!(queue.has_synced());
}

/// The deletion of an unknown object is handed on.
#[test]
fn q5_delete_of_an_unknown_key() {
    for (mut queue, mut applied) in [known(), (fifo(), Applied::default())] {
        push(&mut queue, &["[]@1", "-x@5"]);
        applied.drain(&mut queue);
        assert_eq!(applied.log.lines().last(), Some("delete x@5"));
    }
}

/// Batches of a thousand, and a key that repeats begins a new one.
#[test]
fn q6_batches() {
    let mut queue = fifo();
    push(&mut queue, &["[]@0"]);
    assert_eq!(batches(&mut queue), [1]);
    for n in 0..2500 {
        queue.push(update(&format!("+x{n}@{n}")));
    }
    assert_eq!(batches(&mut queue), [1000, 1000, 500]);
    for n in 0..20 {
        queue.push(update(&format!("+x{}@{n}", n % 10)));
    }
    assert_eq!(batches(&mut queue), [10, 10]);
    push(&mut queue, &["+a@1", "+b@2", "bookmark@3", "[c@4]@4", "+c@5", "?c", "?c"]);
    queue.resync();
    assert_eq!(batches(&mut queue), [2, 1, 1, 1, 1, 1, 1]);
}

/// A batch never mixes the first state with what comes after.
#[test]
fn q7_initial_boundary() {
    let (mut queue, mut applied) = known();
    push(&mut queue, &["[a@1 b@1 c@1 d@1 e@1]@1", "+f@2", "+g@3", "+h@4"]);
    let mut lengths = Vec::new();
    let mut initial = Vec::new();
    while let Popped::Batch(batch) = queue.pop() {
        lengths.push(batch.deltas.len());
        initial.push(batch.initial);
        assert!(!batch.initial || !queue.has_synced());
        queue.processed();
        for delta in batch.deltas {
            applied.apply(delta, batch.initial);
        }
    }
    // The bookmark between them carries the state's version.
    assert_eq!((lengths, initial), (vec![5, 1, 3], vec![true, false, false]));
    assert_eq!(applied.log.matches("initial").count(), 5);
}

/// Close lets the rest be taken.
#[test]
fn q8_close_drains() {
    let mut queue = RealFifo::new(Limits { batch: 1, ..Limits::default() }, |_| 1);
    push(&mut queue, &["+a@1", "+b@2", "+c@3"]);
    queue.close();
    assert_eq!(batches(&mut queue), [1, 1, 1]);
    assert_eq!(queue.pop(), Popped::Closed);
}

/// A bookmark keeps its place between two changes.
#[test]
fn q9_bookmark_in_order() {
    let mut queue = fifo();
    push(&mut queue, &["[]@1", "+a@2", "bookmark@3", "~a@4"]);
    let mut applied = Applied::default();
    applied.drain(&mut queue);
    expect![[r#"
        version 1
        add a@2
        version 3
        update a@2 a@4
    "#]]
    .assert_eq(&applied.log);
}

/// Deleted, queued, and there again in the new state: the final state has it.
#[test]
fn kk83810_recreated_during_a_gap() {
    for (mut queue, mut applied) in [known(), (fifo(), Applied::default())] {
        push(&mut queue, &["[a@1#one]@1"]);
        applied.drain(&mut queue);
        push(&mut queue, &["-a@2#one", "[a@3#two]@3"]);
        applied.drain(&mut queue);
        let now = applied.store.get(&"a".parse().unwrap());
        assert_eq!(now.map(|object| object.to_string()).as_deref(), Some("a@3#two"));
    }
}

/// Resync never puts an older stored object behind a newer queued one.
#[test]
fn resync_skips_what_is_queued() {
    let (mut queue, mut applied) = known();
    push(&mut queue, &["[a@1 b@1]@1"]);
    applied.drain(&mut queue);
    applied.log.clear();
    push(&mut queue, &["~a@2"]);
    queue.resync();
    applied.drain(&mut queue);
    expect![[r#"
        update a@1 a@2
        update b@1 b@1
    "#]]
    .assert_eq(&applied.log);
}

/// One object without a name costs itself alone, also within a whole state (odf-operator PR 895).
#[test]
fn nameless_objects_cost_nobody_else() {
    let nameless = kubestrata_testkit::Thing::default();
    for (mut queue, mut applied) in [known(), (fifo(), Applied::default())] {
        let kubestrata_api_types::Update::Replace(mut state) = update("[a@1 b@1]@1") else {
            panic!()
        };
        state.items.insert(1, nameless.clone());
        queue.push(kubestrata_api_types::Update::Replace(state));
        queue.push(kubestrata_api_types::Update::Event(kubestrata_api_types::Event::Added(
            nameless.clone(),
        )));
        applied.drain(&mut queue);
        assert!(queue.has_synced());
        let names: Vec<_> =
            applied.store.0.lock().unwrap().keys().map(ToString::to_string).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(applied.log.matches("the object has no name").count(), 2);
    }
}

/// client-go: a change that comes before any state makes the queue synced at once.
#[test]
fn a_change_before_the_first_state_syncs() {
    let mut queue = fifo();
    push(&mut queue, &["bookmark@1"]);
    assert!(!queue.has_synced());
    push(&mut queue, &["+a@1"]);
    assert!(queue.has_synced());
}

/// A state counts its objects, is let in alone whatever its size, and keeps others out.
#[test]
fn bounds_in_items_and_bytes() {
    let limits = Limits { batch: 10, items: 3, bytes: 10_000 };
    let mut queue = RealFifo::new(limits, |object: &kubestrata_testkit::Thing| object.name.len());
    let small = queue.measure(&update("+a@1"));
    let state = queue.measure(&update("[a@1 b@1 c@1 d@1 e@1]@1"));
    assert_eq!((small.items, state.items), (1, 5));
    assert!(queue.admits(state));
    queue.push(update("+a@1"));
    assert!(!queue.admits(state) && queue.admits(small));
    queue.push(update("+b@1"));
    queue.push(update("+c@1"));
    assert!(!queue.admits(small));
    batches(&mut queue);
    assert_eq!(queue.load(), crate::Load::default());

    let heavy = format!("+{}@1", "x".repeat(6_000));
    let load = queue.measure(&update(&heavy));
    assert!(load.bytes > 6_000 && queue.admits(load));
    queue.push(update(&heavy));
    assert!(!queue.admits(load) && queue.admits(small));
    let huge = queue.measure(&update(&format!("+{}@1", "x".repeat(60_000))));
    assert!(!queue.admits(huge));
    batches(&mut queue);
    assert!(queue.admits(huge));
}

#[test]
fn keys_of_deltas() {
    let key = |delta: Delta<_>| delta.key().map(|key| key.to_string());
    assert_eq!(key(Delta::Added(thing("n/a@1"))).as_deref(), Some("n/a"));
    assert_eq!(key(Delta::SyncAll), None);
    let store = Store::default();
    assert_eq!(store.get(&"a".parse().unwrap()), None);
}
