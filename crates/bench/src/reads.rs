//! Cached reads, of the default representation and of the decoded one.

use std::hint::black_box;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{LabelSelector, ObjectKey};
use kubestrata_codec::{DecodeLayer, Decoded, Encoded, Item};
use kubestrata_store_index::{Index, Query, Reader, Stored};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tower::Layer as _;

use crate::Result;
use crate::follow::follow;
use crate::measure::memory_kb;
use crate::site::{Form, Place, Stack};

/// The index of the peers.
const NODE: &str = "spec.nodeName";

/// Whose pods to read.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
}

/// How often each read is repeated; the peers' own counts by default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) get: usize,
    pub(crate) label: usize,
    pub(crate) index: usize,
    pub(crate) full: usize,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { get: 20_000, label: 40, index: 200, full: 5 }
    }
}

/// Runs it once.
pub(crate) async fn run(options: &Options) -> Result {
    let stack = options.place.connect(true)?;
    measure(stack, &options.place.namespace, Rounds::default()).await
}

/// Runs it once over any stack.
pub(crate) async fn measure(stack: Stack, namespace: &str, rounds: Rounds) -> Result {
    let collection = Form::default().pods(namespace);
    let node = || -> Result<Vec<_>> { Ok(vec![NODE.parse()?]) };
    let decoded = DecodeLayer::<Pod>::new().layer(stack.clone());
    let encoded = {
        let indexes = node()?.into_iter().map(Index::field).collect();
        follow::<Encoded>(Arc::new(stack), collection.clone(), indexes).await?
    };
    let shared = {
        let indexes = node()?.into_iter().map(Index::field).collect();
        follow::<Decoded<Pod>>(Arc::new(decoded), collection, indexes).await?
    };
    let mut result = Map::new();
    result.insert("what".to_owned(), json!("kubestrata reads"));
    result.insert("objects".to_owned(), json!(encoded.informer.reader().len()));
    let reader = encoded.informer.reader();
    let keys = keys(namespace, reader.len());
    if keys.is_empty() {
        return Err(NotThere.into());
    }
    // Every read of an encoded store decodes; a lazy one only hands out the object.
    let times = [
        ("get_us", get(&reader, &keys, rounds.get, true)?),
        ("get_lazy_us", get(&reader, &keys, rounds.get, false)?),
        ("list_label_us", label(&reader, namespace, rounds.label, true)?),
        ("list_label_lazy_us", label(&reader, namespace, rounds.label, false)?),
        ("list_index_us", index(&reader, rounds.index, true)?),
        ("list_index_lazy_us", index(&reader, rounds.index, false)?),
        ("list_full_us", full(&reader, rounds.full, true)?),
        ("list_full_lazy_us", full(&reader, rounds.full, false)?),
    ];
    let reader = shared.informer.reader();
    let shared = [
        ("get_shared_us", get(&reader, &keys, rounds.get, true)?),
        ("list_label_shared_us", label(&reader, namespace, rounds.label, true)?),
        ("list_index_shared_us", index(&reader, rounds.index, true)?),
        ("list_full_shared_us", full(&reader, rounds.full, true)?),
    ];
    result
        .extend(times.into_iter().chain(shared).map(|(name, time)| (name.to_owned(), json!(time))));
    result.insert("peak_kb".to_owned(), json!(memory_kb("VmHWM")));
    Ok(Value::Object(result))
}

fn keys(namespace: &str, count: usize) -> Vec<ObjectKey> {
    (0..count).map(|index| ObjectKey::namespaced(namespace, &format!("pod-{index:06}"))).collect()
}

/// Microseconds of one call.
fn time(rounds: usize, mut read: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    for round in 0..rounds {
        read(round)?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let rounds = rounds as f64;
    Ok(start.elapsed().as_secs_f64() * 1e6 / rounds)
}

/// An object that must be there is not.
#[derive(Debug, thiserror::Error)]
#[error("the store has too few objects for this read")]
struct NotThere;

fn get<T: Stored + Item<Pod>>(
    reader: &Reader<T>,
    keys: &[ObjectKey],
    rounds: usize,
    decode: bool,
) -> Result<f64> {
    time(rounds, |round| {
        let object = reader.get(&keys[round % keys.len()]).ok_or(NotThere)?;
        if decode {
            black_box(object.get()?);
        } else {
            black_box(object);
        }
        Ok(())
    })
}

fn label<T: Stored + Item<Pod>>(
    reader: &Reader<T>,
    namespace: &str,
    rounds: usize,
    decode: bool,
) -> Result<f64> {
    time(rounds, |round| {
        let app = LabelSelector::equal("app", format!("app-{}", round % 100));
        let selected = reader.select(&Query::all().in_namespace(namespace).labels(app))?;
        consume(&selected.objects, decode)
    })
}

fn index<T: Stored + Item<Pod>>(reader: &Reader<T>, rounds: usize, decode: bool) -> Result<f64> {
    time(rounds, |round| consume(&reader.by_index(NODE, &format!("node-{}", round % 50))?, decode))
}

fn full<T: Stored + Item<Pod>>(reader: &Reader<T>, rounds: usize, decode: bool) -> Result<f64> {
    time(rounds, |_| consume(&reader.list(), decode))
}

/// Does with a list what its reader wants: its Rust values, or the objects as they are.
fn consume<T: Item<Pod>>(objects: &[T], decode: bool) -> Result<()> {
    if objects.is_empty() {
        return Err(NotThere.into());
    }
    if decode {
        let values = objects.iter().map(Item::get).collect::<std::result::Result<Vec<_>, _>>()?;
        black_box(values);
    } else {
        black_box(objects);
    }
    Ok(())
}
