//! One task for all of an HTTP/2 connection.
//!
//! hyper has a task for the bytes of the connection, one that takes in requests, and one more for each answer that is
//! waited for. On a runtime of several threads each that is woken beside another also wakes a thread to share the work,
//! which for a request of some microseconds costs more than doing it. So they all are parts of one task here, which polls
//! those that are woken and no others.
//!
//! The parts wake each other all the time. For the runtime that were a task that wakes itself: it would be put into the
//! queue once more, and another thread be woken to look for it. So parts have wakers of their own, which wake the task only
//! where it is not at work.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// How often the task looks for parts that were woken meanwhile before it lets others have a turn.
const ROUNDS_MAX: usize = 8;

type Member = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes in what hyper wants to have run for one connection. Members hold one themselves, so it does not own them; what
/// joins a crew that is gone is dropped.
#[derive(Debug, Clone)]
pub(super) struct Crew(Weak<Gate>);

/// Members that are not polled yet. Not a part of wakers, which others keep.
#[derive(Debug)]
struct Gate {
    new: Mutex<Newcomers>,
    bell: Arc<Bell>,
}

#[derive(Default)]
struct Newcomers(Vec<Member>);

impl std::fmt::Debug for Newcomers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Newcomers")
    }
}

impl<F> hyper::rt::Executor<F> for Crew
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        if let Some(gate) = self.0.upgrade() {
            gate.new.lock().0.push(Box::pin(future));
            gate.bell.ring();
        }
    }
}

/// The task as its parts see it.
#[derive(Debug, Default)]
struct Desk {
    task: AtomicWaker,
    /// Whether the task is at work, and will look at the bells before it rests. SeqCst, as the bells: who rings looks here
    /// after that, and the task at the bells after it has gone to rest, so that one of them sees the other.
    busy: AtomicBool,
}

/// The waker of a part.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    desk: Arc<Desk>,
}

impl Bell {
    /// One that is rung: every part has a first turn.
    fn new(desk: &Arc<Desk>) -> Arc<Self> {
        Arc::new(Self { rung: AtomicBool::new(true), desk: Arc::clone(desk) })
    }

    fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        if !self.desk.busy.load(Ordering::SeqCst) {
            self.desk.task.wake();
        }
    }

    fn is_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    /// Whether it was rung since the last time.
    fn answer(&self) -> bool {
        self.rung.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

/// The future that runs a crew, to its last member. Dropping it drops them.
#[derive(Debug)]
pub(super) struct Run<F> {
    desk: Arc<Desk>,
    gate: Arc<Gate>,
    members: FuturesUnordered<Member>,
    leader: Option<Pin<Box<F>>>,
    leads: Arc<Bell>,
    /// The wakers of leader and members.
    wakers: (Waker, Waker),
}

impl<F> Run<F> {
    /// A crew without a leader, for the handshake: it has members before there is a connection to drive.
    pub(super) fn new() -> (Crew, Self) {
        let desk = Arc::<Desk>::default();
        let (leads, follows) = (Bell::new(&desk), Bell::new(&desk));
        let wakers = (Arc::clone(&leads).into(), Arc::clone(&follows).into());
        let gate = Arc::new(Gate { new: Mutex::default(), bell: follows });
        let crew = Crew(Arc::downgrade(&gate));
        let members = FuturesUnordered::new();
        (crew, Self { desk, gate, members, leader: None, leads, wakers })
    }

    /// The same with its leader, whose turn is first: requests that it takes in go out together.
    pub(super) fn led_by(mut self, leader: F) -> Self {
        self.leader = Some(Box::pin(leader));
        self
    }

    fn is_called(&self) -> bool {
        self.leads.is_rung() || self.gate.bell.is_rung()
    }
}

impl<F: Future<Output = ()>> Run<F> {
    /// A turn for those who were woken. Whether all is over.
    fn round(&mut self) -> bool {
        if self.leads.answer()
            && let Some(leader) = &mut self.leader
            && leader.as_mut().poll(&mut Context::from_waker(&self.wakers.0)).is_ready()
        {
            self.leader = None;
        }
        if self.gate.bell.answer() {
            self.members.extend(self.gate.new.lock().0.drain(..));
            let mut cx = Context::from_waker(&self.wakers.1);
            while let Poll::Ready(Some(())) = self.members.poll_next_unpin(&mut cx) {}
        }
        // One that joined just now has rung.
        self.leader.is_none() && self.members.is_empty() && !self.is_called()
    }
}

impl<F: Future<Output = ()>> Future for Run<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.desk.task.register(cx.waker());
        this.desk.busy.store(true, Ordering::SeqCst);
        for _ in 0..ROUNDS_MAX {
            if this.round() {
                return Poll::Ready(());
            }
            if !this.is_called() {
                break;
            }
        }
        this.desk.busy.store(false, Ordering::SeqCst);
        if this.is_called() {
            // Somebody rang while we went to rest, or there is more to do than fits into a turn.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
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

    const SOON: std::time::Duration = std::time::Duration::from_secs(60);

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

    impl Wake for Wakes {
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

    /// Parts that wake each other, for longer than one turn of the task: nothing is lost, and others have their turns.
    #[tokio::test]
    async fn parts_wake_each_other_within_a_turn() {
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        let waker = Arc::clone(&wakes).into();
        let mut cx = Context::from_waker(&waker);
        let (crew, run) = Run::new();
        let (to_leader, mut of_member) = tokio::sync::mpsc::channel::<usize>(1);
        let (to_member, mut of_leader) = tokio::sync::mpsc::channel::<usize>(1);
        let rallies = 2 * ROUNDS_MAX;
        crew.execute(async move {
            while let Some(n) = of_leader.recv().await {
                if to_leader.send(n + 1).await.is_err() {
                    return;
                }
            }
        });
        let mut run = Box::pin(run.led_by(async move {
            let mut n = 0;
            while n < rallies {
                to_member.send(n).await.unwrap();
                n = of_member.recv().await.unwrap();
            }
        }));
        let mut turns = 0;
        while run.as_mut().poll(&mut cx).is_pending() {
            turns += 1;
            assert_eq!(wakes.0.load(Ordering::Relaxed), turns, "a turn was asked for");
        }
        assert!((1..=3).contains(&turns), "{turns}");
    }

    /// Rung from another thread at any time: none is missed.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_ring_from_without_is_lost() {
        let (crew, run) = Run::new();
        let (sender, mut receiver) = tokio::sync::mpsc::channel::<usize>(1);
        let task = tokio::task::JoinSet::from_iter([run.led_by(async move {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
            }
            assert_eq!(sum, (0..20_000).sum::<usize>());
        })]);
        for n in 0..20_000 {
            timeout(SOON, sender.send(n)).await.unwrap().unwrap();
            if n % 7 == 0 {
                let (done, wait) = oneshot::channel();
                crew.execute(async move { done.send(()).unwrap() });
                timeout(SOON, wait).await.unwrap().unwrap();
            }
        }
        drop(sender);
        timeout(SOON, task.join_all()).await.unwrap();
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
