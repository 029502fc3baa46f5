//! Random changes and faults: the store and what each handler was told converge to the server's state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{Object as _, ObjectKey};
use kubestrata_store_index::Index;
use kubestrata_testkit::{FakeWorld, Faults, Model, Thing, things};
use parking_lot::Mutex;

use crate::{
    Config, Fifo, Handler, HandlerConfig, Informer, Merging, Overflow, QueueLimits, Registration,
    StoreReader, reflector,
};

/// Keeps a state by what it is told alone, and checks that each call follows from the ones before.
#[derive(Clone, Default)]
pub(super) struct Follower(Arc<Mutex<BTreeMap<ObjectKey, Thing>>>);

impl Handler<Thing> for Follower {
    fn on_add(&self, object: &Thing, _: bool) {
        let before = self.0.lock().insert(object.key(), object.clone());
        assert_eq!(before, None, "an add of an object that is there");
    }

    fn on_update(&self, old: &Thing, new: &Thing) {
        assert_eq!(old.uid, new.uid, "an update to another object");
        assert!(new.resource_version.is_at_least(&old.resource_version).unwrap());
        let before = self.0.lock().insert(new.key(), new.clone());
        assert_eq!(before.as_ref(), Some(old), "an update from a state that was not told");
    }

    fn on_delete(&self, last: &Thing, final_state_known: bool) {
        let before =
            self.0.lock().remove(&last.key()).expect("a delete of an object that is there");
        assert_eq!(before.uid, last.uid);
        assert!(final_state_known || before == *last);
    }
}

/// One random change.
fn change(server: &Model, world: &FakeWorld) {
    let name = format!("o{}", world.below(12));
    let thing = Thing::new(&name, 0).in_namespace(&format!("n{}", world.below(2)));
    match world.below(10) {
        0..=2 => {
            server.delete(&thing.key());
        }
        3 if world.chance(30) => server.compact(),
        _ => {
            server.put(thing.labelled("app", &format!("a{}", world.below(3))));
        }
    }
}

/// A server on a bad day, and the configuration of an informer that follows it.
pub(super) fn bad_day(seed: u64, fifo: Fifo) -> (Arc<FakeWorld>, Model, Config<Thing>) {
    let world = Arc::new(FakeWorld::new(seed));
    let server = Model::new(Arc::clone(&world));
    server.set_faults(Faults::bad_day());
    let reflector = reflector::Config {
        world: Arc::clone(&world) as _,
        fallback_for: Duration::from_secs(20),
        ..reflector::Config::default()
    };
    let queue = QueueLimits {
        items: 1 + usize::try_from(world.below(8)).unwrap(),
        batch: 1 + usize::try_from(world.below(4)).unwrap(),
        ..QueueLimits::default()
    };
    (world, server, Config { reflector, queue, fifo, ..Config::default() })
}

/// Random changes, and handlers that come meanwhile, each with a backlog of its own kind. Then the faults end, and what
/// each handler was told is the server's state.
pub(super) async fn storm<R: StoreReader<Thing> + Clone>(
    informer: &Informer<Thing, R>,
    world: &FakeWorld,
    server: &Model,
    seed: u64,
) {
    informer.start();
    let mut followers: Vec<(Follower, Registration)> = Vec::new();
    for step in 0..150 {
        change(server, world);
        if step % 30 == 0 {
            let follower = Follower::default();
            let backlog = 1 + usize::try_from(world.below(3)).unwrap();
            let config = HandlerConfig {
                backlog,
                overflow: if world.chance(50) { Overflow::Coalesce } else { Overflow::Block },
                resync: world.chance(50).then_some(Duration::from_secs(5)),
                ..HandlerConfig::default()
            };
            let registration = informer.add_handler(follower.clone(), config).unwrap();
            followers.push((follower, registration));
        }
        tokio::time::sleep(Duration::from_millis(world.below(3000))).await;
    }
    server.set_faults(Faults::default());
    let last = Thing::new("last", 0);
    server.put(last.clone());
    for _ in 0..600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if informer.reader().get(&last.key()).is_some() {
            break;
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;

    let truth = server.objects();
    let stored = informer.reader().freeze();
    let stored = stored.iter().map(|thing| (thing.key(), thing.clone()));
    assert_eq!(stored.collect::<BTreeMap<_, _>>(), truth, "seed {seed}: the store");
    for (follower, registration) in followers {
        assert!(registration.has_synced());
        assert_eq!(registration.status().panics, 0, "seed {seed}: a handler was told nonsense");
        assert_eq!(*follower.0.lock(), truth, "seed {seed}: a handler");
    }
    assert_eq!(informer.status().unreadable, 0);
}

async fn run(seed: u64, fifo: Fifo) {
    let (world, server, config) = bad_day(seed, fifo);
    let informer = Informer::new(Arc::new(server.clone()), things(), config);
    informer.add_index(Index::label("app")).unwrap();
    storm(&informer, &world, &server, seed).await;
    let truth = server.objects();
    let newest = truth.values().map(|thing| thing.resource_version.as_u64()).max().unwrap();
    let version = informer.reader().version().version;
    assert!(version.as_u64() >= newest, "seed {seed}: the store's version");
    for app in ["a0", "a1", "a2"] {
        let want = truth.values().filter(|thing| thing.label("app") == Some(app)).count();
        let have = informer.reader().by_index("metadata.labels['app']", app).unwrap().len();
        assert_eq!(have, want, "seed {seed}: the index");
    }
}

#[tokio::test(start_paused = true)]
async fn store_and_handlers_converge_after_any_faults() {
    for seed in 0..40 {
        run(seed, Fifo::Atomic).await;
    }
}

/// The same over each other queue.
#[tokio::test(start_paused = true)]
async fn an_informer_converges_over_every_queue() {
    for seed in 100..120 {
        run(seed, Fifo::Apart).await;
        run(seed, Fifo::ByKey(Merging::Deletions)).await;
        run(seed, Fifo::ByKey(Merging::ToNewest)).await;
    }
}
