//! The process of a plugin, with those that it starts.

use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, ChildStdout, Command};

/// A process that leads a group of its own. Dropped before its end, it is killed with the group: plugins are often scripts, and
/// of one that hangs it is what it has started that does. What is left of a group after its end goes on: it may be meant to.
pub(super) struct Process {
    child: Child,
    ended: bool,
}

impl Process {
    /// Starts it. This can take as long as a disk likes.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        #[cfg(unix)]
        command.process_group(0);
        let child = command.kill_on_drop(true).spawn()?;
        Ok(Self { child, ended: false })
    }

    /// Its output, once.
    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for its end. Cancel-safe.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.ended = true;
        Ok(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.ended {
            self.kill_group();
        }
    }
}

impl Process {
    #[cfg(unix)]
    fn kill_group(&self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // There is a number as long as nobody has heard of its end, and it is nobody else's.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It fails if all have ended by themselves.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }

    /// The process alone is killed where there are no groups.
    #[cfg(not(unix))]
    fn kill_group(&self) {}
}
