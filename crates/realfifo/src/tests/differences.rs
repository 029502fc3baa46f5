//! What `RealFifo` and its predecessor `DeltaFifo` differ in, side by side, one by one.

use expect_test::expect;

use super::{Which, push};
use crate::{Delta, Limits, Popped};

/// What a consumer tells, for the first state and then for all of `updates` at once.
fn told(which: Which, first: &str, updates: &[&str]) -> String {
    let (mut queue, mut applied) = which.queue(Limits::default());
    push(&mut *queue, &[first]);
    applied.drain(&mut *queue);
    applied.told();
    push(&mut *queue, updates);
    applied.drain(&mut *queue);
    applied
        .told()
        .lines()
        .filter(|line| !line.starts_with("version"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Three quick updates: three notifications from a `RealFifo`. client-go's `DeltaFIFO` keeps them too; one that merges to
/// the newest state tells once.
#[test]
fn three_quick_updates() {
    let updates = ["~a@2", "~a@3", "~a@4"];
    for which in [Which::Atomic, Which::Apart, Which::Delta] {
        expect![[r#"
            update a@1 a@2
            update a@2 a@3
            update a@3 a@4"#]]
        .assert_eq(&told(which, "[a@1]@1", &updates));
    }
    expect!["update a@1 a@4"].assert_eq(&told(Which::DeltaToNewest, "[a@1]@1", &updates));
}

/// An object that comes and goes while nobody looks.
#[test]
fn added_and_deleted_at_once() {
    let updates = ["+a@2", "~a@3", "-a@4"];
    let all = "add a@2\nupdate a@2 a@3\ndelete a@4";
    for which in [Which::Atomic, Which::Apart, Which::Delta] {
        assert_eq!(told(which, "[]@1", &updates), all, "{which:?}");
    }
    assert_eq!(told(Which::DeltaToNewest, "[]@1", &updates), "delete a@4");
}

/// Order: total in a `RealFifo`; in a `DeltaFifo` only that of each key, so that version 4 is told before version 3.
#[test]
fn order_between_objects() {
    let updates = ["~a@2", "~b@3", "~a@4"];
    for which in [Which::Atomic, Which::Apart] {
        expect![[r#"
            update a@1 a@2
            update b@1 b@3
            update a@2 a@4"#]]
        .assert_eq(&told(which, "[a@1 b@1]@1", &updates));
    }
    expect![[r#"
        update a@1 a@2
        update a@2 a@4
        update b@1 b@3"#]]
    .assert_eq(&told(Which::Delta, "[a@1 b@1]@1", &updates));
    expect![[r#"
        update a@1 a@4
        update b@1 b@3"#]]
    .assert_eq(&told(Which::DeltaToNewest, "[a@1 b@1]@1", &updates));
}

/// Compression: two deletions in a row are one, the older if it was seen, else the newer.
#[test]
fn two_deletions_in_a_row() {
    let (seen, missed) = (["-a@2", "-a@3"], ["[]@2", "-a@3"]);
    for which in [Which::Atomic, Which::Apart] {
        assert_eq!(told(which, "[a@1]@1", &seen), "delete a@2\ndelete a@3");
        assert_eq!(told(which, "[a@1]@1", &missed), "delete a last a@1\ndelete a@3");
    }
    for which in [Which::Delta, Which::DeltaToNewest] {
        assert_eq!(told(which, "[a@1]@1", &seen), "delete a@2");
        assert_eq!(told(which, "[a@1]@1", &missed), "delete a@3");
    }
}

/// What was merged away has been reached all the same: a version that somebody waits for comes.
#[test]
fn versions_of_merged_deletions_are_told() {
    for which in [Which::Delta, Which::DeltaToNewest] {
        for updates in [&["-a@2", "-a@3"][..], &["-x@3"]] {
            let (mut queue, mut applied) = which.queue(Limits::default());
            push(&mut *queue, &["[a@1]@1"]);
            applied.drain(&mut *queue);
            push(&mut *queue, updates);
            applied.drain(&mut *queue);
            assert!(applied.told().ends_with("version 3\n"), "{which:?} {updates:?}");
        }
    }
}

/// The deletion of a key that is neither queued nor known: handed on, or dropped.
#[test]
fn deletion_of_an_unknown_key() {
    for which in [Which::Atomic, Which::Apart] {
        assert_eq!(told(which, "[]@1", &["-x@5"]), "delete x@5");
    }
    for which in [Which::Delta, Which::DeltaToNewest] {
        assert_eq!(told(which, "[]@1", &["-x@5"]), "");
    }
}

/// A new state: deletions first, or last.
#[test]
fn order_of_a_replacement() {
    let updates = ["+c@2", "[b@3 d@3]@3"];
    expect![[r#"
        add c@2
        delete a last a@1
        delete c last c@2
        update b@1 b@3
        add d@3"#]]
    .assert_eq(&told(Which::Atomic, "[a@1 b@1]@1", &updates));
    expect![[r#"
        add c@2
        delete c last c@2
        delete a last a@1
        update b@1 b@3
        add d@3"#]]
    .assert_eq(&told(Which::Apart, "[a@1 b@1]@1", &updates));
    expect![[r#"
        add c@2
        delete c last c@2
        update b@1 b@3
        add d@3
        delete a last a@1"#]]
    .assert_eq(&told(Which::Delta, "[a@1 b@1]@1", &updates));
}

/// A tombstone of a tombstone: unwrapped to the object.
#[test]
fn nested_tombstones() {
    let (mut queue, mut applied) = Which::Delta.queue(Limits::default());
    push(&mut *queue, &["[a@1]@1"]);
    applied.drain(&mut *queue);
    applied.told();
    push(&mut *queue, &["[]@2", "[]@3"]);
    applied.drain(&mut *queue);
    assert_eq!(applied.told(), "delete a last a@1\nversion 3\n");
}

/// The initial count: deltas, or keys.
#[test]
fn initial_count() {
    let pops = |which: Which| {
        let (mut queue, _) = which.queue(Limits { batch: 1, ..Limits::default() });
        push(&mut *queue, &["[a@1 b@1]@1", "~a@2", "~a@3"]);
        let mut pops = Vec::new();
        while !queue.has_synced() {
            let Popped::Batch(batch) = queue.pop() else { panic!() };
            queue.processed();
            pops.push(batch.deltas.len());
        }
        pops
    };
    assert_eq!(pops(Which::Atomic), [1], "one state");
    assert_eq!(pops(Which::Apart), [1, 1], "two deltas");
    assert_eq!(pops(Which::Delta), [3, 1], "two keys, one of them with what came after");
    assert_eq!(pops(Which::DeltaToNewest), [1, 1], "two keys");
}

/// A resync: one marker for everything, in its place; or each object at rest, and none that has changes waiting.
#[test]
fn resync() {
    let deltas = |which: Which| {
        let (mut queue, mut applied) = which.queue(Limits::default());
        push(&mut *queue, &["[a@1 b@1]@1"]);
        applied.drain(&mut *queue);
        push(&mut *queue, &["~a@2"]);
        queue.resync();
        queue.resync();
        let mut names = Vec::new();
        while let Popped::Batch(batch) = queue.pop() {
            queue.processed();
            names.extend(batch.deltas.iter().map(|delta| match delta {
                Delta::SyncAll => "all".to_owned(),
                Delta::Sync(object) => format!("sync {object}"),
                other => other.object().map(ToString::to_string).unwrap_or_default(),
            }));
        }
        names.join(", ")
    };
    assert_eq!(deltas(Which::Atomic), "a@2, all, all");
    assert_eq!(deltas(Which::Apart), "a@2, sync b@1");
    assert_eq!(deltas(Which::Delta), "a@2, sync b@1");
}

/// Bookmarks: in their place, or when nothing waits any more, and then the last only.
#[test]
fn bookmarks() {
    let versions = |which: Which| {
        let (mut queue, mut applied) = which.queue(Limits::default());
        push(&mut *queue, &["[]@1"]);
        applied.drain(&mut *queue);
        applied.told();
        push(&mut *queue, &["+a@2", "bookmark@3", "+b@4", "bookmark@5"]);
        applied.drain(&mut *queue);
        applied.told().lines().collect::<Vec<_>>().join(", ")
    };
    for which in [Which::Atomic, Which::Apart] {
        assert_eq!(versions(which), "add a@2, version 3, add b@4, version 5");
    }
    for which in [Which::Delta, Which::DeltaToNewest] {
        assert_eq!(versions(which), "add a@2, add b@4, version 5");
    }
}

/// Batches: of many keys, or of one.
#[test]
fn batches() {
    let lengths = |which: Which| {
        let (mut queue, mut applied) = which.queue(Limits::default());
        push(&mut *queue, &["[]@1"]);
        applied.drain(&mut *queue);
        push(&mut *queue, &["+a@2", "+b@3", "~a@4"]);
        let mut lengths = Vec::new();
        while let Popped::Batch(batch) = queue.pop() {
            queue.processed();
            lengths.push(batch.deltas.len());
        }
        lengths
    };
    assert_eq!(lengths(Which::Atomic), [2, 1]);
    assert_eq!(lengths(Which::Delta), [2, 1], "both of a, then b");
}

/// Memory behind a stuck consumer: one key that changes for ever fills a list, but not what merges to the newest.
#[test]
fn load_of_one_key_that_changes() {
    let items = |which: Which| {
        let (mut queue, _) = which.queue(Limits::default());
        push(&mut *queue, &["[]@0"]);
        for version in 1..=500 {
            let verb = ["+", "~", "-"][version % 3];
            push(&mut *queue, &[&format!("{verb}a@{version}")]);
        }
        queue.load().items
    };
    assert_eq!(items(Which::Atomic), 501);
    assert!(items(Which::DeltaToNewest) <= 3);
}
