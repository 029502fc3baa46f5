//! Child processes that cannot outlive their time limit, nor this program.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

use crate::workspace::root;

/// The whole workspace, with the features that have tests. Not all features: one brings a second TLS library, whose C code
/// takes minutes to compile. Every build of tests uses the same, so that each crate is built once.
pub(crate) const WITH_FEATURES: [&str; 3] =
    ["--workspace", "--features", "kubestrata-apiserver/cli,kubestrata-controller/k8s-openapi"];

/// Between the polite signal and the one that cannot be ignored.
const GRACE: Duration = Duration::from_secs(10);

/// How long an interactive child may clean up after it is asked to end.
const CLEAN_UP: Duration = Duration::from_secs(120);

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    /// A failure with this text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }

    /// The code to exit with: that of an interactive child, so that a caller sees what the child told; 1 for the rest.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// A command in the root folder of the workspace.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs us, or else the one in the path.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs a child to its end, at most for `limit`.
///
/// The child leads a process group, so that test binaries and compilers end with it.
/// Dropping the future ends the group too.
pub(crate) async fn bounded(mut command: Command, limit: Duration) -> Result<(), Failure> {
    let name = describe(&command);
    command.stdin(Stdio::null());
    let mut group = Group::spawn(command)?;
    let status = group.wait(limit).await?;
    check(&name, status)
}

/// Runs a child to its end and returns what it wrote to standard output.
pub(crate) async fn output(mut command: Command, limit: Duration) -> Result<String, Failure> {
    use tokio::io::AsyncReadExt as _;
    /// More than any of our children prints; a child that floods us is broken.
    const OUTPUT_BYTES_MAX: u64 = 16 << 20;
    let name = describe(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut group = Group::spawn(command)?;
    let stdout = group.child.stdout.take().expect("the output is piped");
    let mut text = String::new();
    let read = async {
        stdout.take(OUTPUT_BYTES_MAX).read_to_string(&mut text).await.map_err(Failure::from)
    };
    let late = || Failure::new(format!("{name}: still running after {} s", limit.as_secs()));
    stoppable(timeout(limit, read)).await?.map_err(|_| late())??;
    let status = group.wait(limit).await?;
    check(&name, status)?;
    Ok(text)
}

/// Runs a child that shares our terminal, and passes its exit code on in the failure.
///
/// On Ctrl-C the terminal tells it directly. SIGTERM and SIGHUP come to us alone, so we pass them on. Either way we wait
/// for it to clean up.
pub(crate) async fn interactive(mut command: Command) -> Result<(), Failure> {
    let name = describe(&command);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut child = command.spawn().map_err(|error| Failure::new(format!("{name}: {error}")))?;
    let mut deadline: Option<Instant> = None;
    let status = loop {
        let late = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Biased: a child that has ended is the better news.
            biased;
            status = child.wait() => break status?,
            () = late => {
                child.kill().await?;
                return Err(Failure::new(format!("{name}: did not end within {CLEAN_UP:?}")));
            }
            _ = interrupt.recv() => {}
            _ = terminate.recv() => pass_on(&child, Signal::TERM),
            _ = hang_up.recv() => pass_on(&child, Signal::HUP),
        }
        // Counted from the first time: whoever asks again does not want to wait longer.
        deadline.get_or_insert_with(|| Instant::now() + CLEAN_UP);
    };
    check(&name, status).map_err(|failure| Failure { code: exit_code(status), ..failure })
}

fn pass_on(child: &Child, signal: Signal) {
    // None once it has been waited for.
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        // It fails when the child has ended, which is what we want.
        let _ = kill_process(id, signal);
    }
}

/// As a shell tells it: a child that a signal has ended has 128 and the signal's number.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Runs `future` until it is ready or we are asked to stop.
pub(crate) async fn stoppable<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        // Biased: work that is done counts as done.
        biased;
        output = future => Ok(output),
        _ = interrupt.recv() => Err(Failure::new("stopped by Ctrl-C")),
        _ = terminate.recv() => Err(Failure::new("stopped by SIGTERM")),
    }
}

/// A child that leads a process group of its own. Dropping it kills the group.
pub(crate) struct Group {
    name: String,
    /// The child itself, for its pipes.
    pub(crate) child: Child,
    id: Option<Pid>,
}

impl Group {
    /// Starts the child.
    pub(crate) fn spawn(mut command: Command) -> Result<Self, Failure> {
        let name = describe(&command);
        let child = command
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::new(format!("{name}: {error}")))?;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { name, child, id })
    }

    /// Waits for the end of the child, at most for `limit`, and ends the group if we are asked to stop.
    pub(crate) async fn wait(&mut self, limit: Duration) -> Result<ExitStatus, Failure> {
        match stoppable(timeout(limit, self.child.wait())).await {
            Ok(Ok(status)) => Ok(status?),
            Ok(Err(_)) => {
                self.stop().await;
                Err(Failure::new(format!("{}: ended after {} s", self.name, limit.as_secs())))
            }
            Err(stopped) => {
                self.stop().await;
                Err(stopped)
            }
        }
    }

    /// Ends the group: politely, then by force.
    pub(crate) async fn stop(&mut self) {
        self.signal(Signal::TERM);
        let _ = timeout(GRACE, self.child.wait()).await;
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // It fails when the whole group has ended, which is what we want.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn check(name: &str, status: ExitStatus) -> Result<(), Failure> {
    if status.success() { Ok(()) } else { Err(Failure::new(format!("{name}: {status}"))) }
}

/// The command as a person would write it, without its folder.
fn describe(command: &Command) -> String {
    let command = command.as_std();
    let program = std::path::Path::new(command.get_program()).file_name();
    let mut text = program.unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
