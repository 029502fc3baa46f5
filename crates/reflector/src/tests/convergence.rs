//! Whatever goes wrong, the consumer's state ends as the server's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{Event, Object as _, ObjectKey, ResourceVersion, Update, World};
use kubestrata_testkit::{FakeWorld, Faults, Model, Thing, things};
use tokio::time::{Instant, timeout_at};

use super::seconds;
use crate::{Checked, Config, Consistency, Reflector};

/// A consumer that believes every word.
#[derive(Default)]
struct Mirror {
    objects: BTreeMap<ObjectKey, Thing>,
    version: ResourceVersion,
    states: u32,
    /// States that were older than what was told before.
    rewinds: u64,
}

impl Mirror {
    fn apply(&mut self, update: Update<Thing>) {
        let event = match update {
            Update::Replace(snapshot) => {
                let count = snapshot.items.len();
                self.objects =
                    snapshot.items.into_iter().map(|object| (object.key(), object)).collect();
                assert_eq!(self.objects.len(), count, "each key once");
                let older = snapshot.resource_version.is_at_least(&self.version) == Some(false);
                self.rewinds += u64::from(older);
                self.version = snapshot.resource_version;
                self.states += 1;
                return;
            }
            Update::Event(event) => event,
        };
        assert!(self.states > 0, "a state comes first");
        let version = match &event {
            Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => {
                object.resource_version()
            }
            Event::Bookmark(bookmark) => bookmark.resource_version.clone(),
            Event::Unreadable(_) => panic!("the model has no such objects"),
        };
        assert_eq!(version.is_at_least(&self.version), Some(true), "versions never go back");
        self.version = version;
        match event {
            Event::Added(object) | Event::Modified(object) => {
                self.objects.insert(object.key(), object);
            }
            Event::Deleted(object) => {
                self.objects.remove(&object.key());
            }
            _ => {}
        }
    }

    /// Follows for a while.
    async fn follow(&mut self, reflector: &mut Reflector<Thing>, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(update) = timeout_at(end, reflector.next()).await {
            self.apply(update);
        }
    }
}

fn change(model: &Model, world: &FakeWorld) {
    let name = format!("k{}", world.below(30));
    match world.below(100) {
        0..=69 => drop(model.put(Thing::new(&name, 0))),
        70..=97 => drop(model.delete(&ObjectKey::cluster(&name))),
        _ => model.compact(),
    }
}

/// Sixty seeds of six bad minutes each; after each the faults end, and after a while the states are equal.
#[tokio::test(start_paused = true)]
async fn the_state_converges_after_any_faults() {
    let (mut states, mut checks) = (0, 0);
    for seed in 0..60 {
        let world = Arc::new(FakeWorld::new(seed));
        let model = Model::new(Arc::clone(&world));
        let worst = seed % 2 == 0;
        let config = Config {
            streaming: seed % 3 != 0,
            page_size: (seed % 4 == 0).then_some(7),
            // So that a silent watch is given up within the time that is given.
            watch_timeout: seconds(30),
            consistency: [Consistency::Report, Consistency::Relist][seed as usize % 2],
            world: Arc::clone(&world) as Arc<dyn World>,
            ..Config::default()
        };
        let mut reflector = Reflector::new(model.clone(), things(), config);
        let mut mirror = Mirror::default();
        for round in 0..6 {
            model.set_faults(if worst { Faults::worst_day() } else { Faults::bad_day() });
            for _ in 0..50 {
                for _ in 0..world.below(4) {
                    change(&model, &world);
                }
                let time = Duration::from_millis(world.below(2500));
                mirror.follow(&mut reflector, time).await;
            }
            model.set_faults(Faults::default());
            mirror.follow(&mut reflector, seconds(400)).await;
            assert_eq!(mirror.objects, model.objects(), "seed {seed}, round {round}");
            let status = reflector.status().read();
            assert_eq!(status.states, u64::from(mirror.states));
            assert!(status.live_since.is_some() && status.failing.is_none());
            assert_eq!((mirror.rewinds, status.epoch), (0, 0), "the server never went back");
            let checked = status.last_check.map(|last| last.found);
            assert!(!matches!(checked, Some(Checked::Differs(_))), "seed {seed}: {checked:?}");
            checks += u32::from(matches!(checked, Some(Checked::Equal(_))));
        }
        states += mirror.states;
    }
    // The scenario is worth something only if there was much to recover from.
    assert!(states > 600 && checks > 50, "{states} states, {checks} comparisons");
}

/// A server whose storage is restored from a backup, at a random moment of a bad day: the state goes back with it, once,
/// as a new epoch.
#[tokio::test(start_paused = true)]
async fn a_restored_server_is_followed_back() {
    let mut rewinds = 0;
    for seed in 0..40 {
        let world = Arc::new(FakeWorld::new(seed));
        let model = Model::new(Arc::clone(&world));
        let config = Config {
            streaming: seed % 3 != 0,
            watch_timeout: seconds(30),
            world: Arc::clone(&world) as Arc<dyn World>,
            ..Config::default()
        };
        let mut reflector = Reflector::new(model.clone(), things(), config);
        let mut mirror = Mirror::default();
        for round in 0..5 {
            model.set_faults(Faults::bad_day());
            for at in 0..30 {
                if at == 10 {
                    model.save();
                }
                change(&model, &world);
                let time = Duration::from_millis(world.below(1500));
                mirror.follow(&mut reflector, time).await;
            }
            let (known, before) = (mirror.version.clone(), mirror.rewinds);
            model.restore();
            mirror.follow(&mut reflector, seconds(5)).await;
            model.set_faults(Faults::default());
            mirror.follow(&mut reflector, seconds(400)).await;
            assert_eq!(mirror.objects, model.objects(), "seed {seed}, round {round}");
            let back = u64::from(
                known.is_at_least(&model.version()) == Some(true) && known != model.version(),
            );
            assert_eq!(mirror.rewinds - before, back, "seed {seed}, round {round}");
            assert_eq!(reflector.status().read().epoch, mirror.rewinds);
        }
        rewinds += mirror.rewinds;
    }
    assert!(rewinds > 100, "{rewinds}");
}
