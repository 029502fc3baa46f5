//! What every queue promises, asked of every queue: final state, no lost deletion, and when it is synced.

use std::collections::{BTreeMap, BTreeSet};

use kubestrata_api_types::{Event, Object as _, ObjectKey, Snapshot, Update};
use kubestrata_testkit::{FakeWorld, Thing};

use super::{Which, push, update};
use crate::{Batch, Limits, Popped};

/// The source of updates: a true history of few objects, with gaps after which a whole state comes.
struct Source {
    objects: BTreeMap<ObjectKey, Thing>,
    version: u64,
}

impl Source {
    fn new() -> Self {
        Self { objects: BTreeMap::new(), version: 1 }
    }

    fn state(&self) -> Update<Thing> {
        Update::Replace(Snapshot {
            items: self.objects.values().cloned().collect(),
            unreadable: Vec::new(),
            resource_version: self.version.into(),
        })
    }

    /// One change of one object.
    fn change(&mut self, world: &FakeWorld) -> Event<Thing> {
        self.version += 1;
        let mut object = Thing::new(&format!("k{}", world.below(6)), self.version);
        let key = object.key();
        match self.objects.get(&key) {
            Some(old) => {
                object.uid.clone_from(&old.uid);
                if world.chance(40) {
                    self.objects.remove(&key);
                    Event::Deleted(object)
                } else {
                    self.objects.insert(key, object.clone());
                    Event::Modified(object)
                }
            }
            None => {
                object.uid = format!("{}-{}", object.name, self.version);
                self.objects.insert(key, object.clone());
                Event::Added(object)
            }
        }
    }

    /// What the source tells next.
    fn next(&mut self, world: &FakeWorld) -> Update<Thing> {
        match world.below(20) {
            0 => {
                for _ in 0..world.below(12) {
                    self.change(world);
                }
                self.state()
            }
            1 => Update::Event(Event::Bookmark(kubestrata_api_types::Bookmark {
                resource_version: self.version.into(),
                initial_events_end: false,
            })),
            _ => Update::Event(self.change(world)),
        }
    }
}

/// What someone knows who is told the notifications and nothing else; checks that each follows from those before.
fn follow(known: &mut BTreeMap<String, String>, log: &str, context: &str) {
    for line in log.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let key_of = |object: &str| object.split('@').next().unwrap_or_default().to_owned();
        match words[..] {
            ["add", object, ..] => {
                let before = known.insert(key_of(object), object.to_owned());
                assert_eq!(before, None, "{context}: an add of what is there: {line}");
            }
            ["update", old, new] => {
                let before = known.insert(key_of(new), new.to_owned());
                assert_eq!(before.as_deref(), Some(old), "{context}: {line}");
            }
            // A deletion of what was never told of is allowed: queues differ in it.
            ["delete", object, ..] => {
                known.remove(&key_of(object));
            }
            ["version", _] => {}
            _ => panic!("{context}: {line}"),
        }
    }
}

/// Pushes and pops at random, also while a batch is in process, as the two async ends do.
fn run(which: Which, seed: u64) {
    let context = format!("{which:?}, seed {seed}");
    let world = FakeWorld::new(seed);
    let limits = Limits { batch: 1 + world.below(4) as usize, ..Limits::default() };
    let (mut queue, mut applied) = which.queue(limits);
    let mut source = Source::new();
    for _ in 0..world.below(6) {
        source.change(&world);
    }
    queue.push(source.state());
    let first: BTreeSet<String> = source.objects.keys().map(ToString::to_string).collect();
    let mut known = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut in_process: Option<Batch<Thing>> = None;
    for _ in 0..400 {
        match world.below(10) {
            0..=4 => queue.push(source.next(&world)),
            5 if world.chance(30) => queue.resync(),
            _ => match in_process.take() {
                None => {
                    if let Popped::Batch(batch) = queue.pop() {
                        assert_eq!(batch.initial, !queue.has_synced(), "{context}");
                        in_process = Some(batch);
                    }
                }
                Some(batch) => {
                    applied.batch(batch);
                    queue.processed();
                    let told = applied.told();
                    follow(&mut known, &told, &context);
                    seen.extend(known.keys().cloned());
                    // A key that is gone before anyone saw it counts as seen by its deletion.
                    seen.extend(told.lines().filter_map(|line| {
                        let object = line.strip_prefix("delete ")?;
                        Some(object.split(['@', ' ']).next()?.to_owned())
                    }));
                    if queue.has_synced() {
                        assert!(first.is_subset(&seen), "{context}: synced, and not all was told");
                    }
                }
            },
        }
        assert!(queue.load().bytes > 0 || queue.load().items == 0);
    }
    if let Some(batch) = in_process {
        applied.batch(batch);
        queue.processed();
    }
    applied.drain(&mut *queue);
    follow(&mut known, &applied.told(), &context);
    let truth = &source.objects;
    assert_eq!(*applied.store.0.lock().unwrap(), *truth, "{context}: final state");
    let told: Vec<_> = known.into_values().collect();
    let want: Vec<_> = truth.values().map(ToString::to_string).collect();
    assert_eq!(told, want, "{context}: a deletion or change was lost on the way to a handler");
    assert!(queue.has_synced() && queue.load() == crate::Load::default(), "{context}");
}

#[test]
fn every_queue_reaches_the_final_state_and_loses_no_deletion() {
    for which in Which::ALL {
        for seed in 0..100 {
            run(which, seed);
        }
    }
}

/// Synced means that the last object of the first state was processed, not only taken; and it stays so.
#[test]
fn every_queue_is_synced_after_processing_and_for_ever() {
    for which in Which::ALL {
        let (mut queue, mut applied) = which.queue(Limits { batch: 1, ..Limits::default() });
        assert!(!queue.has_synced(), "{which:?}: nothing has come");
        push(&mut *queue, &["[a@1 b@1 c@1]@1"]);
        while !queue.has_synced() {
            let Popped::Batch(batch) = queue.pop() else { panic!("{which:?}: nothing to process") };
            assert!(batch.initial && !queue.has_synced(), "{which:?}: taken is not processed");
            applied.batch(batch);
            queue.processed();
        }
        assert_eq!(applied.told().matches("initial").count(), 3, "{which:?}");
        push(&mut *queue, &["[d@2]@2"]);
        assert!(queue.has_synced(), "{which:?}: a later state does not count");
        while let Popped::Batch(batch) = queue.pop() {
            assert!(!batch.initial);
            queue.processed();
        }
    }
}

/// What was taken before the first state came, and is processed after, must not count for it.
#[test]
fn no_queue_is_synced_by_what_came_before_the_first_state() {
    for which in Which::ALL {
        for early in ["bookmark@1", "?x@1"] {
            let (mut queue, mut applied) = which.queue(Limits { batch: 1, ..Limits::default() });
            push(&mut *queue, &[early]);
            let Popped::Batch(batch) = queue.pop() else { panic!() };
            push(&mut *queue, &["[a@2]@2"]);
            applied.batch(batch);
            queue.processed();
            assert!(!queue.has_synced(), "{which:?}: {early} has made it synced");
            applied.drain(&mut *queue);
            assert!(queue.has_synced() && applied.told().contains("add a@2 initial"));
        }
    }
}

#[test]
fn every_queue_is_synced_after_an_empty_state() {
    for which in Which::ALL {
        let (mut queue, mut applied) = which.queue(Limits::default());
        push(&mut *queue, &["[]@5"]);
        applied.drain(&mut *queue);
        assert!(queue.has_synced(), "{which:?}");
        assert_eq!(applied.told(), "version 5\n", "{which:?}");
    }
}

/// client-go: a change that comes before any state makes the queue synced at once.
#[test]
fn every_queue_is_synced_by_a_change_before_the_first_state() {
    for which in Which::ALL {
        for change in ["+a@1", "~a@1", "-a@1"] {
            let (mut queue, _) = which.queue(Limits::default());
            push(&mut *queue, &["bookmark@1"]);
            assert!(!queue.has_synced(), "{which:?}");
            push(&mut *queue, &[change]);
            assert!(queue.has_synced(), "{which:?}");
        }
    }
}

/// Bug row 16 (k/k#115658): queued and never consumed, then missing from a new state: also while it is in process.
#[test]
fn k16_no_queue_leaks_an_object_that_was_only_on_its_way() {
    for which in Which::ALL {
        for taken in [false, true] {
            let (mut queue, mut applied) = which.queue(Limits::default());
            push(&mut *queue, &["[a@1]@1"]);
            applied.drain(&mut *queue);
            push(&mut *queue, &["+d@4"]);
            let in_process = taken.then(|| queue.pop());
            push(&mut *queue, &["[a@1]@7"]);
            if let Some(Popped::Batch(batch)) = in_process {
                applied.batch(batch);
                queue.processed();
            }
            applied.drain(&mut *queue);
            let keys: Vec<_> =
                applied.store.0.lock().unwrap().keys().map(ToString::to_string).collect();
            assert_eq!(keys, ["a"], "{which:?}, taken: {taken}");
            let told = applied.told();
            if told.contains("add d@4") {
                assert!(told.contains("delete d last d@4"), "{which:?}: {told}");
            }
        }
    }
}

/// A deletion of what is only on its way is a deletion of a known object.
#[test]
fn no_queue_drops_the_deletion_of_what_is_in_process() {
    for which in Which::ALL {
        let (mut queue, mut applied) = which.queue(Limits::default());
        push(&mut *queue, &["[]@1"]);
        applied.drain(&mut *queue);
        push(&mut *queue, &["+d@4"]);
        let Popped::Batch(batch) = queue.pop() else { panic!() };
        push(&mut *queue, &["-d@5"]);
        applied.batch(batch);
        queue.processed();
        applied.drain(&mut *queue);
        assert!(applied.store.0.lock().unwrap().is_empty(), "{which:?}");
        assert!(applied.told().contains("delete d@5"), "{which:?}");
    }
}

/// A resync never puts an older stored object behind a newer one, whether that waits or is in process.
#[test]
fn no_queue_goes_back_at_a_resync() {
    for which in Which::ALL {
        for taken in [false, true] {
            let (mut queue, mut applied) = which.queue(Limits::default());
            push(&mut *queue, &["[a@1 b@1]@1"]);
            applied.drain(&mut *queue);
            applied.told();
            push(&mut *queue, &["~a@2"]);
            let in_process = taken.then(|| queue.pop());
            queue.resync();
            if let Some(Popped::Batch(batch)) = in_process {
                applied.batch(batch);
                queue.processed();
            }
            applied.drain(&mut *queue);
            let told = applied.told();
            assert!(!told.contains("a@1 a@1") && !told.contains("a@2 a@1"), "{which:?}: {told}");
            assert!(told.contains("update b@1 b@1"), "{which:?}: {told}");
        }
    }
}

/// Bug row 17 (k/k#83810): deleted, queued, and there again in the new state: the final state has it.
#[test]
fn k17_every_queue_has_what_was_made_again_during_a_gap() {
    for which in Which::ALL {
        let (mut queue, mut applied) = which.queue(Limits::default());
        push(&mut *queue, &["[a@1#one]@1"]);
        applied.drain(&mut *queue);
        push(&mut *queue, &["-a@2#one", "[a@3#two]@3"]);
        applied.drain(&mut *queue);
        let stored: Vec<_> =
            applied.store.0.lock().unwrap().values().map(ToString::to_string).collect();
        assert_eq!(stored, ["a@3#two"], "{which:?}");
        let told = applied.told();
        let at = |line: &str| told.find(line).unwrap_or_else(|| panic!("{which:?}: {told}"));
        assert!(at("delete a@2#one") < at("add a@3#two"), "{which:?}: {told}");
    }
}

/// One object without a name costs itself alone, also within a whole state (odf-operator PR 895, bug row 22a).
#[test]
fn in_every_queue_nameless_objects_cost_nobody_else() {
    let nameless = Thing::default();
    for which in Which::ALL {
        let (mut queue, mut applied) = which.queue(Limits::default());
        let Update::Replace(mut state) = update("[a@1 b@1]@1") else { panic!() };
        state.items.insert(1, nameless.clone());
        queue.push(Update::Replace(state));
        for event in [Event::Added(nameless.clone()), Event::Deleted(nameless.clone())] {
            queue.push(Update::Event(event));
        }
        applied.drain(&mut *queue);
        assert!(queue.has_synced());
        let keys: Vec<_> =
            applied.store.0.lock().unwrap().keys().map(ToString::to_string).collect();
        assert_eq!(keys, ["a", "b"], "{which:?}");
        assert_eq!(applied.told().matches("the object has no name").count(), 3, "{which:?}");
    }
}

/// An object of a new state that cannot be read is there all the same: it must not be deleted.
#[test]
fn no_queue_deletes_what_it_cannot_read() {
    for which in Which::ALL {
        let (mut queue, mut applied) = which.queue(Limits::default());
        push(&mut *queue, &["[a@1 b@1]@1", "+c@2"]);
        applied.drain(&mut *queue);
        applied.told();
        let Update::Replace(mut state) = update("[a@3]@3") else { panic!() };
        let Update::Event(Event::Unreadable(unreadable)) = update("?b") else { panic!() };
        state.unreadable.push(unreadable);
        queue.push(Update::Replace(state));
        let mut told = String::new();
        while let Popped::Batch(batch) = queue.pop() {
            queue.processed();
            told.push_str(&format!("{:?}", batch.deltas));
        }
        // The atomic queue leaves that to its consumer, who sees the same snapshot.
        assert!(which == Which::Atomic || told.contains("Unreadable"), "{which:?}: {told}");
        assert!(!told.contains("key: \"b\", last"), "{which:?}: {told}");
        assert!(which == Which::Atomic || told.contains("key: \"c\", last"), "{told}");
    }
}

/// Close lets the rest be taken, in every queue.
#[test]
fn every_queue_is_drained_after_its_close() {
    for which in Which::ALL {
        let (mut queue, _) = which.queue(Limits { batch: 1, ..Limits::default() });
        push(&mut *queue, &["+a@1", "+b@2", "+c@3"]);
        queue.close();
        for _ in 0..3 {
            assert!(matches!(queue.pop(), Popped::Batch(_)), "{which:?}");
            queue.processed();
        }
        assert_eq!(queue.pop(), Popped::Closed, "{which:?}");
    }
}

/// At its bounds no queue admits more, and any load into an empty one.
#[test]
fn every_queue_is_bounded() {
    for which in Which::ALL {
        let limits = Limits { items: 3, batch: 1, bytes: 10_000 };
        let (mut queue, mut applied) = which.queue(limits);
        let (small, large) = (update("+a@1"), update("[a@1 b@1 c@1 d@1 e@1]@1"));
        assert!(queue.admits(queue.measure(&large)), "{which:?}");
        push(&mut *queue, &["+a@1", "+b@1"]);
        assert!(queue.admits(queue.measure(&small)) && !queue.admits(queue.measure(&large)));
        push(&mut *queue, &["+c@1"]);
        assert!(!queue.admits(queue.measure(&small)), "{which:?}");
        applied.drain(&mut *queue);
        assert!(queue.admits(queue.measure(&large)), "{which:?}");
    }
}
