//! Credential plugins: a program that prints an `ExecCredential` (client.authentication.k8s.io/v1, v1beta1).

mod answer;
mod info;
mod meters;
mod process;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStdout, Command};

pub(crate) use self::info::ClusterInfo;
pub(crate) use self::meters::Meters;
use self::meters::Run;
use self::process::Process;
use super::AuthError;
use super::source::Made;
use crate::blocking::Blocking;

/// How much a plugin may print, in bytes.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How long what it has printed may take to be read once it has ended.
const REST: Duration = Duration::from_millis(500);

/// What a kubeconfig says of a plugin.
pub(crate) struct ExecPlugin {
    pub(crate) api_version: String,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, SecretString)>,
    pub(crate) install_hint: Option<String>,
    /// What the plugin is told of the server, if the kubeconfig says `provideClusterInfo`.
    pub(crate) cluster: Option<ClusterInfo>,
    starting: Blocking,
}

/// Shows the program only: arguments can be secrets too.
impl fmt::Debug for ExecPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecPlugin({})", self.command.display())
    }
}

impl ExecPlugin {
    pub(crate) fn new(api_version: String, command: PathBuf) -> Self {
        Self {
            api_version,
            command,
            args: Vec::new(),
            env: Vec::new(),
            install_hint: None,
            cluster: None,
            starting: Blocking::default(),
        }
    }

    fn error(&self, problem: impl Into<String>) -> AuthError {
        AuthError::Exec { command: self.command.clone(), problem: problem.into(), hint: None }
    }
}

/// Runs the plugin for at most `limit`. The process is killed, with all that it has started, if the
/// limit passes or the future is dropped.
pub(super) async fn run(
    plugin: &ExecPlugin,
    limit: Duration,
    meters: &Meters,
) -> Result<Made, AuthError> {
    let mut run = Run::GivenUp;
    let output = tokio::time::timeout(limit, output(plugin, &mut run)).await;
    meters.ran(run);
    match output {
        Ok(output) => answer::parse(plugin, &output?),
        Err(_) => Err(AuthError::ExecTimeout { command: plugin.command.clone(), limit }),
    }
}

/// What it prints. `run` is set once it is known how that went.
async fn output(plugin: &ExecPlugin, run: &mut Run) -> Result<Zeroizing<Vec<u8>>, AuthError> {
    let started = spawn(command(plugin).await?, plugin).await;
    let mut process = started.inspect_err(|_| *run = Run::NotFound)?;
    // Allocated once: a buffer that grows leaves copies of the secrets behind.
    let mut bytes = Zeroizing::new(vec![0; OUTPUT_BYTES_MAX + 1]);
    let (mut length, mut ended) = (0, None);
    if let Some(stdout) = process.stdout() {
        let read = fill(stdout, &mut bytes, &mut length);
        tokio::pin!(read);
        let read = tokio::select! {
            // All that it prints first, which most end with.
            biased;
            read = &mut read => Some(read),
            status = process.wait() => {
                // What it has left running may hold its output open for as long as it likes.
                ended = Some(status);
                tokio::time::timeout(REST, &mut read).await.ok()
            }
        };
        read.unwrap_or(Ok(())).map_err(|error| plugin.error(error.to_string()))?;
    }
    if length > OUTPUT_BYTES_MAX {
        return Err(plugin.error(format!("it prints more than {OUTPUT_BYTES_MAX} bytes")));
    }
    bytes.truncate(length);
    let status = match ended {
        Some(ended) => ended,
        None => process.wait().await,
    };
    let status = status.map_err(|error| plugin.error(error.to_string()))?;
    if status.success() {
        *run = Run::Done;
        Ok(bytes)
    } else {
        *run = Run::Failed(status.code().unwrap_or(-1));
        Err(plugin.error(status.to_string()))
    }
}

/// Reads until there is no more, or no room.
async fn fill(mut stdout: ChildStdout, bytes: &mut [u8], length: &mut usize) -> io::Result<()> {
    while *length < bytes.len() {
        match stdout.read(&mut bytes[*length..]).await? {
            0 => break,
            more => *length += more,
        }
    }
    Ok(())
}

async fn command(plugin: &ExecPlugin) -> Result<Command, AuthError> {
    let info = info::render(plugin).await?;
    let mut command = Command::new(&plugin.command);
    command
        .args(&plugin.args)
        .envs(plugin.env.iter().map(|(name, value)| (name, value.expose_secret())))
        .env("KUBERNETES_EXEC_INFO", info.expose_secret())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // What a plugin tells people goes where they see it; it never becomes part of an error.
        .stderr(Stdio::inherit());
    Ok(command)
}

/// Starts the process on a thread where it may take its time: to copy the tables of a large process, and to find the
/// program on a slow disk, can take longer than a worker of the runtime may stand still.
async fn spawn(command: Command, plugin: &ExecPlugin) -> Result<Process, AuthError> {
    let started = plugin.starting.run(move || Process::start(command)).await;
    started.map_err(|error| AuthError::Exec {
        command: plugin.command.clone(),
        problem: error.to_string(),
        hint: plugin.install_hint.clone(),
    })
}
