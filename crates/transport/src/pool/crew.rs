//! One task for all of an HTTP/2 connection.
//!
//! hyper has a task for the bytes of the connection, one that takes in requests, and one more for each answer that is
//! waited for. On a runtime of several threads each that is woken beside another also wakes a thread to share the work,
//! which for a request of some microseconds costs more than doing it. So they all are parts of one task here, which polls
//! those that are woken and no others.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

type Member = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes in what hyper wants to have run for one connection. Members hold one themselves, so it does not own them; what
/// joins a crew that is gone is dropped.
#[derive(Debug, Clone)]
pub(super) struct Crew(Weak<Gate>);

/// Members that are not polled yet.
#[derive(Default)]
struct Gate {
    new: Mutex<New>,
    task: AtomicWaker,
}

#[derive(Default)]
struct New {
    members: Vec<Member>,
    /// Whether the crew is at work, and will look here before it rests.
    seen: bool,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gate")
    }
}

impl<F> hyper::rt::Executor<F> for Crew
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        if let Some(gate) = self.0.upgrade() {
            let mut new = gate.new.lock();
            new.members.push(Box::pin(future));
            // Most join from within, as hyper takes a request in: to wake the task that runs would have it run once more.
            let seen = new.seen;
            drop(new);
            if !seen {
                gate.task.wake();
            }
        }
    }
}

/// The future that runs a crew, to its last member. Dropping it drops them.
#[derive(Debug)]
pub(super) struct Run<F> {
    gate: Arc<Gate>,
    members: FuturesUnordered<Member>,
    leader: Option<Pin<Box<F>>>,
}

impl<F> Run<F> {
    /// A crew without a leader, for the handshake: it has members before there is a connection to drive.
    pub(super) fn new() -> (Crew, Self) {
        let gate = Arc::new(Gate::default());
        let crew = Crew(Arc::downgrade(&gate));
        (crew, Self { gate, members: FuturesUnordered::new(), leader: None })
    }

    /// The same with its leader, whose turn is first: requests that it takes in go out together.
    pub(super) fn led_by(mut self, leader: F) -> Self {
        self.leader = Some(Box::pin(leader));
        self
    }
}

impl<F: Future<Output = ()>> Future for Run<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { gate, members, leader } = &mut *self;
        // Before the look at the gate: who joins in between wakes us again.
        gate.task.register(cx.waker());
        gate.new.lock().seen = true;
        if leader.as_mut().is_some_and(|leader| leader.as_mut().poll(cx).is_ready()) {
            *leader = None;
        }
        loop {
            members.extend(gate.new.lock().members.drain(..));
            let end = match members.poll_next_unpin(cx) {
                Poll::Ready(Some(())) => continue,
                Poll::Ready(None) if leader.is_none() => Poll::Ready(()),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            };
            let mut new = gate.new.lock();
            if new.members.is_empty() {
                new.seen = false;
                return end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;
    use hyper::rt::Executor as _;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    const SOON: std::time::Duration = std::time::Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_crew_ends_with_its_last_member() {
        let (crew, run) = Run::new();
        let (first, goes) = oneshot::channel::<()>();
        let (second, waits) = oneshot::channel::<()>();
        let later = crew.clone();
        crew.execute(async move {
            // One that joins while the crew runs, from within.
            let _ = goes.await;
            later.execute(async move { drop(waits.await) });
        });
        let mut run = Box::pin(run.led_by(async {}));
        assert!(timeout(SOON, &mut run).await.is_err());
        first.send(()).unwrap();
        assert!(timeout(SOON, &mut run).await.is_err());
        // And one from outside.
        let (third, also) = oneshot::channel::<()>();
        let join = async {
            tokio::task::yield_now().await;
            crew.execute(async move { drop(also.await) });
            second.send(()).unwrap();
            third.send(()).unwrap();
        };
        let (ended, ()) = tokio::join!(timeout(SOON, &mut run), join);
        assert!(ended.is_ok());
    }

    /// Counts how often the task is woken.
    struct Wakes(AtomicUsize);

    impl std::task::Wake for Wakes {
        fn wake(self: Arc<Self>) {
            // Relaxed: one thread.
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn who_joins_from_within_does_not_wake_the_task() {
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        let waker = Arc::clone(&wakes).into();
        let mut cx = Context::from_waker(&waker);
        let (crew, run) = Run::new();
        let (ran, inner) = (Arc::new(AtomicUsize::new(0)), crew.clone());
        let member = {
            let ran = Arc::clone(&ran);
            move || {
                let ran = Arc::clone(&ran);
                async move {
                    ran.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let joins = member.clone();
        let mut run = Box::pin(run.led_by(async move {
            inner.execute(joins());
            std::future::pending::<()>().await;
        }));
        assert!(run.as_mut().poll(&mut cx).is_pending());
        let count = || (ran.load(Ordering::Relaxed), wakes.0.load(Ordering::Relaxed));
        assert_eq!(count(), (1, 0));
        crew.execute(member());
        assert_eq!(count(), (1, 1), "from without it does");
        assert!(run.as_mut().poll(&mut cx).is_pending());
        assert_eq!(count(), (2, 1));
    }

    #[tokio::test]
    async fn members_do_not_outlive_the_run() {
        struct Counted(Arc<AtomicUsize>);
        impl Drop for Counted {
            fn drop(&mut self) {
                // Relaxed: one thread.
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let gone = Arc::new(AtomicUsize::new(0));
        let member = |crew: &Crew| {
            // Each holds the crew, as hyper's do.
            let held = (Counted(Arc::clone(&gone)), crew.clone());
            crew.execute(async move {
                std::future::pending::<()>().await;
                drop(held);
            });
        };
        let (crew, run) = Run::new();
        member(&crew);
        let mut run = Box::pin(run.led_by(std::future::pending()));
        assert!((&mut run).now_or_never().is_none());
        member(&crew);
        drop(run);
        member(&crew);
        assert_eq!(gone.load(Ordering::Relaxed), 3);
    }
}
