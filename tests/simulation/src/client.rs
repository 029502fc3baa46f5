//! One client: a transport over the network, an informer, and handlers that watch it.

mod config;
mod store;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use kubestrata_api_types::{BoxFuture, ListWatch};
use kubestrata_codec::{DecodeLayer, Encoded};
use kubestrata_informer::store::Stored;
use kubestrata_informer::{Fifo, HandlerConfig, Informer, Overflow, Registration};
use kubestrata_testkit::FakeWorld;
use tokio::task::JoinSet;
use tower::Layer as _;

use self::config::{ConfigMap, Widget};
use self::store::{check_store, contents};
use crate::log::note;
use crate::network::{Network, Wire};
use crate::recorder::Recorder;
use crate::sim::{Form, Kind, Sim, View};
use crate::truth::{Follower, Instant, Objects};

/// Longer than any run.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// One client, whatever it keeps of each object.
pub(crate) trait Follow {
    /// Starts the informer, and looks at the store when it says that it is synced.
    fn start(&mut self);
    /// Adds a handler, and looks at what it was told when it says that it is synced.
    fn add_handler(&mut self);
    /// Removes a handler, if there is one to spare.
    fn remove_handler(&mut self);
    /// Compares the store with what the server held at the store's version.
    fn check(&self);
    /// The last version that it has from the server; 0 without one.
    fn version(&self) -> u64;
    /// What is still missing before all is as on the server.
    fn missing(&self) -> Option<String>;
    /// Stops the informer and ends all that watched it.
    fn stop(self: Box<Self>) -> BoxFuture<()>;
}

/// A client whose configuration comes from `world`, with a handler. Its informer is not started.
pub(crate) fn new(
    number: usize,
    sim: &Arc<Sim>,
    network: &Arc<Network>,
    view: View,
    world: FakeWorld,
) -> Box<dyn Follow> {
    let transport = config::transport(&world, Wire::new(Arc::clone(network), number));
    match (view.form, view.kind) {
        (Form::Encoded | Form::Metadata, _) => {
            Box::new(Client::<Encoded>::new(number, sim, Arc::new(transport), view, world))
        }
        (Form::Decoded, Kind::Map) => {
            let source = Arc::new(DecodeLayer::<ConfigMap>::new().layer(transport));
            Box::new(Client::new(number, sim, source, view, world))
        }
        (Form::Decoded, Kind::Widget) => {
            let source = Arc::new(DecodeLayer::<Widget>::new().layer(transport));
            Box::new(Client::new(number, sim, source, view, world))
        }
    }
}

struct Client<T: Stored> {
    number: usize,
    sim: Arc<Sim>,
    view: View,
    world: FakeWorld,
    fifo: Fifo,
    informer: Informer<T>,
    handlers: Vec<(Arc<Recorder<T>>, Registration)>,
    /// Handlers so far.
    named: usize,
    /// The instant in the history at which the informer started.
    started: Arc<OnceLock<Instant>>,
    /// The place at which the store was found last.
    follower: Arc<Mutex<Follower>>,
    /// Those who wait for something and then look.
    tasks: JoinSet<()>,
}

impl<T: Stored> Client<T> {
    fn new(
        number: usize,
        sim: &Arc<Sim>,
        source: Arc<dyn ListWatch<T>>,
        view: View,
        world: FakeWorld,
    ) -> Self {
        let config = config::config(&world, sim, number, view);
        note!(
            sim.log,
            "client {number}: {view:?} {:?} {:?}",
            config.fifo,
            config.reflector.backoff
        );
        let fifo = config.fifo;
        let informer = Informer::new(source, view.selection().collection, config);
        let follower = Arc::new(Mutex::new(Follower::new(view.scope)));
        let mut client = Self {
            number,
            sim: Arc::clone(sim),
            view,
            world,
            fifo,
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

    fn began(&self, stored: &Objects) -> Began {
        if self.informer.has_synced() {
            let stored = stored.iter().map(|(key, seen)| (key.clone(), seen.uid.clone()));
            return Began::With(stored.collect());
        }
        Began::Before(Arc::clone(&self.started))
    }

    /// Whether the store takes each state whole, so that it is at every instant as the server was.
    fn is_exact(&self) -> bool {
        self.fifo == Fifo::Atomic
    }
}

impl<T: Stored> Follow for Client<T> {
    fn start(&mut self) {
        self.started.get_or_init(|| self.sim.truth(self.view.kind).instant());
        self.informer.start();
        note!(self.sim.log, "client {} starts", self.number);
        let (sim, number, view) = (Arc::clone(&self.sim), self.number, self.view);
        let (informer, follower) = (self.informer.clone(), Arc::clone(&self.follower));
        let exact = self.is_exact();
        self.tasks.spawn(async move {
            if informer.wait_synced(LONG).await.is_err() {
                return;
            }
            note!(sim.log, "client {number} is synced at {}", informer.reader().version().version);
            if exact && informer.reader().version().version.is_unset() {
                sim.log.violation(format!("client {number} is synced and has no version"));
            }
            check_store(&sim, number, view, &informer.reader(), exact.then_some(&follower));
        });
    }

    fn add_handler(&mut self) {
        self.named += 1;
        let name = format!("client {} handler {}", self.number, self.named);
        let reader = self.informer.reader();
        let overflow = if self.world.chance(35) { Overflow::Coalesce } else { Overflow::Block };
        self.sim.log.count(match overflow {
            Overflow::Block => "handler that is told everything",
            Overflow::Coalesce => "handler that coalesces",
        });
        let merges = overflow == Overflow::Coalesce || matches!(self.fifo, Fifo::ByKey(_));
        let recorder =
            Recorder::new(name.clone(), Arc::clone(&self.sim), self.view, reader, merges);
        let recorder = Arc::new(recorder);
        let resync = self.world.chance(30).then(|| Duration::from_secs(10));
        let backlog = match self.world.below(3) {
            0 => 1,
            1 => 4,
            _ => 1024,
        };
        let config = HandlerConfig { name: name.clone().into(), backlog, overflow, resync };
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
            informer: self.informer.clone(),
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

    fn remove_handler(&mut self) {
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
        let sim = Arc::clone(&self.sim);
        self.tasks.spawn(async move {
            registration.ended().await;
            recorder.end();
            count_merged(&sim, &registration);
        });
    }

    fn check(&self) {
        let reader = self.informer.reader();
        let follower = self.is_exact().then_some(&self.follower);
        check_store(&self.sim, self.number, self.view, &reader, follower.map(|f| &**f));
    }

    fn version(&self) -> u64 {
        let status = self.informer.status();
        let reflector = status.reflector.resource_version.as_u64().unwrap_or_default();
        if !self.is_exact() {
            // The version of a store that takes a state apart never goes back.
            return reflector;
        }
        reflector.max(status.version.version.as_u64().unwrap_or_default())
    }

    fn missing(&self) -> Option<String> {
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

    fn stop(mut self: Box<Self>) -> BoxFuture<()> {
        Box::pin(async move {
            let status = self.informer.status();
            note!(
                self.sim.log,
                "client {} stops: {} states, {} unreadable, epoch {}",
                self.number,
                status.reflector.states,
                status.unreadable,
                status.version.epoch
            );
            if status.reflector.shard_ignored {
                self.sim.log.count("shards that the server does not know");
            }
            self.informer.stop().await;
            for (recorder, registration) in &self.handlers {
                recorder.end();
                count_merged(&self.sim, registration);
            }
            self.tasks.shutdown().await;
        })
    }
}

fn count_merged(sim: &Sim, registration: &Registration) {
    if registration.status().merged > 0 {
        sim.log.count("changes that became one");
    }
}

/// What a handler must have been told when it says that it is synced.
struct Expectation<T: Stored> {
    sim: Arc<Sim>,
    name: String,
    view: View,
    informer: Informer<T>,
    began: Began,
}

enum Began {
    /// The informer was synced and held these objects.
    With(Vec<(String, String)>),
    /// The informer's first state was still to come. It may be older than the handler, but not than the informer's start.
    Before(Arc<OnceLock<Instant>>),
}

impl<T: Stored> Expectation<T> {
    fn check(&self, recorder: &Recorder<T>) {
        note!(self.sim.log, "{} is synced", self.name);
        let objects = match &self.began {
            Began::With(objects) => objects.clone(),
            // Whatever revision the first state had, these objects were in it.
            Began::Before(started) => {
                let Some(instant) = started.get() else {
                    self.sim.log.violation(format!("{} is synced before the start", self.name));
                    return;
                };
                // A queue by key tells a state's own version after its objects, so the store's may be too low.
                let status = self.informer.status();
                let version = status.version.version.as_u64();
                let version = version.max(status.reflector.resource_version.as_u64());
                let version = version.unwrap_or_default();
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
