//! What Kubernetes publishes of its encoders: the golden files of a Go module, and a corpus that its own code writes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::run::{self, Failure, command};
use crate::workspace::root;

/// Downloading a Go module, or compiling a program with it.
const BUILD: Duration = Duration::from_secs(10 * 60);
/// Writing the corpus.
const WRITE: Duration = Duration::from_secs(5 * 60);
/// Random fills of each kind. Every fourth is so full that it takes most of the time: of forty, the file has 1.6 GB.
const FILLS: &str = "3";
/// Names the folder of the Go module `k8s.io/api`, if it is not to be downloaded.
const MODULE: &str = "KUBESTRATA_K8S_API";
/// Names the file of the corpus, if it is not to be made.
const CORPUS: &str = "KUBESTRATA_CORPUS";

/// The variables by which the tests of the crate codec find what is published. `target` is where things are built.
pub(super) async fn variables(target: &Path) -> Result<[(&'static str, PathBuf); 2], Failure> {
    let module = match std::env::var_os(MODULE) {
        Some(module) => module.into(),
        None => module().await?,
    };
    let corpus = match std::env::var_os(CORPUS) {
        Some(corpus) => corpus.into(),
        None => corpus(target).await?,
    };
    Ok([(MODULE, module), (CORPUS, corpus)])
}

/// Where Go keeps the module of the release that the table was made from.
async fn module() -> Result<PathBuf, Failure> {
    let mut download = command("go");
    download.current_dir(root().join("schema"));
    download.args(["mod", "download", "-json", "k8s.io/api"]);
    let text = run::output(download, BUILD).await?;
    let told: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("go mod download: {error}")))?;
    match told["Dir"].as_str() {
        Some(folder) => Ok(folder.into()),
        None => Err(Failure::new("go mod download did not say where k8s.io/api is")),
    }
}

/// Writes the corpus, unless that was done from the same sources.
async fn corpus(target: &Path) -> Result<PathBuf, Failure> {
    let folder = root().join("schema/corpus");
    let (program, file) = (target.join("corpus"), target.join("corpus.bin"));
    let stamp = target.join("corpus-made-from");
    let mut sources = FILLS.to_owned();
    for name in ["go.sum", "main.go"] {
        sources.push_str(&std::fs::read_to_string(folder.join(name))?);
    }
    if file.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|text| text == sources) {
        return Ok(file);
    }
    std::fs::create_dir_all(target)?;
    let mut build = command("go");
    build.current_dir(&folder).env("GOFLAGS", "-mod=readonly");
    build.args(["build", "-o"]).arg(&program).arg(".");
    run::bounded(build, BUILD).await?;
    let mut write = command(&program);
    write.args(["-fills", FILLS]).stdout(Stdio::from(std::fs::File::create(&file)?));
    run::bounded(write, WRITE).await?;
    std::fs::write(stamp, sources)?;
    Ok(file)
}
