//! The published golden files of `k8s.io/api`: one object of each kind, every field filled, in both encodings.
//!
//! A few always run from `tests/golden`. With `KUBESTRATA_K8S_API` set to the folder of the Go module `k8s.io/api`
//! (of the release that the table was made from), all do.

#![expect(clippy::unwrap_used, reason = "a test: a failure is a panic")]

use std::path::{Path, PathBuf};

use kubestrata_codec::{envelope, proto, schema};
use serde_json::Value;

/// One golden object.
struct Golden {
    name: String,
    envelope: Vec<u8>,
    json: Vec<u8>,
}

impl Golden {
    fn open(&self) -> (&'static schema::Message, proto::Options<'_>, &[u8]) {
        let outer = envelope::open(&self.envelope).unwrap();
        // The one object that does not name its kind.
        let (found, options) = if self.name == "core.v1.WatchEvent" {
            (schema::kind_of("v1", "WatchEvent"), proto::Options::default())
        } else {
            let options = proto::Options::of(outer.api_version, outer.kind);
            (schema::kind_of(outer.api_version, outer.kind), options)
        };
        let message = found.unwrap_or_else(|| panic!("{} has no message", self.name));
        (message, options, outer.message)
    }
}

fn folder(path: &Path) -> Vec<Golden> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pb"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| Golden {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            envelope: std::fs::read(&path).unwrap(),
            json: std::fs::read(path.with_extension("json")).unwrap(),
        })
        .collect()
}

/// The files in this repository, and whether they are all.
fn goldens() -> (Vec<Golden>, bool) {
    match std::env::var_os("KUBESTRATA_K8S_API") {
        Some(module) => (folder(&Path::new(&module).join("testdata/HEAD")), true),
        None => (folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")), false),
    }
}

#[test]
fn protobuf_decodes_to_what_the_json_says() {
    let (goldens, all) = goldens();
    let mut differing = Vec::new();
    for golden in &goldens {
        let (message, options, bytes) = golden.open();
        let (value, lost): (Value, _) = proto::from_slice_lossy(bytes, message, &options).unwrap();
        assert!(!lost.is_partial(), "{}: {lost:?}", golden.name);
        let expected: Value = serde_json::from_slice(&golden.json).unwrap();
        if value != expected {
            differing.push(golden.name.as_str());
        }
    }
    assert_eq!(differing, [""; 0]);
    assert_eq!(goldens.len(), if all { 193 } else { 15 });
}
