//! What can be set.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_realfifo::Limits;
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
    /// Bounds of the queue between reflector and store: the reflector waits at them.
    pub queue: Limits,
    /// Applied once to each object as it comes from the server. Default: none.
    pub transform: Option<Transform<T>>,
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
            queue: Limits::default(),
            transform: None,
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
            queue: self.queue,
            transform: self.transform.clone(),
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
            .field("queue", &self.queue)
            .field("transform", &self.transform.is_some())
            .field("recreate_as_update", &self.recreate_as_update)
            .finish_non_exhaustive()
    }
}

/// Changes objects before anyone sees them. A clone is a reference count.
pub struct Transform<T>(Arc<dyn Fn(T) -> Option<T> + Send + Sync>);

impl<T> Transform<T> {
    /// A transform. `None` skips the object: it is not stored, and if an earlier state of it was, that one is deleted.
    ///
    /// Name, namespace, uid and resource version must stay. A panic costs the object alone.
    /// It sees the last state of a deleted object too, where the server sent one.
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
    /// Changes that may wait for this handler; beyond that the informer waits. At least 1. Default 1024, where client-go's
    /// buffer begins to grow.
    pub backlog: usize,
    /// Every so often the handler is told of each stored object once more, as an update without change. Default: never.
    /// Less than a second counts as one second, as in client-go.
    ///
    /// With a period, objects that a relist finds unchanged are not told; without one they are.
    pub resync: Option<Duration>,
}

impl Default for HandlerConfig {
    fn default() -> Self {
        Self { name: Cow::Borrowed(""), backlog: 1024, resync: None }
    }
}

/// The shortest resync period (client-go `minimumResyncPeriod`).
pub(crate) const RESYNC_MIN: Duration = Duration::from_secs(1);
