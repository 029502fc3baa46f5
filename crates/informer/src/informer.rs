//! The informer: who owns what, start and stop.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kubestrata_api_types::{Collection, ListWatch};
use kubestrata_realfifo::{self as realfifo, Synced};
use kubestrata_reflector::{self as reflector, Reflector, StatusHandle};
use kubestrata_store_index::{Index, NameTaken, Reader, Stored, store};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::apply::Rules;
use crate::config::RESYNC_MIN;
use crate::feed::feed;
use crate::listener::{Common, EndOnDrop, Task, backlog};
use crate::members::{Leave, Members};
use crate::metrics::{Meter, Metrics};
use crate::pump::Pump;
use crate::source::Source;
use crate::{
    Config, Handler, HandlerConfig, InformerStatus, Problem, ProblemHook, Registration, Stopped,
    SyncError,
};

/// What the informer's handles and its tasks share.
pub(crate) struct Shared<T> {
    pub(crate) reader: Reader<T>,
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
pub struct Informer<T: Stored>(Arc<Core<T>>);

pub(crate) struct Core<T: Stored> {
    collection: Collection,
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

struct Work<T: Stored> {
    /// Feed and pump, until the start.
    waiting: Option<Waiting<T>>,
    /// Feed, pump and one task for each handler. Dropped, and so aborted, with the last handle.
    tasks: JoinSet<()>,
    /// Handlers that came before the start.
    handlers: Vec<Task<T>>,
}

struct Waiting<T: Stored> {
    reflector: Reflector<T>,
    producer: realfifo::Producer<T>,
    transform: Option<crate::Transform<T>>,
    pump: Pump<T>,
}

impl<T: Stored> Informer<T> {
    /// An informer that waits for its start. Indexes and handlers may be added before and after.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime: the reflector has a timer.
    pub fn new(source: Arc<dyn ListWatch<T>>, collection: Collection, config: Config<T>) -> Self {
        let Config { name, reflector, queue, transform, recreate_as_update, metrics, on_problem } =
            config;
        let meter = Meter::new(metrics, &name, &collection);
        let (provider, labels) = (meter.provider(), meter.labels([]));
        let reflector =
            reflector::Config { metrics: reflector::Metrics::new(provider, &labels), ..reflector };
        let queue = realfifo::Config {
            limits: queue,
            weigh: |object: &T| object.weight().total(),
            metrics: realfifo::Metrics::new(provider, &labels),
        };
        let (writer, reader) = store();
        let (producer, consumer) = realfifo::channel(queue);
        let reflector = Reflector::new(Source(source), collection.clone(), reflector);
        let shared = Arc::new(Shared {
            reader,
            members: Arc::new(Members::new()),
            metrics: Metrics::new(meter),
            on_problem,
            resync_due: Arc::new(Notify::new()),
            queued: AtomicUsize::new(0),
            unreadable: AtomicU64::new(0),
            index_problems: AtomicU64::new(0),
        });
        let rules =
            Rules { recreate_as_update, tell_unknown_deletes: transform.is_none(), tell: true };
        let (synced, status) = (consumer.synced(), reflector.status());
        let pump = Pump { writer, consumer, shared: Arc::clone(&shared), rules };
        let work = Work {
            waiting: Some(Waiting { reflector, producer, transform, pump }),
            tasks: JoinSet::new(),
            handlers: Vec::new(),
        };
        let life = Arc::new(watch::Sender::new(Life::New));
        let work = Mutex::new(work);
        Self(Arc::new(Core { collection, shared, synced, reflector: status, life, work }))
    }

    /// Starts it. Starting it again does nothing.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn start(&self) {
        let core = &*self.0;
        let mut work = core.work.lock();
        let Some(Waiting { reflector, producer, transform, pump }) = work.waiting.take() else {
            return;
        };
        tracing::debug!(resource = %core.collection.resource, "informer starts");
        let shared = Arc::clone(&core.shared);
        let feed = feed(reflector, producer, transform, shared);
        // Before the tasks run, so that the end of one is after it.
        core.life.send_replace(Life::Running);
        let ends = || Ends { life: Arc::clone(&core.life), resource: core.collection.clone() };
        work.tasks.spawn(ends().after(feed));
        work.tasks.spawn(ends().after(pump.run()));
        for task in std::mem::take(&mut work.handlers) {
            work.tasks.spawn(task.run());
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
            self.0.shared.members.with(|members| {
                members.stopped = true;
                members.listeners = Arc::from([]);
            });
            std::mem::take(&mut work.tasks)
        };
        tasks.shutdown().await;
    }

    /// What it follows.
    pub fn collection(&self) -> &Collection {
        &self.0.collection
    }

    /// Reads the store.
    pub fn reader(&self) -> Reader<T> {
        self.0.shared.reader.clone()
    }

    /// Adds an index to the store, at any time. Objects that it cannot handle are reported as problems.
    ///
    /// # Errors
    ///
    /// [`NameTaken`] if a different index has the name.
    pub fn add_index(&self, index: Index<T>) -> Result<(), NameTaken> {
        let problems = self.0.shared.reader.add_index(index)?;
        crate::pump::report(&self.0.shared, problems.into_iter().map(Problem::Index).collect());
        Ok(())
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
        let (id, task) = shared.members.with(|members| {
            if members.stopped {
                return Err(Stopped);
            }
            let id = members.next_id();
            let (listener, receiver) = backlog(id, &common, config.backlog, resync.is_none());
            members.join(Arc::clone(&listener));
            let stored = Some(shared.reader.freeze()).filter(|stored| !stored.is_empty());
            let task = Task {
                handler: Arc::new(handler),
                common: Arc::clone(&common),
                receiver,
                listener,
                stored,
                synced: members.synced,
                resync,
                due: Arc::clone(&shared.resync_due),
                on_problem: shared.on_problem.clone(),
                _ended: EndOnDrop(Arc::clone(&common)),
            };
            Ok((id, task))
        })?;
        if work.waiting.is_some() {
            work.handlers.push(task);
        } else {
            // Tasks of removed handlers have ended; let them go.
            while work.tasks.try_join_next().is_some() {}
            work.tasks.spawn(task.run());
        }
        drop(work);
        let members: Arc<dyn Leave> = shared.members.clone();
        Ok(Registration { id, common, members: Arc::downgrade(&members) })
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
            queued: shared.queued.load(Ordering::Relaxed),
            version: shared.reader.version(),
            objects: shared.reader.len(),
            unreadable: shared.unreadable.load(Ordering::Relaxed),
            index_problems: shared.index_problems.load(Ordering::Relaxed),
            handlers: shared.members.listeners().iter().map(|l| l.common.status()).collect(),
        }
    }

    pub(crate) fn downgrade(&self) -> std::sync::Weak<Core<T>> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn from_core(core: Arc<Core<T>>) -> Self {
        Self(core)
    }

    /// Whether it was stopped, or ended by a panic of user code on its tasks.
    pub fn is_stopped(&self) -> bool {
        *self.0.life.borrow() == Life::Stopped
    }
}

impl<T: Stored> Clone for Informer<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Stored> fmt::Debug for Informer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("resource", &format_args!("{}", self.0.collection.resource))
            .field("life", &*self.0.life.borrow())
            .field("synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}
