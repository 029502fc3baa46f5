//! One handler's backlog and task.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kubestrata_api_types::FOREVER;
use kubestrata_store_index::{Frozen, Stored};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::metrics::HandlerMetrics;
use crate::{Handler, HandlerStatus, Problem, ProblemHook};

/// Calls in a row before the task lets others run.
const CALLS_PER_TURN: usize = 128;

/// What a handler is told.
#[derive(Debug)]
pub(crate) enum Notice<T> {
    Add {
        object: T,
        initial: bool,
    },
    /// `unchanged`: a relist has found the same version.
    Update {
        old: T,
        new: T,
        unchanged: bool,
    },
    Delete {
        last: T,
        final_state_known: bool,
    },
    /// Each of these objects, once more.
    Resync(Arc<Frozen<T>>),
    /// All objects of the informer's first state were told before this.
    Synced,
}

impl<T: Clone> Clone for Notice<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Add { object, initial } => {
                Self::Add { object: object.clone(), initial: *initial }
            }
            Self::Update { old, new, unchanged } => {
                Self::Update { old: old.clone(), new: new.clone(), unchanged: *unchanged }
            }
            Self::Delete { last, final_state_known } => {
                Self::Delete { last: last.clone(), final_state_known: *final_state_known }
            }
            Self::Resync(frozen) => Self::Resync(Arc::clone(frozen)),
            Self::Synced => Self::Synced,
        }
    }
}

/// How a handler is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Be told of everything.
    Run,
    /// Be told of what is in the backlog, then end.
    Drain,
    /// End after the present call.
    Drop,
}

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
    /// Sent and not yet told. Both sides only count, so Relaxed.
    pub(crate) backlog: AtomicUsize,
    /// Relaxed: only counted.
    panics: AtomicU64,
    metrics: HandlerMetrics,
    pub(crate) mode: watch::Sender<Mode>,
    pub(crate) progress: watch::Sender<Progress>,
}

impl Common {
    pub(crate) fn new(name: Cow<'static, str>, metrics: HandlerMetrics) -> Self {
        Self {
            name,
            backlog: AtomicUsize::new(0),
            panics: AtomicU64::new(0),
            metrics,
            mode: watch::Sender::new(Mode::Run),
            progress: watch::Sender::new(Progress::default()),
        }
    }

    pub(crate) fn status(&self) -> HandlerStatus {
        HandlerStatus {
            name: self.name.clone(),
            synced: self.progress.borrow().synced,
            backlog: self.backlog.load(Ordering::Relaxed),
            panics: self.panics.load(Ordering::Relaxed),
        }
    }

    fn count(&self, change: isize) {
        let now = self.backlog.fetch_add_signed_saturating(change);
        #[expect(clippy::cast_precision_loss, reason = "metrics are doubles")]
        self.metrics.backlog.set(now as f64);
    }
}

/// The counter's update, as a method of the counter.
trait Saturating {
    fn fetch_add_signed_saturating(&self, change: isize) -> usize;
}

impl Saturating for AtomicUsize {
    fn fetch_add_signed_saturating(&self, change: isize) -> usize {
        let before = self.fetch_add(change.cast_unsigned(), Ordering::Relaxed);
        before.saturating_add_signed(change)
    }
}

/// The pump's end.
#[derive(Debug)]
pub(crate) struct Listener<T> {
    pub(crate) id: u64,
    pub(crate) common: Arc<Common>,
    sender: mpsc::Sender<Notice<T>>,
    tell_unchanged: bool,
    /// Set by the handler's task, taken by the pump. Relaxed: the notification orders them.
    pub(crate) resync_due: AtomicBool,
}

impl<T> Listener<T> {
    /// Waits for room in the backlog. A handler that has ended takes nothing and holds up nobody.
    pub(crate) async fn send(&self, notice: Notice<T>) {
        if matches!(notice, Notice::Update { unchanged: true, .. }) && !self.tell_unchanged {
            return;
        }
        self.common.count(1);
        if self.sender.send(notice).await.is_err() {
            self.common.count(-1);
        }
    }
}

/// The handler's end.
pub(crate) struct Task<T> {
    pub(crate) handler: Arc<dyn Handler<T>>,
    pub(crate) common: Arc<Common>,
    pub(crate) receiver: mpsc::Receiver<Notice<T>>,
    pub(crate) listener: Arc<Listener<T>>,
    /// The objects that were stored when the handler came.
    pub(crate) stored: Option<Frozen<T>>,
    /// Whether the informer was synced by then, so that no notice will say so.
    pub(crate) synced: bool,
    pub(crate) resync: Option<Duration>,
    /// Tells the pump that a resync is due.
    pub(crate) due: Arc<Notify>,
    pub(crate) on_problem: Option<ProblemHook>,
    /// Says that the handler has ended, also when the task never ran or was aborted.
    pub(crate) _ended: EndOnDrop,
}

/// Both ends of one handler's backlog.
pub(crate) fn backlog<T>(
    id: u64,
    common: &Arc<Common>,
    length: usize,
    tell_unchanged: bool,
) -> (Arc<Listener<T>>, mpsc::Receiver<Notice<T>>) {
    let (sender, receiver) = mpsc::channel(length.max(1));
    let listener = Listener {
        id,
        common: Arc::clone(common),
        sender,
        tell_unchanged,
        resync_due: AtomicBool::new(false),
    };
    (Arc::new(listener), receiver)
}

impl<T: Stored> Task<T> {
    /// Tells the handler until it is removed. Aborted when the informer stops.
    pub(crate) async fn run(mut self) {
        if let Some(stored) = self.stored.take() {
            let telling = stored.iter().map(|(_, object)| object);
            if !self.tell_each(telling, |handler, object| handler.on_add(object, true)).await {
                return;
            }
        }
        if self.synced {
            self.set_synced();
        }
        let mut mode = self.common.mode.subscribe();
        let mut resync = self.resync.map(|period| {
            let mut timer = interval_at(Instant::now() + period.min(FOREVER), period.min(FOREVER));
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
            timer
        });
        let mut calls = 0;
        loop {
            let notice = tokio::select! {
                // A removal must not wait behind the backlog, and a timer not starve.
                biased;
                mode = mode.wait_for(|mode| *mode != Mode::Run), if !self.receiver.is_closed() => {
                    if mode.is_ok_and(|mode| *mode == Mode::Drop) {
                        return;
                    }
                    self.receiver.close();
                    continue;
                }
                _ = tick(&mut resync) => {
                    self.listener.resync_due.store(true, Ordering::Relaxed);
                    self.due.notify_one();
                    continue;
                }
                notice = self.receiver.recv() => notice,
            };
            // The channel ends when it is closed and empty.
            let Some(notice) = notice else { return };
            self.common.count(-1);
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
    async fn tell(&mut self, notice: Notice<T>) -> bool {
        match notice {
            Notice::Add { object, initial } => self.call(|h| h.on_add(&object, initial)),
            Notice::Update { old, new, .. } => self.call(|h| h.on_update(&old, &new)),
            Notice::Delete { last, final_state_known } => {
                self.call(|h| h.on_delete(&last, final_state_known));
            }
            Notice::Resync(frozen) => {
                let objects = frozen.iter().map(|(_, object)| object);
                return self.tell_each(objects, |h, object| h.on_update(object, object)).await;
            }
            Notice::Synced => self.set_synced(),
        }
        *self.common.mode.borrow() != Mode::Drop
    }

    /// Tells of many objects. Returns whether to go on.
    async fn tell_each<'a>(
        &self,
        objects: impl Iterator<Item = &'a T>,
        tell: impl Fn(&dyn Handler<T>, &T),
    ) -> bool {
        for (number, object) in objects.enumerate() {
            if *self.common.mode.borrow() == Mode::Drop {
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
