//! The real kube-apiserver and etcd: built once, started on loopback, always stopped.

mod published;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::ChildStdin;
use tokio::time::timeout;

use crate::run::{self, Failure, Group, cargo, command};
use crate::workspace::{Workspace, root};

/// The first build compiles all of Kubernetes' API server.
const BUILD: Duration = Duration::from_secs(40 * 60);
/// From process start to a ready API server; the script itself gives up earlier.
const START: Duration = Duration::from_secs(5 * 60);
/// Tries to start: each port may be taken by somebody else after it was found free.
const TRIES: u16 = 3;
/// Ports to choose from. Below those that systems give to outgoing connections, or the port of a server that is started
/// again could be taken meanwhile, by a client's connection to it for example.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// The end-to-end suite, its compilation included.
const SUITE: Duration = Duration::from_secs(30 * 60);
/// Names a folder with `kube-apiserver` and `etcd`, built earlier by the same script.
const PREBUILT: &str = "KUBESTRATA_REAL_BIN";
/// Names the kubeconfig for the suite.
const KUBECONFIG: &str = "KUBESTRATA_REAL_KUBECONFIG";

/// What kube-apiserver allows by default in some releases only, and what the suite counts on.
const STREAMS: &str = "--http2-max-streams-per-connection=100";

/// Programs that are needed and are not there.
pub(crate) fn missing_programs() -> Vec<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    ["bash", "go", "openssl", "curl"].into_iter().filter(|name| !found(name)).collect()
}

/// Runs the end-to-end suite against the real servers, and the codec on all that Kubernetes publishes.
pub(crate) async fn test(rest: &[String]) -> Result<(), Failure> {
    let server = Server::start(&[STREAMS]).await?;
    let published = match published::variables(&Workspace::load()?.target().join("real")).await {
        Ok(published) => published,
        Err(failure) => {
            server.stop().await;
            return Err(failure);
        }
    };
    let mut command = cargo(&["test"]);
    command.args(run::WITH_FEATURES).args(["--test", "it", "--test", "published", "--"]);
    command.args(rest).env(KUBECONFIG, server.kubeconfig()).env(PREBUILT, &server.bin);
    command.envs(published);
    let result = run::bounded(command, SUITE).await;
    if result.is_err() {
        server.print_log();
    }
    server.stop().await;
    result
}

/// Holds the servers up until Ctrl-C.
pub(crate) async fn hold() -> Result<(), Failure> {
    let server = Server::start(&[]).await?;
    println!("{}", server.kubeconfig().display());
    eprintln!("kube-apiserver is up; Ctrl-C stops it");
    let stopped = run::stoppable(std::future::pending::<()>()).await;
    server.stop().await;
    stopped.or(Ok(()))
}

/// A running kube-apiserver with its etcd.
///
/// The script that started them stops them when its standard input closes, so they end even if we are killed.
pub(crate) struct Server {
    script: Group,
    input: ChildStdin,
    /// The folder of the programs: some trials start servers of their own.
    bin: PathBuf,
    state: PathBuf,
}

impl Server {
    /// Builds the servers if need be, and starts them on free ports of loopback, with a state folder of their own.
    pub(crate) async fn start(flags: &[&str]) -> Result<Self, Failure> {
        let missing = missing_programs();
        if !missing.is_empty() {
            return Err(Failure::new(format!(
                "the real kube-apiserver needs programs that are not in the path: {}",
                missing.join(", ")
            )));
        }
        let target = Workspace::load()?.target().join("real");
        let bin = match std::env::var_os(PREBUILT) {
            Some(bin) => PathBuf::from(bin),
            None => build(&target).await?,
        };
        let state = target.join(format!("state-{}", std::process::id()));
        let mut tries = free_ports().take(usize::from(TRIES)).peekable();
        while let Some(port) = tries.next() {
            let server = Self::spawn(&bin, &state, port, flags)?;
            match server.ready().await? {
                Ok(server) => return Ok(server),
                Err(failure) if tries.peek().is_none() => return Err(failure),
                Err(failure) => eprintln!("{failure}; trying other ports"),
            }
        }
        Err(Failure::new("no three neighbouring free ports on loopback"))
    }

    fn spawn(bin: &Path, state: &Path, port: u16, flags: &[&str]) -> Result<Self, Failure> {
        let mut command = command("bash");
        command.arg(script()).arg("run").args([bin, state]).arg(port.to_string());
        command.arg("--").args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = Group::spawn(command)?;
        let input = script.child.stdin.take().expect("the input is piped");
        Ok(Self { script, input, bin: bin.to_owned(), state: state.to_owned() })
    }

    /// Waits until kube-apiserver is ready. The outer failure is that of being asked to stop; either way it is stopped.
    async fn ready(mut self) -> Result<Result<Self, Failure>, Failure> {
        let output = self.script.child.stdout.take().expect("the output is piped");
        let (mut line, mut output) = (String::new(), BufReader::new(output));
        let problem = match run::stoppable(timeout(START, output.read_line(&mut line))).await {
            Ok(Ok(Ok(length))) if length > 0 => return Ok(Ok(self)),
            Ok(Ok(_)) => "kube-apiserver did not start".to_owned(),
            Ok(Err(_)) => format!("kube-apiserver was not ready after {START:?}"),
            Err(stopped) => {
                self.stop().await;
                return Err(stopped);
            }
        };
        self.print_log();
        self.stop().await;
        Ok(Err(Failure::new(problem)))
    }

    /// The kubeconfig of the running server.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    /// Stops both servers and removes their state.
    pub(crate) async fn stop(self) {
        let Self { mut script, input, state, .. } = self;
        drop(input);
        // The script waits for both servers to end.
        if timeout(Duration::from_secs(30), script.child.wait()).await.is_err() {
            script.stop().await;
        }
        let _ = std::fs::remove_dir_all(state);
    }

    /// The last lines of the servers' logs, for a failure that they may explain.
    fn print_log(&self) {
        const LINES: usize = 20;
        for name in ["apiserver.log", "etcd.log"] {
            if let Ok(text) = std::fs::read_to_string(self.state.join(name)) {
                let lines: Vec<&str> = text.lines().collect();
                eprintln!("--- the end of {name}");
                for line in &lines[lines.len().saturating_sub(LINES)..] {
                    eprintln!("{line}");
                }
            }
        }
    }
}

fn script() -> PathBuf {
    root().join("tests/real/real")
}

/// Builds both servers into the target folder, unless that was done from the same sources.
async fn build(target: &Path) -> Result<PathBuf, Failure> {
    let bin = target.join("bin");
    let stamp = target.join("built-from");
    let mut sources = String::new();
    for file in ["apiserver/go.sum", "apiserver/main.go", "etcd/go.sum", "etcd/main.go"] {
        sources.push_str(&std::fs::read_to_string(root().join("tests/real").join(file))?);
    }
    let built = ["kube-apiserver", "etcd"].iter().all(|name| bin.join(name).is_file());
    if built && std::fs::read_to_string(&stamp).is_ok_and(|text| text == sources) {
        return Ok(bin);
    }
    eprintln!("building kube-apiserver and etcd (some minutes the first time)");
    let mut command = command("bash");
    command.arg(script()).arg("build").arg(&bin);
    run::bounded(command, BUILD).await?;
    std::fs::write(stamp, sources)?;
    Ok(bin)
}

/// Ports, each the first of three neighbouring ones that are free at this moment; no two are neighbours.
fn free_ports() -> impl Iterator<Item = u16> {
    use std::net::TcpListener;
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    // Each process begins elsewhere, so that two at a time do not choose the same.
    let count = u32::from(PORTS.end - PORTS.start) / 3;
    let places = (0..count).map(move |step| (std::process::id() + step) % count * 3);
    let ports = places.map(|place| PORTS.start + u16::try_from(place).unwrap_or_default());
    ports.filter(move |port| (0..3).all(|offset| is_free(port + offset)))
}
