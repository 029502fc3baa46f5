//! The tasks of a transport: they drive and open connections, read files and run plugins, and end with who owns them.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};

/// Owns the tasks: dropping it ends them.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    /// A handle for those who start tasks. It does not keep them alive.
    pub(crate) fn spawner(&self) -> Spawner {
        Spawner(Arc::downgrade(&self.0))
    }

    /// Runs `future` in a task, and ends it if this one is dropped. `None`: it ended without an outcome, as it panicked or the
    /// runtime shuts down.
    pub(crate) async fn outcome<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (tell, outcome) = oneshot::channel();
        let task = spawn(&self.0, async move {
            // If it cannot be told, nobody waits for it any more.
            let _ = tell.send(future.await);
        });
        let _ends = Ends(task);
        outcome.await.ok()
    }
}

/// Ends a task when dropped.
struct Ends(AbortHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts tasks, as long as the owner is there. Tasks hold one themselves, so it must not own them.
#[derive(Debug, Clone)]
pub(crate) struct Spawner(Weak<Mutex<JoinSet<()>>>);

impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        // Without an owner the future is dropped, and the connection with it.
        if let Some(tasks) = self.0.upgrade() {
            spawn(&tasks, future);
        }
    }
}

fn spawn(
    tasks: &Mutex<JoinSet<()>>,
    future: impl Future<Output = ()> + Send + 'static,
) -> AbortHandle {
    let mut tasks = tasks.lock();
    // Ended ones are let go here: as many stay at most as run at a time, and one.
    while tasks.try_join_next().is_some() {}
    tasks.spawn(future)
}
