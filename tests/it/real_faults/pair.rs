//! A kube-apiserver and an etcd of the trial's own, which it may harm.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use kubestrata_api_types::BoxError;
use kubestrata_transport::{Config, Retry, Transport};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tower::util::BoxCloneSyncService;

use crate::bed::Stack;
use crate::ports::free_ports;

/// From the command until it is done; the script itself gives up sooner.
const ANSWER: Duration = Duration::from_secs(200);

/// A running pair. It ends when this is dropped, and also when this process is killed: the script that runs it sees its
/// standard input close.
pub(super) struct Pair {
    script: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    config: Config,
    port: u16,
    /// Removed last, by the order of fields.
    _state: TempDir,
}

impl Pair {
    /// Starts both from the folder `bin`, kube-apiserver with these flags beside its own, and waits until they are ready.
    pub(super) async fn start_with(bin: &Path, flags: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        // It may be away for a while, and has its ports again then.
        let port = free_ports(3);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("real/real");
        let mut script = Command::new("bash")
            .arg(script)
            .arg("run")
            .args([bin, state.path()])
            .arg(port.to_string())
            .arg("--")
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = script.stdin.take().expect("the input is piped");
        let output = script.stdout.take().expect("the output is piped");
        let mut output = BufReader::new(output).lines();
        let kubeconfig = answer(&mut output).await;
        let config = Config::from_kubeconfig(PathBuf::from(kubeconfig)).unwrap();
        Self { script, input, output, config, port, _state: state }
    }

    /// Where kube-apiserver listens.
    pub(super) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// How to reach kube-apiserver through a proxy on this port.
    pub(super) fn config_through(&self, port: u16) -> Config {
        let mut config = self.config.clone();
        config.server = format!("https://127.0.0.1:{port}").parse().unwrap();
        config
    }

    /// A direct way to kube-apiserver, for writes and for reads that tell the truth. It asks once.
    pub(super) fn direct(&self) -> Stack {
        let mut config = self.config.clone();
        config.retry = Retry::never();
        BoxCloneSyncService::new(Transport::connect(config).unwrap())
    }

    /// Kills kube-apiserver without warning.
    pub(super) async fn kill_apiserver(&mut self) {
        self.command("kill-apiserver").await;
    }

    /// Starts kube-apiserver again, with an empty watch cache, and waits until it is ready.
    pub(super) async fn start_apiserver(&mut self) {
        self.command("start-apiserver").await;
    }

    /// Stops etcd as a whole, as a machine without breath does: its connections stay open and nothing answers.
    pub(super) async fn stop_etcd(&mut self) {
        self.command("stop-etcd").await;
    }

    /// Lets etcd go on.
    pub(super) async fn resume_etcd(&mut self) {
        self.command("resume-etcd").await;
    }

    /// Makes etcd forget its history, and returns the revision at which that begins.
    pub(super) async fn compact(&mut self) -> u64 {
        self.command("compact").await.parse().unwrap()
    }

    /// Stops both and waits until they have ended.
    pub(super) async fn stop(self) {
        let Self { mut script, input, output, _state, .. } = self;
        drop((input, output));
        timeout(ANSWER, script.wait()).await.expect("the script ends").unwrap();
    }

    async fn command(&mut self, command: &str) -> String {
        let line = format!("{command}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
        let answer = answer(&mut self.output).await;
        answer.strip_prefix("done").expect("the script answers").trim().to_owned()
    }
}

async fn answer(output: &mut Lines<BufReader<ChildStdout>>) -> String {
    let line = async { Ok::<_, BoxError>(output.next_line().await?.ok_or("the script ended")?) };
    timeout(ANSWER, line).await.expect("the script answers in time").expect("the script answers")
}
