//! Work that many wait for and that a task does once for all of them.
//!
//! It must not be a part of the future of the one who asked first: that future may be dropped, with which the work would
//! begin anew for the others, or kept without being polled, with which they would wait for as long.

use std::fmt;

use hyper::rt::Executor as _;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::tasks::Tasks;

/// Runs one piece of work at a time, in a task of its own. Who asks while it runs waits for the same run. Dropping this ends
/// the task; nothing else does.
pub(crate) struct Errand<T> {
    /// Of the last run; `None` in it until its outcome is there.
    last: Mutex<Option<watch::Receiver<Option<T>>>>,
    tasks: Tasks,
}

impl<T> Default for Errand<T> {
    fn default() -> Self {
        Self { last: Mutex::default(), tasks: Tasks::default() }
    }
}

impl<T> fmt::Debug for Errand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Errand")
    }
}

impl<T: Clone + Send + Sync + 'static> Errand<T> {
    /// The outcome of the run that is under way, or else of a new one, which does `work`. It has no deadline of its own: give
    /// the work one. `None`: the run ended without an outcome, as its task panicked or the runtime shuts down.
    ///
    /// Cancel-safe: the run goes on for whoever asks next.
    pub(crate) async fn run<F>(&self, work: impl FnOnce() -> F) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut outcome = self.join(work);
        let outcome = outcome.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }

    fn join<F>(&self, work: impl FnOnce() -> F) -> watch::Receiver<Option<T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut last = self.last.lock();
        // Without a sender it has ended, with an outcome or without.
        if let Some(running) = last.as_ref().filter(|last| last.has_changed().is_ok()) {
            return running.clone();
        }
        let (tell, outcome) = watch::channel(None);
        let work = work();
        self.tasks.spawner().execute(async move {
            tell.send_replace(Some(work.await));
        });
        last.insert(outcome).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// Work that counts its beginnings, and ends when told.
    fn work(begun: &AtomicUsize, end: oneshot::Receiver<u8>) -> impl Future<Output = u8> + use<> {
        // Relaxed: one thread.
        begun.fetch_add(1, Ordering::Relaxed);
        async { end.await.unwrap() }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_first_may_go_or_stand_still() {
        let (errand, begun) = (Errand::default(), AtomicUsize::new(0));
        for keep in [true, false] {
            begun.store(0, Ordering::Relaxed);
            let (tell, end) = oneshot::channel();
            let mut first = Box::pin(errand.run(|| work(&begun, end)));
            assert!((&mut first).now_or_never().is_none());
            let kept = keep.then_some(first);
            let second = errand.run(|| work(&begun, oneshot::channel().1));
            tell.send(7).unwrap();
            assert_eq!(timeout(SOON, second).await, Ok(Some(7)));
            assert_eq!(begun.load(Ordering::Relaxed), 1);
            if let Some(first) = kept {
                assert_eq!(timeout(SOON, first).await, Ok(Some(7)));
            }
        }
        // Once it has ended there is another, and the old outcome is nobody's.
        let (tell, end) = oneshot::channel();
        tell.send(8).unwrap();
        assert_eq!(timeout(SOON, errand.run(|| work(&begun, end))).await, Ok(Some(8)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_may_end_without_an_outcome_and_ends_with_its_owner() {
        let errand = Errand::<u8>::default();
        let lost = errand.run(|| async { panic!("expected by this test") });
        assert_eq!(timeout(SOON, lost).await, Ok(None));
        assert_eq!(timeout(SOON, errand.run(|| async { 1 })).await, Ok(Some(1)));

        let (held, gone) = oneshot::channel::<u8>();
        let mut last = Box::pin(errand.run(move || async move {
            let _held = held;
            std::future::pending().await
        }));
        assert!((&mut last).now_or_never().is_none());
        drop(last);
        drop(errand);
        assert!(timeout(SOON, gone).await.unwrap().is_err());
    }
}
