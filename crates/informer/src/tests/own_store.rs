//! An informer over a store of the user's own: a map behind a lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestrata_api_types::{Object as _, ObjectKey, ResourceVersion};
use kubestrata_store_index::{Change, StoreVersion, Usage};
use kubestrata_testkit::{Thing, things};
use parking_lot::Mutex;

use super::convergence::{bad_day, storm};
use crate::{Applied, Fifo, Informer, Merging, Objects, Replaced, Store, StoreReader};

#[derive(Clone, Default)]
struct Map(Arc<Mutex<BTreeMap<ObjectKey, Thing>>>);

impl Store<Thing> for Map {
    type Reader = Self;

    fn reader(&self) -> Self {
        self.clone()
    }

    fn apply(&mut self, changes: Vec<Change<Thing>>) -> Applied<Thing> {
        let mut objects = self.0.lock();
        let changed = changes.into_iter().map(|change| match change {
            Change::Upsert(object) => objects.insert(object.key(), object),
            Change::Delete { key, .. } => objects.remove(&key),
            Change::Bookmark(_) => None,
        });
        Applied { previous: changed.collect(), problems: Vec::new() }
    }

    fn replace(&mut self, new: Vec<Thing>, _: ResourceVersion) -> Replaced<Thing> {
        let mut objects = self.0.lock();
        let mut before = std::mem::take(&mut *objects);
        let previous = new.iter().map(|object| before.remove(&object.key())).collect();
        objects.extend(new.into_iter().map(|object| (object.key(), object)));
        Replaced { previous, removed: before.into_values().collect(), problems: Vec::new() }
    }
}

impl StoreReader<Thing> for Map {
    fn get(&self, key: &ObjectKey) -> Option<Thing> {
        self.0.lock().get(key).cloned()
    }

    fn freeze(&self) -> Arc<dyn Objects<Thing>> {
        Arc::new(self.0.lock().values().cloned().collect::<Vec<_>>())
    }

    fn len(&self) -> usize {
        self.0.lock().len()
    }

    fn version(&self) -> StoreVersion {
        StoreVersion::default()
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_converges_over_a_store_of_the_users_own() {
    for seed in 200..210 {
        for fifo in [Fifo::Atomic, Fifo::Apart, Fifo::ByKey(Merging::ToNewest)] {
            let (world, server, config) = bad_day(seed, fifo);
            let source = Arc::new(server.clone());
            let informer = Informer::with_store(source, things(), config, Map::default());
            storm(&informer, &world, &server, seed).await;
            assert_eq!(*informer.reader().0.lock(), server.objects());
        }
    }
}
