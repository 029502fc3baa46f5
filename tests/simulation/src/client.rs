//! One client: a transport over the network, an informer, and handlers that watch it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kubestrata_codec::Encoded;
use kubestrata_informer::reflector::{self, Backoff, FailureHook};
use kubestrata_informer::store::Reader;
use kubestrata_informer::{Config, HandlerConfig, Informer, QueueLimits, Registration};
use kubestrata_testkit::FakeWorld;
use kubestrata_transport::{Retry, Timeouts, Transport};
use tokio::task::JoinSet;

use crate::log::note;
use crate::network::{Network, Wire};
use crate::recorder::Recorder;
use crate::sim::{Sim, View};
use crate::truth::{Follower, Instant, Objects, Seen};

/// Longer than any run.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// One client.
pub(crate) struct Client {
    number: usize,
    sim: Arc<Sim>,
    view: View,
    world: FakeWorld,
    pub(crate) informer: Informer<Encoded>,
    handlers: Vec<(Arc<Recorder>, Registration)>,
    /// Handlers so far.
    named: usize,
    /// The instant in the history at which the informer started.
    started: Arc<OnceLock<Instant>>,
    /// The place at which the store was found last.
    follower: Arc<Mutex<Follower>>,
    /// Those who wait for something and then look.
    tasks: JoinSet<()>,
}

impl Client {
    /// A client whose configuration comes from `world`, with a handler. Its informer is not started.
    pub(crate) fn new(
        number: usize,
        sim: &Arc<Sim>,
        network: &Arc<Network>,
        view: View,
        world: FakeWorld,
    ) -> Self {
        let transport = transport(&world, Wire::new(Arc::clone(network), number));
        let config = config(&world, sim, number, view);
        note!(sim.log, "client {number}: {view:?} {:?}", config.reflector.backoff);
        let informer = Informer::new(Arc::new(transport), view.collection(), config);
        let follower = Arc::new(Mutex::new(Follower::new(view.scope)));
        let mut client = Self {
            number,
            sim: Arc::clone(sim),
            view,
            world,
            informer,
            handlers: Vec::new(),
            named: 0,
            started: Arc::default(),
            follower,
            tasks: JoinSet::new(),
        };
        client.add_handler();
        client
    }

    /// Starts the informer, and looks at the store when it says that it is synced.
    pub(crate) fn start(&mut self) {
        self.started.get_or_init(|| self.sim.truth(self.view.kind).instant());
        self.informer.start();
        note!(self.sim.log, "client {} starts", self.number);
        let (sim, number, view) = (Arc::clone(&self.sim), self.number, self.view);
        let (informer, follower) = (self.informer.clone(), Arc::clone(&self.follower));
        self.tasks.spawn(async move {
            if informer.wait_synced(LONG).await.is_err() {
                return;
            }
            note!(sim.log, "client {number} is synced at {}", informer.reader().version().version);
            if informer.reader().version().version.is_unset() {
                sim.log.violation(format!("client {number} is synced and has no version"));
            }
            check_store(&sim, number, view, &informer.reader(), &follower);
        });
    }

    /// Adds a handler, and looks at what it was told when it says that it is synced.
    pub(crate) fn add_handler(&mut self) {
        self.named += 1;
        let name = format!("client {} handler {}", self.number, self.named);
        let reader = self.informer.reader();
        let recorder = Recorder::new(name.clone(), Arc::clone(&self.sim), self.view, reader);
        let recorder = Arc::new(recorder);
        let resync = self.world.chance(30).then(|| Duration::from_secs(10));
        let backlog = match self.world.below(3) {
            0 => 1,
            1 => 4,
            _ => 1024,
        };
        let config = HandlerConfig {
            name: name.clone().into(),
            backlog,
            resync,
            ..HandlerConfig::default()
        };
        // Nothing runs between the two, so these are the objects that it begins with.
        let stored = contents(&self.informer.reader());
        let added = self.informer.add_handler(Arc::clone(&recorder), config);
        let registration = added.expect("the informer is not stopped");
        note!(self.sim.log, "{name} is added to {} objects", stored.len());
        let began = self.began(&stored);
        let expectation = Expectation {
            sim: Arc::clone(&self.sim),
            name,
            view: self.view,
            reader: self.informer.reader(),
            began,
        };
        let (told, waiting) = (Arc::clone(&recorder), registration.clone());
        self.tasks.spawn(async move {
            if waiting.wait_synced().await.is_ok() {
                expectation.check(&told);
            }
        });
        self.handlers.push((recorder, registration));
    }

    fn began(&self, stored: &Objects) -> Began {
        if self.informer.has_synced() {
            let stored = stored.iter().map(|(key, seen)| (key.clone(), seen.uid.clone()));
            return Began::With(stored.collect());
        }
        Began::Before(Arc::clone(&self.started))
    }

    /// Removes a handler, if there is one to spare.
    pub(crate) fn remove_handler(&mut self) {
        if self.handlers.len() < 2 {
            return;
        }
        let length = self.handlers.len() as u64;
        let at = usize::try_from(self.world.below(length)).unwrap_or(0);
        let (recorder, registration) = self.handlers.remove(at);
        if self.world.chance(50) {
            registration.remove();
        } else {
            registration.drain();
        }
        note!(self.sim.log, "client {} removes a handler", self.number);
        self.tasks.spawn(async move {
            registration.ended().await;
            recorder.end();
        });
    }

    /// Compares the store with what the server held at the store's version.
    pub(crate) fn check(&self) {
        let reader = self.informer.reader();
        check_store(&self.sim, self.number, self.view, &reader, &self.follower);
    }

    /// The last version that it has from the server; 0 without one.
    pub(crate) fn version(&self) -> u64 {
        let status = self.informer.status();
        let store = status.version.version.as_u64().unwrap_or_default();
        status.reflector.resource_version.as_u64().unwrap_or_default().max(store)
    }

    /// What is still missing before all is as on the server.
    pub(crate) fn missing(&self) -> Option<String> {
        let number = self.number;
        if !self.informer.has_synced() {
            return Some(format!("client {number} is not synced"));
        }
        let want = self.view.scope.select(self.sim.truth(self.view.kind).now());
        let have = contents(&self.informer.reader());
        if have != want {
            return Some(format!("client {number} holds {have:?}, the server {want:?}"));
        }
        for (recorder, registration) in &self.handlers {
            let name = &registration.status().name;
            if !registration.has_synced() {
                return Some(format!("{name} is not synced"));
            }
            let known = recorder.known();
            if known != want {
                return Some(format!("{name} knows {known:?}, the server has {want:?}"));
            }
        }
        None
    }

    /// Stops the informer and ends all that watched it.
    pub(crate) async fn stop(mut self) {
        let status = self.informer.status();
        note!(
            self.sim.log,
            "client {} stops: {} states, {} unreadable, epoch {}",
            self.number,
            status.reflector.states,
            status.unreadable,
            status.version.epoch
        );
        self.informer.stop().await;
        for (recorder, _) in &self.handlers {
            recorder.end();
        }
        self.tasks.shutdown().await;
    }
}

/// All objects of a store.
fn contents(reader: &Reader<Encoded>) -> Objects {
    reader.freeze().iter().map(|(key, object)| (key.to_string(), Seen::of(object))).collect()
}

/// The store must be what the server was at the store's version, at every instant.
fn check_store(
    sim: &Sim,
    number: usize,
    view: View,
    reader: &Reader<Encoded>,
    follower: &Mutex<Follower>,
) {
    let frozen = reader.freeze();
    let have: Objects =
        frozen.iter().map(|(key, object)| (key.to_string(), Seen::of(object))).collect();
    let version = &frozen.version().version;
    if version.is_unset() {
        if !have.is_empty() {
            sim.log.violation(format!("client {number} has no version and holds {have:?}"));
        }
        return;
    }
    let version = version.as_u64().unwrap_or_default();
    let truth = sim.truth(view.kind);
    let mut follower = follower.lock().unwrap_or_else(PoisonError::into_inner);
    if truth.find(&mut follower, version, &have).is_none() {
        let want = truth.expected(version, view.scope);
        sim.log.violation(format!(
            "client {number} holds at {version} {have:?}, but the server had {want:?}"
        ));
    }
}

/// What a handler must have been told when it says that it is synced.
struct Expectation {
    sim: Arc<Sim>,
    name: String,
    view: View,
    reader: Reader<Encoded>,
    began: Began,
}

enum Began {
    /// The informer was synced and held these objects.
    With(Vec<(String, String)>),
    /// The informer's first state was still to come. It may be older than the handler, but not than the informer's start.
    Before(Arc<OnceLock<Instant>>),
}

impl Expectation {
    fn check(&self, recorder: &Recorder) {
        note!(self.sim.log, "{} is synced", self.name);
        let objects = match &self.began {
            Began::With(objects) => objects.clone(),
            // Whatever revision the first state had, these objects were in it.
            Began::Before(started) => {
                let Some(instant) = started.get() else {
                    self.sim.log.violation(format!("{} is synced before the start", self.name));
                    return;
                };
                let version = self.reader.version().version.as_u64().unwrap_or_default();
                let truth = self.sim.truth(self.view.kind);
                truth.throughout(*instant, version, self.view.scope)
            }
        };
        for object in objects {
            if !recorder.was_told(&object) {
                let (key, uid) = &object;
                self.sim.log.violation(format!(
                    "{} is synced, but was not told of {key}, uid {uid}",
                    self.name
                ));
            }
        }
    }
}

fn seconds(world: &FakeWorld, least: u64, most: u64) -> Duration {
    Duration::from_secs(least + world.below(most - least + 1))
}

fn transport(world: &FakeWorld, wire: Wire) -> Transport {
    let mut config = kubestrata_transport::Config::in_process();
    config.timeouts = Timeouts {
        answer: seconds(world, 5, 60),
        watch_answer: seconds(world, 5, 30),
        body: seconds(world, 5, 30),
        watch_margin: seconds(world, 2, 30),
        ..Timeouts::default()
    };
    if world.chance(50) {
        config.retry = Retry::never();
    }
    Transport::over(wire, config).expect("a configuration without credentials is valid")
}

fn config(world: &FakeWorld, sim: &Arc<Sim>, number: usize, view: View) -> Config<Encoded> {
    let selector = view.scope.selector.parse().expect("the selectors are valid");
    let log = Arc::clone(sim);
    let failed = FailureHook::new(move |failure| {
        note!(log.log, "client {number}: {} failed: {}", failure.during, failure.recovery);
        log.log.count(match failure.recovery {
            reflector::Recovery::Retry(_) => "recovery: retry",
            reflector::Recovery::Reopen => "recovery: reopen",
            reflector::Recovery::Relist(_) => "recovery: relist",
            reflector::Recovery::AskForLatest => "recovery: ask for the latest",
            reflector::Recovery::FallBack => "recovery: fall back",
            reflector::Recovery::ListWhole => "recovery: list whole",
            _ => "recovery: other",
        });
    });
    let reflector = reflector::Config {
        labels: selector,
        streaming: world.chance(75),
        streaming_tries: 1 + u32::try_from(world.below(3)).unwrap_or(0),
        streaming_stall: seconds(world, 5, 75),
        fallback_for: seconds(world, 10, 300),
        page_size: world.chance(50).then(|| 1 + u32::try_from(world.below(5)).unwrap_or(0)),
        watch_timeout: seconds(world, 10, 120),
        read_margin: seconds(world, 2, 30),
        open_timeout: seconds(world, 5, 60),
        list_stall: seconds(world, 5, 60),
        backoff: Backoff { cap: seconds(world, 2, 30), ..Backoff::default() },
        world: Arc::new(FakeWorld::new(world.below(u64::MAX))),
        on_failure: Some(failed),
        ..reflector::Config::default()
    };
    let queue = match world.below(3) {
        0 => QueueLimits { batch: 2, items: 3, ..QueueLimits::default() },
        1 => QueueLimits { batch: 1, items: 1, ..QueueLimits::default() },
        _ => QueueLimits::default(),
    };
    Config { reflector, queue, ..Config::default() }
}
