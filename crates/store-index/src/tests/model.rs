//! Random operations against a naive model.

use std::collections::BTreeMap;

use kubestrata_api_types::{Object as _, ObjectKey, Weigh as _};

use super::{Item, broken, by_v, item};
use crate::{Change, Index, Query, store};

/// A small generator, so that a seed replays.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn random_key(random: &mut Random) -> String {
    format!("n{}/o{}", random.below(3), random.below(200))
}

fn random_item(random: &mut Random, key: &str, version: u64) -> Item {
    if random.below(20) == 0 {
        return broken(key, version);
    }
    let app = format!("app{}", random.below(4));
    let values: Vec<String> =
        (0..random.below(4)).map(|_| format!("v{}", random.below(6))).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    item(key, version, &app, &values)
}

#[test]
fn the_store_agrees_with_a_map_after_every_operation() {
    for seed in 0..12 {
        run(seed);
    }
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let (mut writer, reader) = store::<Item>();
    let mut model: BTreeMap<String, Item> = BTreeMap::new();
    reader.add_index(by_v()).unwrap();
    for version in 1..200 {
        match random.below(20) {
            0 => {
                let keys: std::collections::BTreeSet<String> =
                    (0..random.below(150)).map(|_| random_key(&mut random)).collect();
                let items: Vec<Item> =
                    keys.iter().map(|key| random_item(&mut random, key, version)).collect();
                let replaced = writer.replace(items.clone(), version.into());
                for (item, previous) in items.iter().zip(&replaced.previous) {
                    assert_eq!(model.remove(item.key().as_str()).as_ref(), previous.as_ref());
                }
                let mut removed: Vec<_> = replaced.removed;
                removed.sort_unstable_by_key(|item| item.key().to_string());
                assert_eq!(removed, model.into_values().collect::<Vec<_>>());
                model = items.into_iter().map(|item| (item.key().to_string(), item)).collect();
            }
            1 => {
                reader.remove_index("metadata.labels['app']");
            }
            2 => {
                reader.add_index(Index::label("app")).unwrap();
            }
            _ => {
                let changes: Vec<Change<Item>> = (0..random.below(30))
                    .map(|_| {
                        let key = random_key(&mut random);
                        if random.below(3) == 0 {
                            let key: ObjectKey = key.parse().unwrap();
                            Change::Delete { key, version: version.into() }
                        } else {
                            Change::Upsert(random_item(&mut random, &key, version))
                        }
                    })
                    .collect();
                let batch = writer.apply(changes.clone());
                for (change, previous) in changes.into_iter().zip(batch.previous) {
                    let expected = match change {
                        Change::Upsert(item) => model.insert(item.key().to_string(), item),
                        Change::Delete { key, .. } => model.remove(key.as_str()),
                        Change::Bookmark(_) => None,
                    };
                    assert_eq!(previous, expected);
                }
            }
        }
        compare(&mut random, &reader, &model);
    }
}

fn compare(random: &mut Random, reader: &crate::Reader<Item>, model: &BTreeMap<String, Item>) {
    reader.check();
    let usage = reader.usage();
    let bodies: usize = model.values().map(|item| item.weight().body).sum();
    assert_eq!((usage.objects, usage.bodies), (model.len(), bodies));
    let (namespace, app, value) = (
        format!("n{}", random.below(4)),
        format!("app{}", random.below(5)),
        format!("v{}", random.below(7)),
    );
    let bits = random.below(8);
    let mut query = Query::all().ordered();
    if bits & 1 != 0 {
        query = query.in_namespace(&namespace);
    }
    if bits & 2 != 0 {
        query = query.labels(format!("app={app}").parse().unwrap());
    }
    if bits & 4 != 0 {
        query = query.index("spec.v", &value);
    }
    let expected: Vec<&Item> = model
        .values()
        .filter(|item| bits & 1 == 0 || item.0.namespace == namespace)
        .filter(|item| bits & 2 == 0 || item.0.app == app)
        .filter(|item| bits & 4 == 0 || (!item.0.broken && item.0.values.contains(&value)))
        .collect();
    let selected = reader.select(&query).unwrap();
    assert_eq!(selected.objects.iter().collect::<Vec<_>>(), expected);
}
