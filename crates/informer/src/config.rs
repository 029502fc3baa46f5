//! What can be set.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_realfifo::{Limits, Merging};
use kubestrata_reflector as reflector;
use kubestrata_telemetry::{Noop, Provider};

use crate::Problem;

/// Configuration of an [`Informer`](crate::Informer).
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Config<T> {
    /// Label `name` of the metrics, which tells informers of one process apart. Default: empty.
    pub name: Cow<'static, str>,
    /// Selectors, recovery, timeouts. Its metrics are set by the informer.
    pub reflector: reflector::Config,
    /// Which queue is between reflector and store. Default: the ordered one, which swaps a new state at once.
    pub fifo: Fifo,
    /// Bounds of the queue between reflector and store: the reflector waits at them.
    pub queue: Limits,
    /// Applied once to each object as it comes from the server, before any memory is held for it. Default: none.
    pub transform: Option<Transform<T>>,
    /// What becomes of the objects when the server has no such resource any more. Default: they stay.
    pub when_gone: WhenGone,
    /// Whether an object that was deleted and made again unseen is told as one update, as client-go does. Default false:
    /// its uid shows it, and it is told as a delete and an add.
    pub recreate_as_update: bool,
    /// Where metrics go. Default: nowhere.
    pub metrics: Arc<dyn Provider>,
    /// Told of each problem that costs one object or one call. Default: none; problems are counted and traced anyhow.
    pub on_problem: Option<ProblemHook>,
}

impl<T> Default for Config<T> {
    fn default() -> Self {
        Self {
            name: Cow::Borrowed(""),
            reflector: reflector::Config::default(),
            fifo: Fifo::default(),
            queue: Limits::default(),
            transform: None,
            when_gone: WhenGone::default(),
            recreate_as_update: false,
            metrics: Arc::new(Noop),
            on_problem: None,
        }
    }
}

impl<T> Clone for Config<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            reflector: self.reflector.clone(),
            fifo: self.fifo,
            queue: self.queue,
            transform: self.transform.clone(),
            when_gone: self.when_gone,
            recreate_as_update: self.recreate_as_update,
            metrics: Arc::clone(&self.metrics),
            on_problem: self.on_problem.clone(),
        }
    }
}

impl<T> fmt::Debug for Config<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("name", &self.name)
            .field("reflector", &self.reflector)
            .field("fifo", &self.fifo)
            .field("queue", &self.queue)
            .field("transform", &self.transform.is_some())
            .field("when_gone", &self.when_gone)
            .field("recreate_as_update", &self.recreate_as_update)
            .finish_non_exhaustive()
    }
}

/// Which queue is between reflector and store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "these are all there are")]
pub enum Fifo {
    /// Every change in the order of arrival; a new state is swapped in at once (client-go `RealFIFO` with `AtomicFIFO`).
    #[default]
    Atomic,
    /// Every change in the order of arrival; a new state is taken apart into deletions and objects (client-go `RealFIFO`
    /// without `AtomicFIFO`). Readers see the store between two of them, and a server that was reset to an older state
    /// begins no new epoch of the store's version.
    Apart,
    /// Changes by key (client-go `DeltaFIFO`). As with `Apart`; moreover the order between objects is lost, so that the
    /// store's version may run ahead of what is stored while the queue is not empty, and deletions of objects that are
    /// not stored are not told.
    ByKey(Merging),
}

/// What becomes of an informer's objects when the server answers that it has no such resource (404): because a custom
/// resource definition was deleted, or an aggregated server is away (k/k#79610).
///
/// Whatever is chosen, the status says since when, and as long as the informer runs it asks again, with the delays of
/// [`reflector::Config::backoff`]; when the resource is back, its state follows as after any other gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "these are all there are")]
pub enum WhenGone {
    /// They stay, as client-go has it: a server that restarts may say the same for a moment.
    #[default]
    Keep,
    /// After this time they count as gone: handlers are told of their deletion, with unknown final state, and the store is
    /// empty until the resource is back.
    Clear {
        /// How long the resource must be absent.
        after: Duration,
    },
    /// After this time the informer stops; readers keep what is stored. An [`InformerFactory`](crate::InformerFactory)
    /// that is asked for it again makes a new one.
    Stop {
        /// How long the resource must be absent.
        after: Duration,
    },
}

/// Changes objects before anyone sees them. A clone is a reference count.
pub struct Transform<T>(Arc<dyn Fn(T) -> Option<T> + Send + Sync>);

impl<T> Transform<T> {
    /// A transform. `None` skips the object: it is not stored, and if an earlier state of it was, that one is deleted.
    ///
    /// Name, namespace, uid and resource version must stay. A panic costs the object alone.
    /// It sees the last state of a deleted object too, where the server sent one, and never a tombstone; a deletion that
    /// it refuses goes on with the object as it came.
    pub fn new(transform: impl Fn(T) -> Option<T> + Send + Sync + 'static) -> Self {
        Self(Arc::new(transform))
    }

    pub(crate) fn apply(&self, object: T) -> Option<T> {
        (self.0)(object)
    }
}

impl<T> Clone for Transform<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Transform<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}

/// What [`Config::on_problem`] calls. A clone is a reference count.
#[derive(Clone)]
pub struct ProblemHook(Arc<dyn Fn(&Problem) + Send + Sync>);

impl ProblemHook {
    /// A hook. It runs on the informer's tasks, so it must not block.
    pub fn new(hook: impl Fn(&Problem) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    pub(crate) fn call(&self, problem: &Problem) {
        (self.0)(problem);
    }
}

impl fmt::Debug for ProblemHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProblemHook")
    }
}

/// Configuration of one handler.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct HandlerConfig {
    /// Label `handler` of the metrics, and the name in the status. Default: empty.
    pub name: Cow<'static, str>,
    /// Changes that may wait for this handler. At least 1. Default 1024, where client-go's buffer begins to grow.
    pub backlog: usize,
    /// What happens when so many wait. Default: the informer waits.
    pub overflow: Overflow,
    /// Every so often the handler is told of each stored object once more, as an update without change. Default: never.
    /// Less than a second counts as one second, as in client-go.
    ///
    /// With a period, objects that a relist finds unchanged are not told; without one they are.
    pub resync: Option<Duration>,
}

impl Default for HandlerConfig {
    fn default() -> Self {
        Self { name: Cow::Borrowed(""), backlog: 1024, overflow: Overflow::default(), resync: None }
    }
}

/// What happens when a handler's backlog is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "losing changes is no third way")]
pub enum Overflow {
    /// The informer waits for the handler: every change is told, and a handler that stands still holds up the informer,
    /// the other handlers and, in the end, the stream from the server.
    #[default]
    Block,
    /// Changes of one object become one: from the state that was told last to the newest. An object that comes and goes
    /// meanwhile is not told at all. The handler holds up nobody; for it wait as many changes as the backlog has room for,
    /// and beyond them two at most for each object.
    Coalesce,
}

/// The shortest resync period (client-go `minimumResyncPeriod`).
pub(crate) const RESYNC_MIN: Duration = Duration::from_secs(1);
