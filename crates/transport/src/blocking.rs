//! Work that can take as long as a disk or the network likes.

use std::io;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// How much of one kind may hang at a time. More than one, so that it is noticed when things are well again, although what was
/// begun before still hangs; and few, as each holds a thread of the runtime's.
const HANGING_MAX: usize = 4;

/// Runs work on threads where it may stand still. What nobody waits for any more goes on there, and is dropped at its end.
#[derive(Debug)]
pub(crate) struct Blocking(Arc<Semaphore>);

impl Default for Blocking {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(HANGING_MAX)))
    }
}

impl Blocking {
    /// The outcome of `work`, which is not begun as long as too much hangs. It has no deadline of its own. Cancel-safe.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        let permit = permit.expect("nothing closes the semaphore");
        let done = tokio::task::spawn_blocking(move || {
            let _held = permit;
            work()
        });
        done.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_hangs_is_bounded() {
        let (blocking, begun) = (Blocking::default(), Arc::new(AtomicUsize::new(0)));
        let (go, stop) = mpsc::channel::<()>();
        let stop = Arc::new(std::sync::Mutex::new(stop));
        for _ in 0..10 {
            let (begun, stop) = (Arc::clone(&begun), Arc::clone(&stop));
            let hangs = blocking.run(move || {
                begun.fetch_add(1, Ordering::SeqCst);
                // Until the sender is dropped.
                let _ = stop.lock().unwrap().recv();
                Ok(())
            });
            let given_up = tokio::time::timeout(Duration::from_millis(30), hangs).await;
            assert!(given_up.is_err());
        }
        // However late their threads come to it.
        while begun.load(Ordering::SeqCst) < HANGING_MAX {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(begun.load(Ordering::SeqCst), HANGING_MAX);
        drop(go);
        assert_eq!(blocking.run(|| Ok(7)).await.unwrap(), 7);
    }
}
