//! Models of writer and readers, run under `--cfg kubestrata_loom`.

use kubestrata_api_types::{ObjectMeta, PartialObjectMetadata};
use loom::future::block_on;
use loom::thread;

use crate::{Index, Query, WaitError, store};

type Node = PartialObjectMetadata;

fn model(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Two forced switches find the lost wake-ups and torn reads of two threads, in seconds.
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn node(name: &str, version: u64) -> Node {
    let mut metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    metadata.resource_version = Some(version.into());
    metadata.labels.insert("app".to_owned(), "web".to_owned());
    Node { metadata, ..Node::default() }
}

/// A wait ends whether it begins before, while or after its version comes, and what it waited for is then there.
#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let (mut writer, reader) = store::<Node>();
        let other = reader.clone();
        let waiting = thread::spawn(move || {
            let reached = block_on(other.at_least(2.into())).unwrap();
            assert_eq!(reached.version, 2.into());
            assert!(other.get_by_name(None, "b").is_some());
        });
        writer.upsert(node("a", 1));
        writer.upsert(node("b", 2));
        waiting.join().unwrap();
        assert_eq!(reader.len(), 2);
    });
}

/// A writer that goes away ends all waits.
#[test]
fn the_end_of_the_writer_ends_waits() {
    model(|| {
        let (writer, reader) = store::<Node>();
        let ending = thread::spawn(move || drop(writer));
        assert_eq!(block_on(reader.at_least(2.into())).unwrap_err(), WaitError::Closed);
        ending.join().unwrap();
    });
}

/// An index that is added while the writer writes finds every object.
#[test]
fn an_index_misses_no_write() {
    model(|| {
        let (mut writer, reader) = store::<Node>();
        writer.upsert(node("a", 1));
        let other = reader.clone();
        let adding = thread::spawn(move || other.add_index(Index::label("app")).unwrap());
        writer.upsert(node("b", 2));
        adding.join().unwrap();
        let found = reader.by_index("metadata.labels['app']", "web").unwrap();
        assert_eq!(found.len(), 2);
    });
}

/// A reader sees a replacement as a whole, with the version that belongs to it.
#[test]
fn a_replacement_is_never_half_seen() {
    model(|| {
        let (mut writer, reader) = store::<Node>();
        writer.replace(vec![node("a", 1), node("b", 1)], 1.into());
        let replacing = thread::spawn(move || {
            writer.replace(vec![node("b", 2), node("c", 2)], 2.into());
        });
        let seen = reader.select(&Query::all()).unwrap();
        assert_eq!(seen.objects.len(), 2);
        let versions = seen.objects.iter().map(|node| node.metadata.resource_version.clone());
        assert!(versions.flatten().all(|version| version == seen.version.version));
        replacing.join().unwrap();
    });
}
