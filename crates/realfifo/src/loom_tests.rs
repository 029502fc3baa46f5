//! Models of the hand-off, run under `--cfg kubestrata_loom`.

use kubestrata_api_types::{Event, ObjectMeta, PartialObjectMetadata, Snapshot, Update};
use loom::future::block_on;
use loom::thread;

use crate::{Config, Consumer, Delta, Limits, Producer, channel};

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
