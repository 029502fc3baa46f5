//! Benchmarks: this project beside its peers, in one run on one machine.

mod footprint;
mod requests;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use self::table::Section;
use crate::real::Server;
use crate::run::{self, Failure, Group, cargo, command};
use crate::workspace::{Workspace, root};

/// The peers compile client-go, controller-runtime and kube-rs, optimised.
const BUILD: Duration = Duration::from_secs(40 * 60);
/// One measurement, or the creation of all pods.
const RUN: Duration = Duration::from_secs(15 * 60);
/// Names a folder with `peer-go` and `peer-kube-rs`, built earlier by the script.
const PREBUILT: &str = "KUBESTRATA_PEERS_BIN";
/// Where the replay server of the peers listens.
const REPLAY: &str = "127.0.0.1:18080";
const NAMESPACE: &str = "bench";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A tiny size against the embedded server: shows that the benchmarks work, and no figures.
    #[arg(long)]
    smoke: bool,
    /// The codec alone, on the recorded objects, beside serde_json and prost; with `--peers` beside client-go too.
    #[arg(long)]
    codec: bool,
    /// Single requests alone: a GET and a PATCH, one at a time and 100.
    #[arg(long)]
    requests: bool,
    /// Nothing at run time: what it takes to build a program of ten kinds, cold, beside kube.
    #[arg(long)]
    build: bool,
    /// Build and measure the peers too (needs Go), and print ratios.
    #[arg(long)]
    peers: bool,
    /// Pods in the collection.
    #[arg(long, default_value_t = 30_000)]
    pods: u32,
    /// Events of the replay server.
    #[arg(long, default_value_t = 90_000)]
    events: u32,
    /// Pods that the replay server serves.
    #[arg(long, default_value_t = 10_000)]
    replay_pods: u32,
    /// Runs of each measurement; the table shows medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Runs the benchmarks.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    if options.smoke {
        return smoke().await;
    }
    if options.build {
        return footprint::run().await;
    }
    if options.codec {
        return codec(options).await;
    }
    let ours = build_ours().await?;
    let peers = if options.peers { Some(build_peers().await?) } else { None };
    let server = Server::start(&[]).await?;
    let kubeconfig = server.kubeconfig();
    let bench = Bench { options, ours, peers, kubeconfig };
    let sections = bench.against_server().await;
    server.stop().await;
    let mut sections = sections?;
    if !options.requests
        && let Some(section) = bench.events().await?
    {
        sections.push(section);
    }
    for section in &sections {
        section.print();
    }
    Ok(())
}

/// A tiny size, for the gate.
pub(crate) async fn smoke() -> Result<(), Failure> {
    let command = cargo(&["run", "--quiet", "--package", "kubestrata-bench", "--", "smoke"]);
    run::bounded(command, Duration::from_secs(20 * 60)).await
}

/// The codec on recorded objects. It builds prost's types too, which nothing else needs.
async fn codec(options: &Options) -> Result<(), Failure> {
    let build = ["build", "--release", "--package", "kubestrata-bench", "--features", "prost"];
    run::bounded(cargo(&build), BUILD).await?;
    let mut command = command(Workspace::load()?.target().join("release/kubestrata-bench"));
    command.arg("codec").arg("--rounds").arg(options.rounds.to_string());
    if options.peers {
        command.arg("--peer-go").arg(build_peers().await?.join("peer-go"));
    }
    run::bounded(command, RUN).await
}

async fn build_ours() -> Result<PathBuf, Failure> {
    let build = cargo(&["build", "--release", "--package", "kubestrata-bench"]);
    run::bounded(build, BUILD).await?;
    Ok(Workspace::load()?.target().join("release/kubestrata-bench"))
}

async fn build_peers() -> Result<PathBuf, Failure> {
    if let Some(bin) = std::env::var_os(PREBUILT) {
        return Ok(PathBuf::from(bin));
    }
    let bin = Workspace::load()?.target().join("peers");
    let mut build = command("bash");
    build.arg(root().join("crates/bench/peers/peers")).arg("build").arg(&bin);
    run::bounded(build, BUILD).await?;
    Ok(bin)
}

struct Bench<'a> {
    options: &'a Options,
    ours: PathBuf,
    peers: Option<PathBuf>,
    kubeconfig: PathBuf,
}

impl Bench<'_> {
    async fn against_server(&self) -> Result<Vec<Section>, Failure> {
        let pods = if self.options.requests { requests::PODS } else { self.options.pods };
        let mut seed = self.own("seed", &self.kubeconfig);
        seed.args(["--objects", &pods.to_string()]);
        run::bounded(seed, RUN).await?;
        if self.options.requests {
            return self.requests().await;
        }
        let mut sections =
            vec![self.sync("protobuf", PROTOBUF).await?, self.sync("json", JSON).await?];
        sections.extend(self.controller_and_reads().await?);
        sections.extend(self.requests().await?);
        Ok(sections)
    }

    /// Initial sync of all pods, without compression on either side.
    async fn sync(&self, format: &str, content_type: &str) -> Result<Section, Failure> {
        let mut section = Section::new(
            format!("sync, {} pods, {format}, identity", self.options.pods),
            &["sync_s", "cpu_ms", "rss_kb", "peak_kb"],
        );
        let ours = |flags: &[&str]| {
            let mut command = self.own("sync", &self.kubeconfig);
            command.args(["--format", format, "--identity"]).args(flags);
            command
        };
        section.add("kubestrata", self.median(|| ours(&[])).await?);
        section.add("  all fields", self.median(|| ours(&["--keep-managed-fields"])).await?);
        section.add("  decoded", self.median(|| ours(&["--store", "decoded"])).await?);
        if let Some(peers) = &self.peers {
            let go = |flags: &[&str]| {
                let mut command = self.go(peers, &self.kubeconfig);
                command.args(["-identity=true", "-ct", content_type]).args(flags);
                command
            };
            section.add("bytes only", self.median(|| go(&["drain"])).await?);
            section.add("client-go", self.median(|| go(&["informer"])).await?);
            section.add("  stripped", self.median(|| go(&["-strip", "informer"])).await?);
            if format == "json" {
                let kube = || self.kube_rs(peers, &self.kubeconfig, &["stream", NAMESPACE, "0"]);
                section.add("kube-rs", self.median(kube).await?);
            }
        }
        Ok(section)
    }

    /// No-op reconciles of all pods, and cached reads. The peers measure both in one run.
    async fn controller_and_reads(&self) -> Result<[Section; 2], Failure> {
        let mut controller = Section::new(
            format!("controller, {} pods, 10 workers", self.options.pods),
            &["sync_s", "all_reconciled_s", "reconciles_per_s", "cpu_ms", "rss_kb", "peak_kb"],
        );
        let mut reads = Section::new(
            format!("reads, {} pods, microseconds", self.options.pods),
            &[
                "get_us",
                "get_shared_us",
                "list_label_us",
                "list_label_lazy_us",
                "list_index_us",
                "list_index_lazy_us",
                "list_full_us",
            ],
        );
        let ours = || {
            let mut command = self.own("controller", &self.kubeconfig);
            command.args(["--workers", "10"]);
            command
        };
        controller.add("kubestrata", self.median(ours).await?);
        reads.add("kubestrata", self.median(|| self.own("reads", &self.kubeconfig)).await?);
        if let Some(peers) = &self.peers {
            let runtime = || {
                let mut command = self.go(peers, &self.kubeconfig);
                command.args(["-c", "10", "cr"]);
                command
            };
            let kube = || self.kube_rs(peers, &self.kubeconfig, &["controller", NAMESPACE]);
            let results = [
                ("controller-runtime", self.median(runtime).await?),
                ("kube-rs", self.median(kube).await?),
            ];
            for (name, result) in results {
                controller.add(name, result.clone());
                reads.add(name, result);
            }
        }
        Ok([controller, reads])
    }

    /// Events at the speed of the socket, from the replay server of the peers.
    async fn events(&self) -> Result<Option<Section>, Failure> {
        let Some(peers) = &self.peers else { return Ok(None) };
        let (pods, events) =
            (self.options.replay_pods.to_string(), self.options.events.to_string());
        let mut section = Section::new(
            format!("events, {events} on {pods} pods"),
            &["updates", "per_s", "cpu_us_per_event", "peak_kb"],
        );
        let mut replay = command(peers.join("peer-go"));
        replay.args(["-n", &pods, "-events", &events, "replay"]);
        replay.stdout(std::process::Stdio::piped());
        let mut replay = Group::spawn(replay)?;
        let output = replay.child.stdout.take().expect("the output is piped");
        let mut line = String::new();
        let ready = BufReader::new(output).read_line(&mut line).await;
        let folder = Workspace::load()?.target().join("peers");
        std::fs::create_dir_all(&folder)?;
        let kubeconfig = folder.join("replay.kubeconfig");
        std::fs::write(&kubeconfig, replay_kubeconfig())?;
        let result = async {
            ready?;
            for format in ["protobuf", "json"] {
                let ours = || {
                    let mut command = command(&self.ours);
                    command.args(["events", "--server", &format!("http://{REPLAY}")]);
                    command.args(["--namespace", NAMESPACE, "--events", &events]);
                    command.args(["--format", format]);
                    command
                };
                section.add(format!("kubestrata {format}"), self.median(ours).await?);
            }
            for (format, content_type) in [("protobuf", PROTOBUF), ("json", JSON)] {
                let go = || {
                    let mut command = self.go(peers, &kubeconfig);
                    command.args(["-ct", content_type, "-events", &events, "informer", "replay"]);
                    command
                };
                section.add(format!("client-go {format}"), self.median(go).await?);
            }
            let kube = || {
                let mut command = self.kube_rs(peers, &kubeconfig, &["stream", NAMESPACE, &events]);
                command.env("REPLAY", REPLAY);
                command
            };
            section.add("kube-rs json", self.median(kube).await?);
            Ok(Some(section))
        };
        let result: Result<_, Failure> = result.await;
        replay.stop().await;
        result
    }

    fn own(&self, what: &str, kubeconfig: &Path) -> Command {
        let mut command = command(&self.ours);
        command.arg(what).arg("--kubeconfig").arg(kubeconfig).args(["--namespace", NAMESPACE]);
        command
    }

    fn go(&self, peers: &Path, kubeconfig: &Path) -> Command {
        let mut command = command(peers.join("peer-go"));
        command.arg("-kc").arg(kubeconfig).args(["-ns", NAMESPACE]);
        command
    }

    fn kube_rs(&self, peers: &Path, kubeconfig: &Path, arguments: &[&str]) -> Command {
        let mut command = command(peers.join("peer-kube-rs"));
        command.args(arguments).env("KUBECONFIG", kubeconfig);
        command
    }

    /// Runs a measurement several times; each number of the result is the median of its own runs.
    async fn median(&self, make: impl Fn() -> Command) -> Result<Map<String, Value>, Failure> {
        let mut runs = Vec::new();
        for _ in 0..self.options.rounds.max(1) {
            runs.push(self.once(make()).await?);
        }
        Ok(table::median(&runs))
    }

    /// Runs a measurement.
    async fn once(&self, command: Command) -> Result<Map<String, Value>, Failure> {
        let text = run::output(command, RUN).await?;
        // The last line holds the measurement; the lines before it lead up to it.
        let line = text.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(line)
            .map_err(|error| Failure::new(format!("a benchmark printed no JSON: {error}")))?;
        let Value::Object(fields) = value else {
            return Err(Failure::new("a benchmark printed JSON that is no object"));
        };
        eprintln!("{line}");
        Ok(fields)
    }
}

fn replay_kubeconfig() -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: replay\n\
         clusters: [{{name: replay, cluster: {{server: \"http://{REPLAY}\"}}}}]\n\
         users: [{{name: replay, user: {{}}}}]\n\
         contexts: [{{name: replay, context: {{cluster: replay, user: replay}}}}]\n"
    )
}
