//! Which crate may depend on which: the one table, compared with `cargo metadata` and with `docs/architecture.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use cargo_metadata::{DependencyKind, Package};

use super::Findings;
use crate::workspace::{Workspace, root};

/// Before every name of a published crate.
const PREFIX: &str = "kubestrata-";

/// One crate and what it may depend on, beside level 0.
pub(crate) struct Layer {
    /// Name without the prefix; the folder in `crates/`.
    pub(crate) name: &'static str,
    /// Crates of one level never depend on each other.
    pub(crate) level: u8,
    /// Crates of lower levels that this one may use.
    pub(crate) may_use: &'static [&'static str],
    /// One line for the architecture page.
    pub(crate) what: &'static str,
}

const fn layer(
    name: &'static str,
    level: u8,
    may_use: &'static [&'static str],
    what: &'static str,
) -> Layer {
    Layer { name, level, may_use, what }
}

/// The crates, bottom up. A new arrow between crates is a change of this table, and is reviewed as one.
pub(crate) const LAYERS: &[Layer] = &[
    layer(
        "api-types",
        0,
        &[],
        "the words: keys, resource types, versions, objects, events, requests, `Status`, selectors, the seams",
    ),
    layer("telemetry", 0, &[], "the metric provider trait"),
    layer("derive", 0, &[], "`#[derive(Object, Kind)]` for users' own structs"),
    layer(
        "codec",
        1,
        &[],
        "JSON and Kubernetes protobuf; `Encoded`, `Decoded<K>`, `Dynamic`; frames and collections",
    ),
    layer("realfifo", 1, &[], "the ordered delta queue"),
    layer("store-index", 1, &[], "the indexed object store: one writer, many readers"),
    layer("workqueue", 1, &[], "the deduplicating, delayed, rate-limited queue"),
    layer("watch-cache", 1, &[], "event history and current state of one resource, on the server"),
    layer("transport", 2, &["codec"], "from typed requests down to HTTP over TLS, or in process"),
    layer("reflector", 2, &[], "list + watch or streaming list as a stream that always recovers"),
    layer("storage", 2, &[], "the storage trait and the MVCC memory behind the embedded server"),
    layer(
        "informer",
        3,
        &["reflector", "realfifo", "store-index"],
        "the pump from reflector to handlers; shared, per kind and scope",
    ),
    layer("apireader", 3, &["codec"], "live reads"),
    layer(
        "cache-client",
        4,
        &["informer", "store-index", "codec"],
        "get and list from informers, everything else to the inner service",
    ),
    layer(
        "manager",
        5,
        CLIENT,
        "reconcilers, predicates, sources, workers, start and stop in order",
    ),
    layer(
        "apiserver",
        5,
        &["codec", "storage", "watch-cache"],
        "the embedded API server, library and binary",
    ),
    layer("controller", 6, FACADE, "the facade: the client side as modules, and a prelude"),
];

const CLIENT: &[&str] = &[
    "codec",
    "realfifo",
    "store-index",
    "workqueue",
    "transport",
    "reflector",
    "informer",
    "apireader",
    "cache-client",
];

const FACADE: &[&str] = &[
    "codec",
    "realfifo",
    "store-index",
    "workqueue",
    "transport",
    "reflector",
    "informer",
    "apireader",
    "cache-client",
    "manager",
];

/// Helpers of tests. Crates may use them in their own tests, except those that the helpers are made of.
const DEV: &[Layer] = &[layer("testkit", 2, &["codec"], "scripted server, virtual world, faults")];

/// Members that nothing depends on; they may use every crate.
const TOPS: &[&str] = &["kubestrata-bench", "demos", "it", "simulation"];

/// External crates that only some layers may name in their manifests.
const GUARDED: &[(&[&str], &[&str])] = &[
    (&["http", "http-body", "http-body-util"], &["transport", "apiserver"]),
    (&["hyper", "hyper-util", "rustls", "tokio-rustls"], &["transport", "apiserver"]),
    (
        &["serde_json", "prost"],
        &["codec", "transport", "apiserver", "storage", "api-types", "derive", "testkit"],
    ),
];

/// Compares the table with what the manifests say.
pub(crate) fn check(workspace: &Workspace, findings: &mut Findings) {
    let members = workspace.members();
    for member in &members {
        arrows(member, findings);
    }
    cycles(&members, findings);
    document(findings);
}

fn find(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().chain(DEV).find(|layer| layer.name == name)
}

fn arrows(member: &Package, findings: &mut Findings) {
    if TOPS.contains(&member.name.as_str()) {
        return;
    }
    let Some(layer) = member.name.strip_prefix(PREFIX).and_then(find) else {
        if member.name.as_str() != "xtask" {
            findings.error(format!("{}: not in the table of layers", member.name));
        } else if let Some(ours) = member.dependencies.iter().find(|d| d.name.starts_with(PREFIX)) {
            findings.error(format!(
                "xtask depends on {}: it must build without the project",
                ours.name
            ));
        }
        return;
    };
    for dependency in &member.dependencies {
        let development = dependency.kind == DependencyKind::Development;
        if !development {
            guarded(layer, &dependency.name, findings);
        }
        let Some(used) = dependency.name.strip_prefix(PREFIX) else { continue };
        if !allowed(layer, used, development) {
            let kind = if development { "dev-depends" } else { "depends" };
            findings.error(format!(
                "{}: {kind} on {used}, which the table of layers does not allow",
                layer.name
            ));
        }
    }
}

fn allowed(layer: &Layer, used: &str, development: bool) -> bool {
    let Some(target) = find(used) else { return false };
    if DEV.iter().any(|helper| helper.name == used) {
        // The helpers are built on level 0 and codec, which therefore cannot use them.
        return development && layer.level > 0 && layer.name != "codec";
    }
    if target.level == 0 {
        // Tests of a macro need what it expands to.
        return development || layer.level > 0;
    }
    if development { target.level < layer.level } else { layer.may_use.contains(&used) }
}

fn guarded(layer: &Layer, external: &str, findings: &mut Findings) {
    for (crates, layers) in GUARDED {
        if crates.contains(&external) && !layers.contains(&layer.name) {
            findings.error(format!(
                "{}: depends on {external}, which only {} may",
                layer.name,
                layers.join(", ")
            ));
        }
    }
}

/// Cargo allows cycles through dev-dependencies; they make crates that cannot be published or tested alone.
fn cycles(members: &[&Package], findings: &mut Findings) {
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for member in members {
        let ours = member.dependencies.iter().map(|dependency| dependency.name.as_str());
        uses.insert(member.name.as_str(), ours.filter(|name| name.starts_with(PREFIX)).collect());
    }
    // Take away crates whose dependencies are gone; what stays is a cycle.
    loop {
        let done: Vec<&str> = uses
            .iter()
            .filter(|(_, used)| used.iter().all(|name| !uses.contains_key(name)))
            .map(|(name, _)| *name)
            .collect();
        if done.is_empty() {
            break;
        }
        uses.retain(|name, _| !done.contains(name));
    }
    if !uses.is_empty() {
        let names: Vec<&str> = uses.keys().copied().collect();
        findings.error(format!("a cycle of dependencies among {}", names.join(", ")));
    }
}

/// The table as the architecture page shows it.
pub(crate) fn render() -> String {
    let mut text = String::from(
        "| level | crate | what it is | may depend on (beside level 0) |\n|---|---|---|---|\n",
    );
    for layer in LAYERS {
        let uses =
            if layer.may_use.is_empty() { "–".to_owned() } else { layer.may_use.join(", ") };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | `{}` | {} | {uses} |", layer.level, layer.name, layer.what);
    }
    text
}

fn document(findings: &mut Findings) {
    let path = root().join("docs/architecture.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    if !text.contains(&render()) {
        findings.error(format!(
            "docs/architecture.md does not hold the table of layers, which is:\n{}",
            render()
        ));
    }
}
