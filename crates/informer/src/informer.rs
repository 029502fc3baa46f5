//! The informer: who owns what, start and stop.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kubestrata_api_types::{Collection, ListWatch};
use kubestrata_realfifo::{self as realfifo, DeltaFifo, Queue, RealFifo, Synced};
use kubestrata_reflector::{self as reflector, Reflector, StatusHandle};
use kubestrata_store_index::{Index, NameTaken, Reader, Stored, store};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::absence::Absence;
use crate::apply::Rules;
use crate::backlog::{Backlog, Close, Ending};
use crate::config::RESYNC_MIN;
use crate::feed::{feed, transform_event};
use crate::listener::{Common, EndOnDrop, Listener, Task};
use crate::members::{Leave, Members};
use crate::metrics::{Meter, Metrics};
use crate::pump::Pump;
use crate::sink::{Item, Known, Store, StoreReader};
use crate::source::Source;
use crate::{
    Config, Fifo, Handler, HandlerConfig, InformerStatus, Problem, ProblemHook, Registration,
    Stopped, SyncError, WhenGone,
};

/// What the informer's handles and its tasks share.
pub(crate) struct Shared<T> {
    pub(crate) reader: Arc<dyn StoreReader<T>>,
    pub(crate) absence: Absence,
    pub(crate) members: Arc<Members<T>>,
    pub(crate) metrics: Metrics,
    pub(crate) on_problem: Option<ProblemHook>,
    /// A handler's resync is due.
    pub(crate) resync_due: Arc<Notify>,
    /// For the status only, as the counters below: Relaxed.
    pub(crate) queued: AtomicUsize,
    pub(crate) unreadable: AtomicU64,
    pub(crate) index_problems: AtomicU64,
}

/// Keeps a copy of a collection in a store and tells handlers what changes. A clone is another handle.
///
/// It runs from [`start`](Self::start) until [`stop`](Self::stop), or until its last handle is dropped; readers keep what
/// is stored by then. It cannot be started again.
///
/// `R` reads its store: that of `kubestrata-store-index`, or one of the user's own, see [`with_store`](Self::with_store).
pub struct Informer<T: Item, R = Reader<T>>(Arc<Core<T, R>>);

pub(crate) struct Core<T: Item, R = Reader<T>> {
    name: String,
    collection: Collection,
    reader: R,
    shared: Arc<Shared<T>>,
    synced: Synced,
    reflector: StatusHandle,
    life: Arc<watch::Sender<Life>>,
    work: Mutex<Work<T>>,
}

/// Makes it seen that a task has ended that should run as long as the informer does: by a panic of user code.
struct Ends {
    life: Arc<watch::Sender<Life>>,
    resource: Collection,
}

impl Ends {
    async fn after(self, task: impl Future<Output = ()>) {
        task.await;
        drop(self);
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let unexpected = self
            .life
            .send_if_modified(|life| std::mem::replace(life, Life::Stopped) == Life::Running);
        if unexpected && std::thread::panicking() {
            tracing::error!(resource = %self.resource.resource, "the informer stops: a task panicked");
        }
    }
}

/// Where in its one life an informer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Waits for `start`.
    New,
    /// Follows its source. Leads to `Stopped`.
    Running,
    /// Will not run any more.
    Stopped,
}

struct Work<T: Item> {
    /// Feed and pump, until the start.
    waiting: Option<Waiting<T>>,
    /// Feed, pump and one task for each handler. Dropped, and so aborted, with the last handle.
    tasks: JoinSet<()>,
    /// Handlers that came before the start.
    handlers: Vec<Task<T>>,
}

struct Waiting<T: Item> {
    reflector: Reflector<T>,
    producer: realfifo::Producer<T>,
    when_gone: WhenGone,
    pump: Pump<T>,
}

impl<T: Stored> Informer<T> {
    /// An informer that waits for its start. Indexes and handlers may be added before and after.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime: the reflector has a timer.
    pub fn new(source: Arc<dyn ListWatch<T>>, collection: Collection, config: Config<T>) -> Self {
        let (writer, _) = store();
        Self::with_store(source, collection, config, writer)
    }

    /// Adds an index to the store, at any time. Objects that it cannot handle are reported as problems.
    ///
    /// # Errors
    ///
    /// [`NameTaken`] if a different index has the name.
    pub fn add_index(&self, index: Index<T>) -> Result<(), NameTaken> {
        let problems = self.0.reader.add_index(index)?;
        crate::pump::report(&self.0.shared, problems.into_iter().map(Problem::Index).collect());
        Ok(())
    }
}

/// The queue that is asked for, over the store that its consumer writes.
fn queue_of<T: Item>(
    fifo: Fifo,
    limits: realfifo::Limits,
    reader: &Arc<dyn StoreReader<T>>,
) -> Box<dyn Queue<T>> {
    let weigh = |object: &T| object.weight().total();
    let known = Arc::new(Known(Arc::clone(reader)));
    match fifo {
        Fifo::Atomic => Box::new(RealFifo::new(limits, weigh)),
        Fifo::Apart => Box::new(RealFifo::with_known_objects(limits, weigh, known)),
        Fifo::ByKey(merging) => Box::new(DeltaFifo::new(limits, weigh, known, merging)),
    }
}

impl<T: Item, R: StoreReader<T> + Clone> Informer<T, R> {
    /// An informer over a store of the user's own.
    ///
    /// # Panics
    ///
    /// As `new`.
    pub fn with_store(
        source: Arc<dyn ListWatch<T>>,
        collection: Collection,
        config: Config<T>,
        store: impl Store<T, Reader = R>,
    ) -> Self {
        let meter = Meter::new(config.metrics, &config.name, &collection);
        let (provider, labels) = (meter.provider(), meter.labels([]));
        let metrics = reflector::Metrics::new(provider, &labels);
        let reflector = reflector::Config { metrics, ..config.reflector };
        let queue_metrics = realfifo::Metrics::new(provider, &labels);
        let reader = store.reader();
        let shared = Arc::new(Shared {
            reader: Arc::new(reader.clone()),
            absence: Absence::new(),
            members: Arc::new(Members::new()),
            metrics: Metrics::new(meter),
            on_problem: config.on_problem,
            resync_due: Arc::new(Notify::new()),
            queued: AtomicUsize::new(0),
            unreadable: AtomicU64::new(0),
            index_problems: AtomicU64::new(0),
        });
        let queue = queue_of(config.fifo, config.queue, &shared.reader);
        let (producer, consumer) = realfifo::over(queue, queue_metrics);
        let source = Source { inner: source, absence: shared.absence.clone() };
        let mut reflector = Reflector::new(source, collection.clone(), reflector).weighed();
        let rules = Rules {
            recreate_as_update: config.recreate_as_update,
            tell_unknown_deletes: config.transform.is_none()
                && !matches!(config.fifo, Fifo::ByKey(_)),
            tell: true,
        };
        if let Some(transform) = config.transform {
            // k/k PR 131799: before a state is gathered, so that none is ever held as it came.
            reflector = reflector.transform(move |event| transform_event(&transform, event));
        }
        let (synced, status) = (consumer.synced(), reflector.status());
        let pump = Pump { store: Box::new(store), consumer, shared: Arc::clone(&shared), rules };
        let work = Work {
            waiting: Some(Waiting { reflector, producer, when_gone: config.when_gone, pump }),
            tasks: JoinSet::new(),
            handlers: Vec::new(),
        };
        Self(Arc::new(Core {
            name: config.name.into_owned(),
            collection,
            reader,
            shared,
            synced,
            reflector: status,
            life: Arc::new(watch::Sender::new(Life::New)),
            work: Mutex::new(work),
        }))
    }

    /// Starts it. Starting it again does nothing.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn start(&self) {
        let core = &*self.0;
        let mut work = core.work.lock();
        let Some(Waiting { reflector, producer, when_gone, pump }) = work.waiting.take() else {
            return;
        };
        let feed = feed(reflector, producer, when_gone, Arc::clone(&core.shared));
        // Before the tasks run, so that the end of one is after it.
        core.life.send_replace(Life::Running);
        let ends = || Ends { life: Arc::clone(&core.life), resource: core.collection.clone() };
        // Names only: a span holds no contents of objects.
        let span = tracing::info_span!(
            "informer",
            name = core.name,
            resource = %core.collection.resource,
            namespace = core.collection.namespace.as_deref(),
        );
        tracing::debug!(parent: &span, "informer starts");
        work.tasks.spawn(ends().after(feed).instrument(span.clone()));
        work.tasks.spawn(ends().after(pump.run()).instrument(span));
        for task in std::mem::take(&mut work.handlers) {
            work.tasks.spawn(core.in_span(task));
        }
    }

    /// Stops it, whoever holds handles, and waits until its tasks and its handlers' last calls have ended.
    ///
    /// What is queued is not applied any more. Cancel-safe: it is stopped at the first poll. From within a handler this
    /// never ends.
    pub async fn stop(&self) {
        let mut tasks = {
            let mut work = self.0.work.lock();
            work.waiting = None;
            work.handlers.clear();
            self.0.life.send_replace(Life::Stopped);
            self.0.shared.members.close(Ending::Drop);
            std::mem::take(&mut work.tasks)
        };
        tasks.shutdown().await;
    }

    /// What it follows.
    pub fn collection(&self) -> &Collection {
        &self.0.collection
    }

    /// Reads the store.
    pub fn reader(&self) -> R {
        self.0.reader.clone()
    }

    /// Adds a handler, at any time. It is told of each stored object first, as an initial add, then of each change.
    ///
    /// # Errors
    ///
    /// [`Stopped`]
    pub fn add_handler(
        &self,
        handler: impl Handler<T>,
        config: HandlerConfig,
    ) -> Result<Registration, Stopped> {
        let shared = &self.0.shared;
        let metrics = shared.metrics.handler(&config.name);
        let common = Arc::new(Common::new(config.name, metrics));
        let resync = config.resync.map(|period| period.max(RESYNC_MIN));
        // Held until the task is in place, so that a stop finds either both or neither.
        let mut work = self.0.work.lock();
        let (backlog, receiver) = Backlog::new(config.backlog, config.overflow);
        let mut joining = None;
        let joined = shared.members.join(&*shared.reader, |id| {
            let listener = Arc::new(Listener {
                id,
                common: Arc::clone(&common),
                backlog: Arc::clone(&backlog),
                tell_unchanged: resync.is_none(),
                resync_due: AtomicBool::new(false),
            });
            Arc::clone(joining.insert(listener))
        });
        let (Some(listener), Some(joined)) = (joining, joined) else { return Err(Stopped) };
        let id = listener.id;
        let task = Task {
            handler: Arc::new(handler),
            common: Arc::clone(&common),
            receiver,
            listener,
            stored: Some(joined.stored).filter(|stored| !stored.is_empty()),
            synced: joined.synced,
            resync,
            due: Arc::clone(&shared.resync_due),
            on_problem: shared.on_problem.clone(),
            _ended: EndOnDrop(Arc::clone(&common)),
        };
        if work.waiting.is_some() {
            work.handlers.push(task);
        } else {
            // Tasks of removed handlers have ended; let them go.
            while work.tasks.try_join_next().is_some() {}
            work.tasks.spawn(self.0.in_span(task));
        }
        drop(work);
        let members: Arc<dyn Leave> = shared.members.clone();
        let backlog: Arc<dyn Close> = backlog;
        let (members, backlog) = (Arc::downgrade(&members), Arc::downgrade(&backlog));
        Ok(Registration { id, common, members, backlog })
    }

    /// Whether it was started.
    pub fn is_started(&self) -> bool {
        *self.0.life.borrow() != Life::New
    }

    /// Whether the first state is in the store and was handed to the handlers. Never false again once true.
    pub fn has_synced(&self) -> bool {
        self.0.synced.is_set()
    }

    /// Waits until it is synced, for at most `timeout`. Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`SyncError::Timeout`] with the reflector's last failure, [`SyncError::NotStarted`] at once, [`SyncError::Stopped`].
    pub async fn wait_synced(&self, timeout: Duration) -> Result<(), SyncError> {
        if self.has_synced() {
            return Ok(());
        }
        let resource = || self.0.collection.resource.to_string();
        let mut life = self.0.life.subscribe();
        if *life.borrow() == Life::New {
            return Err(SyncError::NotStarted { resource: resource() });
        }
        let waiting = async {
            tokio::select! {
                // An informer that was synced and then stopped is synced.
                biased;
                () = self.0.synced.wait() => Ok(()),
                _ = life.wait_for(|life| *life == Life::Stopped) => {
                    Err(SyncError::Stopped { resource: resource() })
                }
            }
        };
        match tokio::time::timeout(timeout, waiting).await {
            Ok(synced) => synced,
            Err(_) => {
                let last = self.0.reflector.read().last_failure;
                let last_error = last.map(|last| last.failure.error);
                Err(SyncError::Timeout { resource: resource(), waited: timeout, last_error })
            }
        }
    }

    /// How it is doing.
    pub fn status(&self) -> InformerStatus {
        let shared = &self.0.shared;
        InformerStatus {
            started: self.is_started(),
            stopped: self.is_stopped(),
            synced: self.has_synced(),
            reflector: self.0.reflector.read(),
            gone_since: shared.absence.since(),
            queued: shared.queued.load(Ordering::Relaxed),
            version: shared.reader.version(),
            objects: shared.reader.len(),
            unreadable: shared.unreadable.load(Ordering::Relaxed),
            index_problems: shared.index_problems.load(Ordering::Relaxed),
            handlers: shared.members.listeners().iter().map(|l| l.common.status()).collect(),
        }
    }

    /// Whether it was stopped, ended by a panic of user code on its tasks, or by [`WhenGone::Stop`].
    pub fn is_stopped(&self) -> bool {
        *self.0.life.borrow() == Life::Stopped
    }
}

impl<T: Item, R> Informer<T, R> {
    pub(crate) fn downgrade(&self) -> Weak<Core<T, R>> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn from_core(core: Arc<Core<T, R>>) -> Self {
        Self(core)
    }
}

impl<T: Item, R> Core<T, R> {
    /// A handler's task, in a span that names it.
    fn in_span(&self, task: Task<T>) -> impl Future<Output = ()> + use<T, R> {
        let span = tracing::info_span!(
            "handler",
            name = self.name,
            resource = %self.collection.resource,
            handler = %task.common.name,
        );
        task.run().instrument(span)
    }
}

impl<T: Item, R> Clone for Informer<T, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Item, R> fmt::Debug for Informer<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("resource", &format_args!("{}", self.0.collection.resource))
            .field("life", &*self.0.life.borrow())
            .field("synced", &self.0.synced.is_set())
            .finish_non_exhaustive()
    }
}
