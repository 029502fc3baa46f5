//! Models of the hand-offs, run under `--cfg kubestrata_loom`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kubestrata_api_types::{
    FieldPath, Object, OwnerRef, ResourceVersion, Timestamp, View, ViewError, Weigh, Weight,
};
use kubestrata_realfifo::Delta;
use kubestrata_store_index::store;
use kubestrata_telemetry::Noop;
use kubestrata_testkit::things;
use loom::future::block_on;
use loom::thread;

use crate::Overflow;
use crate::apply::{Rules, apply};
use crate::backlog::{Backlog, Close as _, Ending, Receiver};
use crate::listener::{Common, Listener};
use crate::members::Members;
use crate::metrics::{Meter, Metrics};
use crate::notice::Notice;

/// An object as small as can be: a model's threads have small stacks.
#[derive(Debug, Clone)]
struct Node {
    name: &'static str,
    version: u64,
}

impl Object for Node {
    fn name(&self) -> &str {
        self.name
    }
    fn namespace(&self) -> Option<&str> {
        None
    }
    fn uid(&self) -> Option<&str> {
        None
    }
    fn resource_version(&self) -> ResourceVersion {
        self.version.into()
    }
    fn generation(&self) -> Option<i64> {
        None
    }
    fn deletion_timestamp(&self) -> Option<Timestamp> {
        None
    }
    fn label(&self, _: &str) -> Option<&str> {
        None
    }
    fn for_each_label(&self, _: &mut dyn FnMut(&str, &str)) {}
    fn for_each_owner(&self, _: &mut dyn FnMut(OwnerRef<'_>)) {}
}

impl View for Node {
    fn field(&self, _: &FieldPath, _: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        Ok(())
    }
}

impl Weigh for Node {
    fn weight(&self) -> Weight {
        Weight::default()
    }
}

fn model(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Two forced switches find the lost wake-ups of a hand-off between two threads, in seconds.
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn add(name: &'static str) -> Notice<Node> {
    Notice::Add { object: Node { name, version: 1 }, initial: false }
}

fn update(from: u64, to: u64) -> Notice<Node> {
    let at = |version| Node { name: "a", version };
    Notice::Update { old: at(from), new: at(to), unchanged: false }
}

/// Names of what is received until the end.
fn names(mut receiver: Receiver<Node>) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((notice, _)) = block_on(receiver.receive()) {
        names.extend(notice.key().map(|key| key.to_string()));
    }
    names
}

/// A bound of one: the pump waits for the handler and the handler for the pump, and neither sleeps for ever; what was sent
/// arrives once and in order, and a drain ends after it.
#[test]
fn every_notice_arrives_in_order() {
    model(|| {
        let (backlog, receiver) = Backlog::new(1, Overflow::Block);
        let sending = thread::spawn(move || {
            for name in ["a", "b"] {
                block_on(backlog.send(add(name)));
            }
            backlog.close(Ending::Drain);
        });
        assert_eq!(names(receiver), ["a", "b"]);
        sending.join().unwrap();
    });
}

/// A handler that is removed, or whose task is gone, frees a pump that waits for it.
#[test]
fn a_waiting_pump_is_freed() {
    model(|| {
        let (backlog, receiver) = Backlog::new(1, Overflow::Block);
        let going = thread::spawn(move || drop(receiver));
        for name in ["a", "b"] {
            block_on(backlog.send(add(name)));
        }
        going.join().unwrap();
    });
}

/// Whatever is merged while the handler takes: each change follows from the one before.
#[test]
fn merged_changes_follow_from_each_other() {
    model(|| {
        let (backlog, mut receiver) = Backlog::new(1, Overflow::Coalesce);
        let sending = thread::spawn(move || {
            for version in 1..4 {
                block_on(backlog.send(update(version, version + 1)));
            }
            backlog.close(Ending::Drain);
        });
        let mut at = 1;
        while let Some((notice, _)) = block_on(receiver.receive()) {
            let Notice::Update { old, new, .. } = notice else { panic!() };
            assert_eq!(old.version, at);
            at = new.version;
        }
        assert_eq!(at, 4);
        sending.join().unwrap();
    });
}

/// I1: a handler that joins while a batch goes into the store either finds its effect there or is told of it.
#[test]
fn a_handler_that_joins_misses_nothing_and_is_told_nothing_twice() {
    model(|| {
        let (mut writer, _) = store::<Node>();
        let reader = writer.reader();
        let members = Arc::new(Members::new());
        let (pump_members, pump_reader) = (Arc::clone(&members), reader.clone());
        let pumping = thread::spawn(move || {
            let rules = Rules { recreate_as_update: false, tell_unknown_deletes: true, tell: true };
            let deltas = vec![Delta::Added(Node { name: "a", version: 1 })];
            let (listeners, outcome) =
                pump_members.change(|_| apply(&mut writer, &pump_reader, deltas, false, rules));
            for notice in outcome.notices {
                for listener in listeners.iter() {
                    block_on(listener.send(notice.clone()));
                }
            }
        });
        let meter = Meter::new(Arc::new(Noop), "", &things());
        let metrics = Metrics::new(meter).handler("");
        let common = Arc::new(Common::new("".into(), metrics));
        let (backlog, receiver) = Backlog::new(4, Overflow::Block);
        let joined = members.join(&reader, |id| {
            Arc::new(Listener {
                id,
                common,
                backlog: Arc::clone(&backlog),
                tell_unchanged: true,
                resync_due: AtomicBool::new(false),
            })
        });
        pumping.join().unwrap();
        backlog.close(Ending::Drain);
        let found = joined.unwrap().stored.len();
        assert_eq!(found + names(receiver).len(), 1);
    });
}
