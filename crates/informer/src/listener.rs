//! One handler: the pump's end and the task.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kubestrata_api_types::FOREVER;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::backlog::{Backlog, Counts, Receiver};
use crate::metrics::HandlerMetrics;
use crate::notice::Notice;
use crate::sink::{Item, Objects};
use crate::{Handler, HandlerStatus, Problem, ProblemHook};

/// Calls in a row before the task lets others run.
const CALLS_PER_TURN: usize = 128;

/// How far a handler is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    pub(crate) synced: bool,
    pub(crate) ended: bool,
}

/// What pump, task and registration share of a handler.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) name: Cow<'static, str>,
    /// As the backlog counted last; for the status only, as the two below: Relaxed.
    waiting: AtomicUsize,
    merged: AtomicU64,
    panics: AtomicU64,
    metrics: HandlerMetrics,
    pub(crate) progress: watch::Sender<Progress>,
}

impl Common {
    pub(crate) fn new(name: Cow<'static, str>, metrics: HandlerMetrics) -> Self {
        Self {
            name,
            waiting: AtomicUsize::new(0),
            merged: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            metrics,
            progress: watch::Sender::new(Progress::default()),
        }
    }

    pub(crate) fn status(&self) -> HandlerStatus {
        HandlerStatus {
            name: self.name.clone(),
            synced: self.progress.borrow().synced,
            backlog: self.waiting.load(Ordering::Relaxed),
            merged: self.merged.load(Ordering::Relaxed),
            panics: self.panics.load(Ordering::Relaxed),
        }
    }

    fn count(&self, counts: Counts) {
        self.waiting.store(counts.waiting, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "metrics are doubles")]
        self.metrics.backlog.set(counts.waiting as f64);
        let before = self.merged.swap(counts.merged, Ordering::Relaxed);
        if counts.merged > before {
            self.metrics.merged.add(counts.merged - before);
        }
    }
}

/// The pump's end.
#[derive(Debug)]
pub(crate) struct Listener<T> {
    pub(crate) id: u64,
    pub(crate) common: Arc<Common>,
    pub(crate) backlog: Arc<Backlog<T>>,
    pub(crate) tell_unchanged: bool,
    /// Set by the handler's task, taken by the pump. Relaxed: the notification orders them.
    pub(crate) resync_due: AtomicBool,
}

impl<T: Item> Listener<T> {
    /// Waits for room in the backlog. A handler that has ended takes nothing and holds up nobody.
    pub(crate) async fn send(&self, notice: Notice<T>) {
        if matches!(notice, Notice::Update { unchanged: true, .. }) && !self.tell_unchanged {
            return;
        }
        self.common.count(self.backlog.send(notice).await);
    }
}

/// The handler's end.
pub(crate) struct Task<T: Item> {
    pub(crate) handler: Arc<dyn Handler<T>>,
    pub(crate) common: Arc<Common>,
    pub(crate) receiver: Receiver<T>,
    pub(crate) listener: Arc<Listener<T>>,
    /// The objects that were stored when the handler came.
    pub(crate) stored: Option<Arc<dyn Objects<T>>>,
    /// Whether the informer was synced by then, so that no notice will say so.
    pub(crate) synced: bool,
    pub(crate) resync: Option<Duration>,
    /// Tells the pump that a resync is due.
    pub(crate) due: Arc<Notify>,
    pub(crate) on_problem: Option<ProblemHook>,
    /// Says that the handler has ended, also when the task never ran or was aborted.
    pub(crate) _ended: EndOnDrop,
}

impl<T: Item> Task<T> {
    /// Tells the handler until it is removed. Aborted when the informer stops.
    pub(crate) async fn run(mut self) {
        if let Some(stored) = self.stored.take()
            && !self.tell_each(&*stored, |handler, object| handler.on_add(object, true)).await
        {
            return;
        }
        if self.synced {
            self.set_synced();
        }
        let mut resync = self.resync.map(|period| {
            let mut timer = interval_at(Instant::now() + period.min(FOREVER), period.min(FOREVER));
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
            timer
        });
        let mut calls = 0;
        loop {
            let notice = tokio::select! {
                // A timer must not starve behind a backlog that is never empty.
                biased;
                _ = tick(&mut resync) => {
                    self.listener.resync_due.store(true, Ordering::Relaxed);
                    self.due.notify_one();
                    continue;
                }
                notice = self.receiver.receive() => notice,
            };
            let Some((notice, counts)) = notice else { return };
            self.common.count(counts);
            if !self.tell(notice).await {
                return;
            }
            calls += 1;
            if calls % CALLS_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns whether to go on.
    async fn tell(&self, notice: Notice<T>) -> bool {
        match notice {
            Notice::Add { object, initial } => self.call(|h| h.on_add(&object, initial)),
            Notice::Update { old, new, .. } => self.call(|h| h.on_update(&old, &new)),
            Notice::Delete { last, final_state_known } => {
                self.call(|h| h.on_delete(&last, final_state_known));
            }
            Notice::Resync(objects) => {
                return self.tell_each(&*objects, |h, object| h.on_update(object, object)).await;
            }
            Notice::Synced => self.set_synced(),
        }
        !self.receiver.is_dropped()
    }

    /// Tells of many objects. Returns whether to go on.
    async fn tell_each(
        &self,
        objects: &dyn Objects<T>,
        tell: impl Fn(&dyn Handler<T>, &T),
    ) -> bool {
        for (number, object) in objects.iter().enumerate() {
            if self.receiver.is_dropped() {
                return false;
            }
            self.call(|handler| tell(handler, object));
            if number % CALLS_PER_TURN == CALLS_PER_TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        true
    }

    fn call(&self, tell: impl FnOnce(&dyn Handler<T>)) {
        // Unwind safe: what a handler leaves broken is the handler's own.
        if catch_unwind(AssertUnwindSafe(|| tell(&*self.handler))).is_err() {
            self.common.panics.fetch_add(1, Ordering::Relaxed);
            self.common.metrics.panics.increment();
            let problem = Problem::HandlerPanicked { handler: self.common.name.clone() };
            tracing::error!(handler = %self.common.name, "a handler panicked");
            if let Some(hook) = &self.on_problem {
                hook.call(&problem);
            }
        }
    }

    fn set_synced(&self) {
        self.common.progress.send_modify(|progress| progress.synced = true);
    }
}

async fn tick(timer: &mut Option<tokio::time::Interval>) {
    match timer {
        Some(timer) => {
            timer.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Marks a handler as ended when its task is gone.
pub(crate) struct EndOnDrop(pub(crate) Arc<Common>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| progress.ended = true);
    }
}
