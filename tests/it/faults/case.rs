//! One fault, one task, one way.

use std::fmt;
use std::time::Duration;

use futures_util::StreamExt as _;
use kubestrata_api_types::{
    BoxError, Event, GetOptions, ListOptions, ListPart, ListWatch, Object as _, Operation,
    ResourceVersion, Update, WatchOptions, WatchStream, cause_ref,
};
use kubestrata_codec::Encoded;
use kubestrata_reflector::{Backoff, Config, Reflector};
use kubestrata_testkit::{Fault, FaultProxy, Newcomers};
use kubestrata_transport::{Transport, TransportError};
use tokio::time::{Instant, sleep, timeout};

use super::rows::{Row, Trigger};
use super::way::{Ground, SEED, SEED_NAMESPACE, Way, collection, create, send};
use super::{case_limit, rows};

/// What the default deadlines are watched for: a watch asks to live so long.
const WATCH: Duration = Duration::from_secs(30);
/// At the default deadlines, what whoever is told of a fault by the kernel hears of it within.
const NOTICE: Duration = Duration::from_secs(10);
/// For a request that has been on its way, and shall not arrive twice.
const SETTLE: Duration = Duration::from_millis(300);

/// What the client does while it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// A GET.
    Read,
    /// A POST, each arrival of which makes another object.
    Write,
    /// A watch, and the event of an object that is made while it happens.
    Watch,
    /// The same by a reflector, which recovers by itself.
    Reflector,
}

impl Task {
    pub(super) const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Watch, Self::Reflector];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Watch => "watch",
            Self::Reflector => "reflector",
        }
    }
}

/// A cell of the table.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) row: &'static Row,
    pub(super) way: Way,
    pub(super) task: Task,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.row.name, self.task.name(), self.way.name())
    }
}

/// What came of it.
pub(super) struct Outcome {
    /// The caller's result, in a word or two.
    saw: String,
    /// From the call, or from the change that a watch should tell of, to that.
    took: Duration,
    /// From that to the success of the next call on the same transport.
    next: Option<Duration>,
    /// How often a write has arrived.
    arrived: usize,
    /// Whether the fault has struck.
    struck: bool,
}

/// Why an outcome is not as it should be.
pub(super) enum Problem {
    /// Nothing excuses it.
    Always(String),
    /// On a machine that does much else another deadline may pass than the one in question.
    Perhaps(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Always(text) | Self::Perhaps(text)) = self;
        f.write_str(text)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.2}", self.saw, self.took.as_secs_f64())?;
        match self.next {
            Some(next) if self.saw != "ok" => write!(f, " + {:.2}", next.as_secs_f64()),
            Some(_) => Ok(()),
            None => f.write_str(" + never"),
        }
    }
}

impl Case {
    /// What is wrong with an outcome.
    pub(super) fn problem(&self, outcome: &Outcome) -> Option<Problem> {
        let Self { row, way, task } = *self;
        let (saw, took, arrived) = (&outcome.saw, outcome.took, outcome.arrived);
        if outcome.next.is_none() {
            return Some(Problem::Perhaps(format!("{saw:?} after {took:?}")));
        }
        let least = usize::from(task == Task::Write && saw == "ok");
        if !(least..=1).contains(&arrived) {
            return Some(Problem::Always(format!(
                "{saw:?}, and the write arrived {arrived} times"
            )));
        }
        if !outcome.struck {
            return Some(Problem::Perhaps("the fault did not strike".to_owned()));
        }
        let expected = row.expected(task, way);
        let allowed = expected.split('|').any(|expected| expected == saw);
        (!allowed)
            .then(|| Problem::Perhaps(format!("{saw:?} after {took:?} instead of {expected:?}")))
    }

    pub(super) async fn run(self, ground: &Ground) -> Outcome {
        let proxy = ground.proxy(self.way).await;
        let transport = ground.transport(self.way, &proxy);
        let namespace = ground.make_namespace().await;
        let scene = Scene { case: self, ground, proxy, transport, namespace };
        let limit = case_limit(ground.scale);
        let run = async {
            match self.task {
                Task::Read | Task::Write => scene.unary().await,
                Task::Watch => scene.watch().await,
                Task::Reflector => scene.reflector().await,
            }
        };
        let run = timeout(limit, run).await;
        let mut outcome = run.unwrap_or_else(|_| Outcome {
            saw: "hangs".to_owned(),
            took: limit,
            next: None,
            arrived: 0,
            struck: true,
        });
        outcome.struck = scene.proxy.struck() > 0;
        // What was held back may arrive now.
        scene.proxy.heal();
        if self.task == Task::Write {
            sleep(SETTLE).await;
            outcome.arrived = scene.arrived().await;
        }
        outcome
    }
}

struct Scene<'a> {
    case: Case,
    ground: &'a Ground,
    proxy: FaultProxy,
    transport: Transport,
    namespace: String,
}

impl Scene<'_> {
    // === The fault ===

    /// Lets it happen, or be about to.
    async fn harm(&self) {
        match self.case.row.trigger {
            Trigger::Strike(fault) => {
                self.proxy.strike(fault);
                self.proxy.wait_struck(1).await;
            }
            Trigger::Idle(fault) => {
                self.proxy.strike(fault);
                sleep(self.ground.scaled(NOTICE)).await;
            }
            Trigger::Arm(fault, moment) | Trigger::ArmOpening(fault, moment) => {
                self.proxy.arm(self.at_scale(fault), moment, 1);
            }
            Trigger::Outage => {
                self.proxy.newcomers(Newcomers::Frozen);
                self.proxy.strike(Fault::Freeze);
                self.proxy.wait_struck(1).await;
            }
        }
    }

    fn at_scale(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Trickle { bytes, every } => {
                Fault::Trickle { bytes, every: every * rows::SCALE / self.ground.scale }
            }
            other => other,
        }
    }

    /// Ends an outage when its time has come; nothing else ends by itself.
    async fn end_outage<T>(&self, task: impl Future<Output = T>) -> T {
        if !matches!(self.case.row.trigger, Trigger::Outage) {
            return task.await;
        }
        let healing = async {
            sleep(self.ground.scaled(rows::OUTAGE)).await;
            self.proxy.heal();
        };
        tokio::join!(task, healing).0
    }

    // === Tasks ===

    async fn unary(&self) -> Outcome {
        // The connection is there, and has been used.
        self.success(|| self.read()).await;
        self.harm().await;
        let start = Instant::now();
        self.end_outage(async {
            let result = match self.case.task {
                Task::Write => self.write().await,
                _ => self.read().await,
            };
            let (saw, took) = (seen(result), start.elapsed());
            let next = self.success(|| self.read()).await;
            Outcome { saw, took, next: Some(next), arrived: 0, struck: false }
        })
        .await
    }

    async fn watch(&self) -> Outcome {
        let version = self.version().await;
        let opening = matches!(self.case.row.trigger, Trigger::ArmOpening(..));
        // One that ends by itself leaves a connection that has been used, also over HTTP/1.1.
        let mut first = self.open_unharmed(&version, Some(Duration::from_secs(1))).await;
        while first.next().await.is_some() {}
        let start;
        let result = if opening {
            self.harm().await;
            start = Instant::now();
            self.create("change").await;
            self.follow(&version).await
        } else {
            let mut watch = self.open_unharmed(&version, None).await;
            self.harm().await;
            start = Instant::now();
            self.create("change").await;
            self.end_outage(until_change(&mut watch)).await
        };
        let (saw, took) = (seen(result), start.elapsed());
        let next = self.success(|| self.follow(&version)).await;
        Outcome { saw, took, next: Some(next), arrived: 0, struck: false }
    }

    async fn reflector(&self) -> Outcome {
        let default = Backoff::default();
        let scaled = |duration| self.ground.scaled(duration);
        let backoff =
            Backoff { initial: scaled(default.initial), cap: scaled(default.cap), ..default };
        let config = Config {
            watch_timeout: scaled(WATCH).max(Duration::from_secs(1)),
            read_margin: scaled(Config::default().read_margin),
            open_timeout: scaled(Config::default().open_timeout),
            list_stall: scaled(Config::default().list_stall),
            streaming_stall: scaled(Config::default().streaming_stall),
            backoff,
            ..Config::default()
        };
        let collection = collection(&self.namespace);
        let mut reflector = Reflector::<Encoded>::new(self.transport.clone(), collection, config);
        let Update::Replace(_) = reflector.next().await else { panic!("a state comes first") };
        self.harm().await;
        let start = Instant::now();
        self.create("change").await;
        let found = async {
            loop {
                let found = match reflector.next().await {
                    Update::Replace(state) => {
                        state.items.iter().any(|item| item.name() == "change")
                    }
                    Update::Event(event) => is_change(&event),
                };
                if found {
                    return;
                }
            }
        };
        self.end_outage(found).await;
        let (saw, took) = ("ok".to_owned(), start.elapsed());
        Outcome { saw, took, next: Some(Duration::ZERO), arrived: 0, struck: false }
    }

    /// Calls until one succeeds; how long that took.
    async fn success<F: Future<Output = Result<(), BoxError>>>(
        &self,
        mut call: impl FnMut() -> F,
    ) -> Duration {
        let start = Instant::now();
        while call().await.is_err() {
            // A caller that did not wait at all would be worse than any there is.
            sleep(Duration::from_millis(10)).await;
        }
        start.elapsed()
    }

    // === Requests through the proxy ===

    async fn read(&self) -> Result<(), BoxError> {
        let get = Operation::Get { name: SEED.into(), options: GetOptions::default() };
        send(&self.transport, SEED_NAMESPACE, get).await
    }

    async fn write(&self) -> Result<(), BoxError> {
        send(&self.transport, &self.namespace, create(r#""generateName":"written-""#)).await
    }

    async fn open(
        &self,
        version: &ResourceVersion,
        life: Option<Duration>,
    ) -> Result<WatchStream<Encoded>, BoxError> {
        let life = life.unwrap_or_else(|| self.ground.scaled(WATCH).max(Duration::from_secs(1)));
        let options = WatchOptions {
            resource_version: version.clone(),
            timeout: Some(life),
            ..WatchOptions::default()
        };
        ListWatch::watch(&self.transport, &collection(&self.namespace), options).await
    }

    /// The same before anything is harmed. On a machine that does much else the short deadlines of these tests may pass.
    async fn open_unharmed(
        &self,
        version: &ResourceVersion,
        life: Option<Duration>,
    ) -> WatchStream<Encoded> {
        loop {
            if let Ok(watch) = self.open(version, life).await {
                return watch;
            }
        }
    }

    /// A new watch, until it has told of the change.
    async fn follow(&self, version: &ResourceVersion) -> Result<(), BoxError> {
        until_change(&mut self.open(version, None).await?).await
    }

    // === Past the proxy ===

    async fn create(&self, name: &str) {
        let create = create(&format!(r#""name":"{name}""#));
        let made = send(&self.ground.direct, &self.namespace, create).await;
        made.expect("the server itself is well");
    }

    async fn list(&self) -> (Vec<String>, ResourceVersion) {
        let list = ListWatch::list(
            &self.ground.direct,
            &collection(&self.namespace),
            ListOptions::default(),
        );
        let mut parts = list.await.expect("the server itself is well");
        let (mut names, mut version) = (Vec::new(), ResourceVersion::default());
        while let Some(part) = parts.next().await {
            match part.expect("the server itself is well") {
                ListPart::Item(item) => names.push(item.name().to_owned()),
                ListPart::Meta(meta) => version = meta.resource_version,
                ListPart::Unreadable(unreadable) => panic!("{unreadable}"),
            }
        }
        (names, version)
    }

    async fn version(&self) -> ResourceVersion {
        self.list().await.1
    }

    /// How often the write has arrived.
    async fn arrived(&self) -> usize {
        let (names, _) = self.list().await;
        names.iter().filter(|name| name.starts_with("written-")).count()
    }
}

async fn until_change(watch: &mut WatchStream<Encoded>) -> Result<(), BoxError> {
    loop {
        let event = watch.next().await.ok_or("the end of the watch")??;
        if is_change(&event) {
            return Ok(());
        }
    }
}

fn is_change(event: &Event<Encoded>) -> bool {
    event.object().is_some_and(|object| object.name() == "change")
}

/// A result in a word or two.
fn seen(result: Result<(), BoxError>) -> String {
    let Err(error) = result else { return "ok".to_owned() };
    match cause_ref::<TransportError>(&*error) {
        Some(TransportError::Deadline { phase, .. }) => format!("deadline {phase:?}"),
        Some(error) if error.timeout().is_some() => {
            error.timeout().map(|phase| format!("timeout {phase:?}")).unwrap_or_default()
        }
        Some(TransportError::Broken(_)) => "broken".to_owned(),
        Some(TransportError::Body(_)) => "body broken".to_owned(),
        Some(TransportError::Connect(_)) => "no connection".to_owned(),
        _ => {
            let all = std::iter::successors(Some(&*error as &dyn std::error::Error), |error| {
                error.source()
            });
            all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
        }
    }
}
