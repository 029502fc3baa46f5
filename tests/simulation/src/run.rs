//! One run: a server, a network, some clients, a story that a seed tells.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::Format;
use kubestrata_apiserver::{Config, Server};
use kubestrata_testkit::FakeWorld;
use tokio::time::{Instant, sleep};

use crate::client::{self, Follow};
use crate::log::{Counts, Log, note};
use crate::network::{Network, Rates};
use crate::sim::{KINDS, Kind, Sim, View};
use crate::truth::Objects;
use crate::writer::Writer;

/// Within this time after the last fault every client must be as the server is. The longest way there is a half-open watch
/// (its timeout, at most 240 s, and a margin), a refused request on its heels, and the delays after both.
const CONVERGENCE: Duration = Duration::from_secs(15 * 60);
/// For this time faults go on while clients are to notice that the server was put back.
const NOTICE: Duration = Duration::from_secs(2 * 60);
/// Steps in a time of faults.
const STEPS: u64 = 16;

/// What a run was.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Hash of everything that happened.
    pub(crate) hash: u64,
    /// The last lines of the log.
    pub(crate) lines: Vec<String>,
    /// How often each kind of thing happened.
    pub(crate) counts: Counts,
    /// The first broken promise.
    pub(crate) result: Result<(), String>,
}

/// Runs a seed on a runtime of its own, keeping so many lines of the log.
pub(crate) fn run(seed: u64, keep: usize) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        // Time moves only when nobody has anything to do, and then at once.
        .start_paused(true)
        .build()
        .expect("a runtime without IO can be made");
    runtime.block_on(async {
        let mut story = Story::new(seed, keep);
        let result = story.tell().await;
        let clients = std::mem::take(&mut story.clients);
        for client in clients {
            client.stop().await;
        }
        let log = &story.sim.log;
        let result = result.and_then(|()| log.check());
        Outcome { hash: log.hash(), lines: log.lines(), counts: log.counts(), result }
    })
}

struct Story {
    sim: Arc<Sim>,
    world: FakeWorld,
    network: Arc<Network>,
    writer: Writer,
    clients: Vec<Box<dyn Follow>>,
    /// Those whose informers are not started yet.
    waiting: Vec<usize>,
}

impl Story {
    fn new(seed: u64, keep: usize) -> Self {
        let world = FakeWorld::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let part = || FakeWorld::new(world.below(u64::MAX));
        let server = server(&world, part());
        // The memory storage gives revisions from 1, and the namespaces were its first writes.
        let revision = futures_util::FutureExt::now_or_never(server.revision());
        let revision = revision.expect("memory does not wait").expect("memory is there");
        let sim = Sim::new(Log::new(keep), revision);
        let network = Network::new(Arc::clone(&sim), part(), server);
        let writer = Writer::new(Arc::clone(&sim), part());
        let views = views(&world);
        let clients: Vec<Box<dyn Follow>> = views
            .into_iter()
            .enumerate()
            .map(|(number, view)| client::new(number, &sim, &network, view, part()))
            .collect();
        let waiting = (0..clients.len()).collect();
        Self { sim, world, network, writer, clients, waiting }
    }

    async fn tell(&mut self) -> Result<(), String> {
        for _ in 0..self.world.below(10) {
            self.writer.write(&self.network.server()).await;
        }
        // Each time of faults is followed by one without.
        let rounds = if self.world.chance(10) { 2 } else { 1 };
        for _ in 0..rounds {
            let rates = Rates::random(&self.world);
            note!(self.sim.log, "=== {rates:?}");
            self.network.set_rates(rates);
            for _ in 0..STEPS {
                self.step().await?;
            }
            note!(self.sim.log, "=== no more faults");
            self.network.set_rates(Rates::default());
            while let Some(number) = self.waiting.pop() {
                self.clients[number].start();
            }
            self.converge().await?;
        }
        Ok(())
    }

    /// Something happens, and some time passes.
    async fn step(&mut self) -> Result<(), String> {
        if self.world.chance(50)
            && let Some(number) = self.waiting.pop()
        {
            self.clients[number].start();
        }
        let number = self.world.below(self.clients.len() as u64);
        let number = usize::try_from(number).unwrap_or(0);
        match self.world.below(100) {
            0..=59 => self.writer.write(&self.network.server()).await,
            60..=69 => {
                for _ in 0..self.world.below(15) {
                    self.writer.write(&self.network.server()).await;
                }
            }
            70..=74 => self.clients[number].add_handler(),
            75..=78 => self.clients[number].remove_handler(),
            79..=83 => {
                note!(self.sim.log, "history is compacted");
                self.sim.log.count("compaction");
                self.network.server().compact().await;
            }
            84..=87 => self.restart(),
            88..=89 => self.restore().await?,
            _ => {}
        }
        let pause = match self.world.below(10) {
            0 => 20_000,
            1..=4 => 200,
            _ => 2_000,
        };
        self.pass(Duration::from_millis(self.world.below(pause))).await
    }

    /// Lets time pass, and looks at everything.
    async fn pass(&self, time: Duration) -> Result<(), String> {
        sleep(time).await;
        for client in &self.clients {
            client.check();
        }
        self.sim.log.check()
    }

    /// The server crashes and comes back as it was.
    fn restart(&self) {
        let down = self.down();
        note!(self.sim.log, "the server restarts, down for {down:?}");
        self.sim.log.count("restart, state kept");
        self.network.crash(self.network.server().restart(), down);
    }

    fn down(&self) -> Duration {
        Duration::from_millis(self.world.below(15_000))
    }

    /// The server goes on for a while, then crashes and comes back from a backup made before.
    async fn restore(&mut self) -> Result<(), String> {
        let server = self.network.server();
        let backup = server.backup().await.map_err(|error| error.to_string())?;
        let objects: [Objects; 2] = KINDS.map(|kind| self.sim.truth(kind).now().clone());
        for _ in 0..1 + self.world.below(8) {
            self.writer.write(&server).await;
            self.pass(Duration::from_millis(self.world.below(2_000))).await?;
        }
        let end = server.revision().await.map_err(|error| error.to_string())?;
        let again = self.world.chance(50);
        let begin = if again { backup.revision() } else { end + 1000 };
        let down = self.down();
        note!(self.sim.log, "the server goes from {end} to {begin}, down for {down:?}");
        self.sim.log.count(if again {
            "rollback, revisions again"
        } else {
            "rollback, new revisions"
        });
        self.network.crash(server.restore(&backup, begin), down);
        for (kind, objects) in KINDS.into_iter().zip(objects) {
            self.sim.truth(kind).rewind(end, begin, objects);
        }
        if !again {
            return Ok(());
        }
        // Once the revisions that clients know are given to other writes, nobody could tell that changes were missed. So
        // the writer waits until each client has noticed, and the faults do not go on for ever.
        let (start, rates) = (Instant::now(), self.network.rates());
        // An answer that had arrived when the server went is a client's knowledge too, as soon as it has looked at it.
        self.pass(Duration::from_millis(1)).await?;
        while let Some(client) = self.clients.iter().find(|client| client.version() > begin) {
            if start.elapsed() > NOTICE {
                self.network.set_rates(Rates::default());
            }
            if start.elapsed() > NOTICE + CONVERGENCE {
                let have = client.version();
                return Err(format!("a client at {have} never notices a server at {begin}"));
            }
            self.pass(Duration::from_secs(1)).await?;
        }
        note!(self.sim.log, "all clients have noticed");
        self.network.set_rates(rates);
        Ok(())
    }

    /// Waits until every client is as the server is.
    async fn converge(&self) -> Result<(), String> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(100);
        loop {
            self.pass(pause).await?;
            let Some(missing) = self.clients.iter().find_map(|client| client.missing()) else {
                break;
            };
            if start.elapsed() > CONVERGENCE {
                return Err(format!("not as the server after {CONVERGENCE:?}: {missing}"));
            }
            pause = (pause * 2).min(Duration::from_secs(10));
        }
        note!(self.sim.log, "all clients are as the server after {:?}", start.elapsed());
        Ok(())
    }
}

fn server(world: &FakeWorld, own: FakeWorld) -> Server {
    let bookmark_interval = Duration::from_secs(2 + world.below(60));
    let mut config = Config { bookmark_interval, ..Config::default() };
    config.gates.watch_list = world.chance(85);
    if world.chance(50) {
        // Short enough that clients fall out of it.
        let most = usize::try_from(2 + world.below(20)).unwrap_or(2);
        config.watch_cache.history_min = most.min(5);
        config.watch_cache.history_max = most;
        config.watch_cache.history_age = Duration::from_secs(1 + world.below(60));
    }
    Server::builder()
        .config(config)
        .world(Arc::new(own))
        .namespace("a")
        .namespace("b")
        .declare(Kind::Widget.resource())
        .start()
}

/// What the clients follow: each kind in each format that it has.
fn views(world: &FakeWorld) -> [View; 3] {
    [(Kind::Map, Format::Json), (Kind::Map, Format::Protobuf), (Kind::Widget, Format::Json)]
        .map(|(kind, format)| View::random(world, kind, format))
}
