//! The published golden files of `k8s.io/api`: one object of each kind, every field filled, in both encodings.
//!
//! A few always run from `tests/golden`. With `KUBESTRATA_K8S_API` set to the folder of the Go module `k8s.io/api`
//! (of the release that the table was made from), all do.

#![expect(clippy::unwrap_used, reason = "a test: a failure is a panic")]

use std::path::{Path, PathBuf};

use k8s_openapi::Resource;
use k8s_openapi::api::{apps, coordination, core, discovery, resource};
use kubestrata_codec::{envelope, proto, schema, transcode};
use serde::Serialize;
use serde::de::DeserializeOwned;
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

/// JSON without its white space.
fn compact(json: &[u8]) -> Vec<u8> {
    let mut quoted = false;
    let mut escaped = false;
    let mut out = Vec::with_capacity(json.len());
    for byte in json {
        if quoted {
            quoted = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            quoted = *byte == b'"';
        }
        out.push(*byte);
    }
    out
}

#[test]
fn protobuf_becomes_the_json_text_of_go() {
    let mut differing = Vec::new();
    let (goldens, _) = goldens();
    for golden in &goldens {
        let (message, options, bytes) = golden.open();
        let mut text = Vec::new();
        let lost = transcode::to_json(bytes, message, &options, &mut text).unwrap();
        assert!(!lost.is_partial(), "{}: {lost:?}", golden.name);
        if text != compact(&golden.json) {
            differing.push(golden.name.as_str());
        }
    }
    assert_eq!(differing, [""; 0]);
}

#[test]
fn json_becomes_the_protobuf_of_go() {
    let mut differing = Vec::new();
    let (goldens, _) = goldens();
    for golden in &goldens {
        let (message, options, expected) = golden.open();
        let mut bytes = Vec::new();
        let notes = transcode::to_protobuf(&golden.json, message, &mut bytes).unwrap();
        assert_eq!((notes.unknown.len(), notes.duplicate.len()), (0, 0), "{}", golden.name);
        assert_eq!(notes.kind.as_deref(), options.kind);
        if bytes != expected {
            differing.push(golden.name.as_str());
        }
    }
    assert_eq!(differing, [""; 0]);
}

/// Through the type `K` and back, byte for byte.
fn round_trip<K: DeserializeOwned + Serialize + Resource>(goldens: &[Golden]) {
    let group = if K::GROUP.is_empty() { "core" } else { K::GROUP };
    let name = format!("{group}.{}.{}", K::VERSION, K::KIND);
    let golden = goldens.iter().find(|golden| golden.name == name).expect("a golden file");
    let (message, options, bytes) = golden.open();
    let (value, lost): (K, _) = proto::from_slice_lossy(bytes, message, &options).unwrap();
    assert!(!lost.is_partial(), "{name}: {lost:?}");
    assert_eq!(
        serde_json::to_value(&value).unwrap(),
        serde_json::to_value(serde_json::from_slice::<K>(&golden.json).unwrap()).unwrap(),
        "{name}"
    );
    let again = proto::to_vec(&value, message).unwrap();
    assert!(again == bytes, "{name}");
}

#[test]
fn rust_types_lose_nothing_on_the_way() {
    let (goldens, _) = goldens();
    round_trip::<core::v1::Pod>(&goldens);
    round_trip::<core::v1::ConfigMap>(&goldens);
    round_trip::<core::v1::Secret>(&goldens);
    round_trip::<core::v1::Service>(&goldens);
    round_trip::<core::v1::Node>(&goldens);
    round_trip::<core::v1::Event>(&goldens);
    round_trip::<apps::v1::Deployment>(&goldens);
    round_trip::<apps::v1::ReplicaSet>(&goldens);
    round_trip::<discovery::v1::EndpointSlice>(&goldens);
    round_trip::<coordination::v1::Lease>(&goldens);
    round_trip::<resource::v1::ResourceSlice>(&goldens);
}
