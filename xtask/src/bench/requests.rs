//! Single requests beside those of the peers.

use tokio::process::Command;

use super::table::{self, Section};
use super::{Bench, JSON, NAMESPACE, PROTOBUF};
use crate::run::Failure;

/// As many as requests are on their way at a time: each worker has one of its own.
pub(super) const PODS: u32 = 100;

/// GETs one at a time. Ten times as many are sent with 100 at a time, and a tenth as many PATCHes.
const COUNT: &str = "2000";

/// What the programs print of each, as columns.
const TABLES: [(&str, &[&str]); 4] = [
    ("GET, 1", &["get_1_p50_us", "get_1_p99_us", "get_1_mean_us", "get_1_per_s", "get_1_cpu_us"]),
    (
        "GET, 100",
        &["get_100_p50_us", "get_100_p99_us", "get_100_mean_us", "get_100_per_s", "get_100_cpu_us"],
    ),
    (
        "PATCH, 1",
        &["patch_1_p50_us", "patch_1_p99_us", "patch_1_mean_us", "patch_1_per_s", "patch_1_cpu_us"],
    ),
    (
        "PATCH, 100",
        &[
            "patch_100_p50_us",
            "patch_100_p99_us",
            "patch_100_mean_us",
            "patch_100_per_s",
            "patch_100_cpu_us",
        ],
    ),
];

impl Bench<'_> {
    /// All programs in turn, round after round: what the server does between two rounds meets each of them.
    pub(super) async fn requests(&self) -> Result<Vec<Section>, Failure> {
        type Make<'a> = Box<dyn Fn() -> Command + 'a>;
        let own = |format: &'static str| -> Make<'_> {
            Box::new(move || {
                let mut command = self.own("requests", &self.kubeconfig);
                command.args(["--format", format, "--requests", COUNT]);
                command
            })
        };
        let mut programs =
            vec![("kubestrata protobuf", own("protobuf")), ("kubestrata json", own("json"))];
        if let Some(peers) = &self.peers {
            let go = |content_type: &'static str| -> Make<'_> {
                Box::new(move || {
                    let mut command = self.go(peers, &self.kubeconfig);
                    command.args(["-ct", content_type, "-n", COUNT, "requests"]);
                    command
                })
            };
            let kube = || self.kube_rs(peers, &self.kubeconfig, &["requests", NAMESPACE, COUNT]);
            programs.push(("client-go protobuf", go(PROTOBUF)));
            programs.push(("client-go json", go(JSON)));
            programs.push(("kube-rs json", Box::new(kube)));
        }
        let mut runs = vec![Vec::new(); programs.len()];
        for _ in 0..self.options.rounds.max(1) {
            for ((_, make), runs) in programs.iter().zip(&mut runs) {
                runs.push(self.once(make()).await?);
            }
        }
        let medians: Vec<_> = runs.iter().map(|runs| table::median(runs)).collect();
        let section = |(what, fields): (&str, _)| {
            let mut section = Section::new(format!("{what} in flight, microseconds"), fields);
            for ((name, _), median) in programs.iter().zip(&medians) {
                section.add(*name, median.clone());
            }
            section
        };
        Ok(TABLES.map(section).into())
    }
}
