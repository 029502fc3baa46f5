//! Models of the hand-off, run under `--cfg kubestrata_loom`.

use std::collections::HashMap;
use std::sync::Mutex;

use kubestrata_api_types::{
    Event, Object as _, ObjectKey, ObjectMeta, PartialObjectMetadata, Snapshot, Update,
};
use loom::future::block_on;
use loom::thread;

use crate::{
    Config, Consumer, Delta, DeltaFifo, KnownObjects, Limits, Merging, Metrics, Producer, Queue,
    RealFifo, channel, over,
};

type Node = PartialObjectMetadata;

fn model(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Two forced switches find the lost wake-ups of a hand-off between two threads, in seconds.
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn node(name: &str) -> Node {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Node { metadata, ..Node::default() }
}

fn bounded(items: usize) -> (Producer<Node>, Consumer<Node>) {
    let limits = Limits { items, ..Limits::default() };
    channel(Config { limits, ..Config::default() })
}

fn names(deltas: Vec<Delta<Node>>) -> Vec<String> {
    deltas.iter().filter_map(Delta::key).map(|key| key.to_string()).collect()
}

/// A bound of one: the producer waits for the consumer and the consumer for the producer, and neither sleeps for ever;
/// what was pushed arrives once and in order, and the end is seen.
#[test]
fn every_update_arrives_in_order() {
    model(|| {
        let (mut producer, mut consumer) = bounded(1);
        let pushing = thread::spawn(move || {
            for name in ["a", "b"] {
                block_on(producer.push(Update::Event(Event::Added(node(name))))).unwrap();
            }
        });
        let mut seen = Vec::new();
        while let Some(mut batch) = block_on(consumer.next_batch()) {
            seen.extend(names(batch.take()));
        }
        assert_eq!(seen, ["a", "b"]);
        pushing.join().unwrap();
    });
}

/// A consumer that goes away frees a producer that waits.
#[test]
fn a_waiting_producer_is_told_of_the_end() {
    model(|| {
        let (mut producer, consumer) = bounded(1);
        let going = thread::spawn(move || drop(consumer));
        let mut refused = false;
        for name in ["a", "b"] {
            refused |= block_on(producer.push(Update::Event(Event::Added(node(name))))).is_err();
        }
        assert!(refused);
        going.join().unwrap();
    });
}

/// Whoever waits for the first state is woken, and not before it was processed.
#[test]
fn synced_follows_processing() {
    model(|| {
        let (mut producer, mut consumer) = bounded(1);
        let synced = producer.synced();
        let state =
            Snapshot { items: vec![node("a")], unreadable: vec![], resource_version: 1.into() };
        block_on(producer.push(Update::Replace(state))).unwrap();
        let processing = thread::spawn(move || {
            let latch = consumer.synced();
            let batch = block_on(consumer.next_batch()).unwrap();
            assert!(batch.is_initial() && !latch.is_set());
            batch.done();
        });
        block_on(synced.wait());
        assert!(synced.is_set());
        processing.join().unwrap();
    });
}

/// A consumer's store; its lock is no part of what is modelled, as every use of it is ordered by the queue's.
#[derive(Default)]
struct Store(Mutex<HashMap<ObjectKey, Node>>);

impl Store {
    fn apply(&self, delta: Delta<Node>) {
        let mut objects = self.0.lock().unwrap();
        match &delta {
            Delta::Deleted(deleted) => {
                objects.remove(&deleted.key());
            }
            other => {
                if let Some(object) = other.object() {
                    objects.insert(object.key(), object.clone());
                }
            }
        }
    }
}

impl KnownObjects<Node> for Store {
    fn for_each_key(&self, f: &mut dyn FnMut(&ObjectKey)) {
        self.0.lock().unwrap().keys().for_each(f);
    }

    fn get(&self, key: &ObjectKey) -> Option<Node> {
        self.0.lock().unwrap().get(key).cloned()
    }
}

/// A queue that compares with the consumer's store does so while the consumer is between queue and store: what is on its
/// way there is deleted all the same, whenever the deletion or the new state comes.
fn no_deletion_is_lost(queue: fn(std::sync::Arc<Store>) -> Box<dyn Queue<Node>>, replace: bool) {
    model(move || {
        let store = std::sync::Arc::new(Store::default());
        let (mut producer, mut consumer) =
            over(queue(std::sync::Arc::clone(&store)), Metrics::default());
        block_on(producer.push(Update::Event(Event::Added(node("a"))))).unwrap();
        let pushing = thread::spawn(move || {
            let gone = if replace {
                Update::Replace(Snapshot {
                    items: Vec::new(),
                    unreadable: Vec::new(),
                    resource_version: 2.into(),
                })
            } else {
                Update::Event(Event::Deleted(node("a")))
            };
            block_on(producer.push(gone)).unwrap();
        });
        while let Some(mut batch) = block_on(consumer.next_batch()) {
            batch.take().into_iter().for_each(|delta| store.apply(delta));
        }
        pushing.join().unwrap();
        assert!(store.0.lock().unwrap().is_empty());
    });
}

fn apart(store: std::sync::Arc<Store>) -> Box<dyn Queue<Node>> {
    Box::new(RealFifo::with_known_objects(Limits::default(), |_| 1, store))
}

fn delta(store: std::sync::Arc<Store>) -> Box<dyn Queue<Node>> {
    Box::new(DeltaFifo::new(Limits::default(), |_| 1, store, Merging::ToNewest))
}

#[test]
fn a_real_fifo_with_known_objects_loses_no_deletion() {
    no_deletion_is_lost(apart, false);
    no_deletion_is_lost(apart, true);
}

#[test]
fn a_delta_fifo_loses_no_deletion() {
    no_deletion_is_lost(delta, false);
    no_deletion_is_lost(delta, true);
}
