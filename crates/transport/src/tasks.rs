//! The tasks of a transport: they drive and open connections, read files and run plugins, and end with who owns them.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::task::JoinSet;

/// Owns the tasks: dropping it ends them.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    /// A handle for those who start tasks. It does not keep them alive.
    pub(crate) fn spawner(&self) -> Spawner {
        Spawner(Arc::downgrade(&self.0))
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
            let mut tasks = tasks.lock();
            // Ended ones are let go here: as many stay at most as run at a time, and one.
            while tasks.try_join_next().is_some() {}
            tasks.spawn(future);
        }
    }
}
