//! The hand-off from the pump to one handler's task.

use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use kubestrata_api_types::Object;

use crate::Overflow;
use crate::notice::Notice;
use crate::sync::Mutex;
use crate::waiting::Waiting;

/// How a handler that goes is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// After what waits.
    Drain,
    /// After the present call.
    Drop,
}

/// Both ends. There is one who sends, the pump, and one who receives, the handler's task.
#[derive(Debug)]
pub(crate) struct Backlog<T> {
    state: Mutex<State<T>>,
    /// What waits is dropped. Written with Release under the lock, read with Acquire without it, between two calls.
    dropped: AtomicBool,
}

#[derive(Debug)]
struct State<T> {
    waiting: Waiting<T>,
    /// Nothing more is taken.
    closed: bool,
    sender: Option<Waker>,
    receiver: Option<Waker>,
}

/// How much waits after a step, for those who count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) waiting: usize,
    pub(crate) merged: u64,
}

/// Closes a backlog, whatever its items are.
pub(crate) trait Close: Send + Sync {
    /// Takes nothing more. A drop ends a drain, but not the other way round.
    fn close(&self, ending: Ending);
}

impl<T: Object> Backlog<T> {
    pub(crate) fn new(limit: usize, overflow: Overflow) -> (Arc<Self>, Receiver<T>) {
        let waiting = Waiting::new(limit, overflow);
        let state = State { waiting, closed: false, sender: None, receiver: None };
        let backlog = Arc::new(Self { state: Mutex::new(state), dropped: AtomicBool::new(false) });
        (Arc::clone(&backlog), Receiver(backlog))
    }

    /// Waits for room. A closed backlog takes nothing and holds up nobody.
    ///
    /// Cancel-safety: a cancelled call has sent nothing, and the notice is dropped.
    pub(crate) async fn send(&self, notice: Notice<T>) -> Counts {
        let mut notice = Some(notice);
        poll_fn(|cx| self.poll_send(cx, &mut notice)).await
    }

    fn poll_send(&self, cx: &Context<'_>, notice: &mut Option<Notice<T>>) -> Poll<Counts> {
        let mut state = self.state.lock();
        if !state.closed {
            if !state.waiting.has_room() {
                store_waker(&mut state.sender, cx);
                return Poll::Pending;
            }
            if let Some(notice) = notice.take() {
                state.waiting.push(notice);
            }
        }
        let (counts, receiver) = (state.counts(), state.receiver.take());
        drop(state);
        wake(receiver);
        Poll::Ready(counts)
    }

    /// Whether the handler is to be told of nothing more.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    fn poll_receive(&self, cx: &Context<'_>) -> Poll<Option<(Notice<T>, Counts)>> {
        let mut state = self.state.lock();
        if let Some(notice) = state.waiting.pop() {
            let (counts, sender) = (state.counts(), state.sender.take());
            drop(state);
            wake(sender);
            return Poll::Ready(Some((notice, counts)));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        store_waker(&mut state.receiver, cx);
        Poll::Pending
    }
}

impl<T: Object> State<T> {
    fn counts(&self) -> Counts {
        Counts { waiting: self.waiting.len(), merged: self.waiting.merged }
    }
}

impl<T: Object> Close for Backlog<T> {
    fn close(&self, ending: Ending) {
        let mut state = self.state.lock();
        state.closed = true;
        let dropped = (ending == Ending::Drop).then(|| {
            self.dropped.store(true, Ordering::Release);
            mem::replace(&mut state.waiting, Waiting::new(1, Overflow::Block))
        });
        let (sender, receiver) = (state.sender.take(), state.receiver.take());
        drop(state);
        // Objects are dropped, and wakers run, without the lock.
        drop(dropped);
        wake(sender);
        wake(receiver);
    }
}

/// The end that takes. Dropping it closes the backlog.
#[derive(Debug)]
pub(crate) struct Receiver<T: Object>(Arc<Backlog<T>>);

impl<T: Object> Receiver<T> {
    /// The next notice; `None` once the backlog is closed and empty. Cancel-safe.
    pub(crate) async fn receive(&mut self) -> Option<(Notice<T>, Counts)> {
        poll_fn(|cx| self.0.poll_receive(cx)).await
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.0.is_dropped()
    }
}

impl<T: Object> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.close(Ending::Drop);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn store_waker(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}
