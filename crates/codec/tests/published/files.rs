//! The published files: `GROUP.VERSION.KIND.pb`, `.json` and `.yaml`, in a folder for each release.
//!
//! Beside a file of an older release there may be `NAME.after_roundtrip.*`: what Go of the newer release makes of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kubestrata_codec::{envelope, proto, schema};
use serde_json::Value;

/// Names the folder of the Go module `k8s.io/api`.
const MODULE: &str = "KUBESTRATA_K8S_API";

/// One published object.
pub(crate) struct Golden {
    /// Release and file name, as in `HEAD/core.v1.Pod`.
    pub(crate) name: String,
    /// The object in its envelope.
    pub(crate) envelope: Vec<u8>,
    /// Its JSON text.
    pub(crate) json: Vec<u8>,
    /// Its YAML text.
    pub(crate) yaml: String,
    /// What Go makes of it, in protobuf and in JSON, if that is something else.
    after: (Option<Vec<u8>>, Option<Vec<u8>>),
}

impl Golden {
    /// Its message by the table, how to show it, and its bytes; none if the kind is gone from the table's release.
    pub(crate) fn open(&self) -> Option<(&'static schema::Message, proto::Options<'_>, &[u8])> {
        let outer = envelope::open(&self.envelope).unwrap();
        // The one object that does not name its kind.
        if self.name.ends_with("/core.v1.WatchEvent") {
            let message = schema::kind_of("v1", "WatchEvent").unwrap();
            return Some((message, proto::Options::default(), outer.message));
        }
        let message = schema::kind_of(outer.api_version, outer.kind)?;
        Some((message, proto::Options::of(outer.api_version, outer.kind), outer.message))
    }

    /// Group, version and kind as the file's name has them.
    pub(crate) fn kind(&self) -> &str {
        let name = self.name.split_once('/').map_or(&*self.name, |(_, name)| name);
        name.trim_end_matches(AFTER)
    }

    /// Whether Go of this release changes the object when it reads and writes it.
    pub(crate) fn is_changed_by_go(&self) -> bool {
        self.after.0.is_some()
    }

    /// The message that Go writes for the object.
    pub(crate) fn expected_message(&self) -> &[u8] {
        let body = self.after.0.as_deref().unwrap_or(&self.envelope);
        envelope::open(body).unwrap().message
    }

    /// The JSON that Go writes for the object, without white space.
    pub(crate) fn expected_json(&self) -> Vec<u8> {
        compact(self.after.1.as_deref().unwrap_or(&self.json))
    }

    /// The same as a value.
    pub(crate) fn expected_value(&self) -> Value {
        serde_json::from_slice(&self.expected_json()).unwrap()
    }
}

const AFTER: &str = ".after_roundtrip";

/// The files in this repository, or all of the Go module. The folders are in order, and so are the files.
pub(crate) fn goldens() -> (BTreeMap<String, Vec<Golden>>, bool) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let Some(module) = std::env::var_os(MODULE) else {
        return (BTreeMap::from([("own".to_owned(), folder(&own, "own"))]), false);
    };
    let testdata = Path::new(&module).join("testdata");
    let folders = std::fs::read_dir(testdata).unwrap().map(|entry| entry.unwrap().path());
    let found = folders.filter(|path| path.is_dir()).map(|path| {
        let release = path.file_name().unwrap().to_string_lossy().into_owned();
        (release.clone(), folder(&path, &release))
    });
    (found.collect(), true)
}

fn folder(path: &Path, release: &str) -> Vec<Golden> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pb"))
        .map(|path| path.with_extension(""))
        .collect();
    names.sort();
    names.into_iter().map(|path| golden(&path, release)).collect()
}

fn golden(path: &Path, release: &str) -> Golden {
    let read = |stem: &str, extension: &str| {
        std::fs::read(path.with_file_name(format!("{stem}.{extension}"))).ok()
    };
    let stem = path.file_name().unwrap().to_string_lossy().into_owned();
    let base = stem.trim_end_matches(AFTER);
    let after = format!("{base}{AFTER}");
    // Of what Go has changed, a file in one encoding may be missing: then that encoding has not changed.
    let text = |extension: &str| {
        read(&stem, extension)
            .or_else(|| read(base, extension))
            .unwrap_or_else(|| panic!("{release}/{stem}.{extension} is missing"))
    };
    let changed =
        if stem == base { (read(&after, "pb"), read(&after, "json")) } else { (None, None) };
    Golden {
        name: format!("{release}/{stem}"),
        envelope: text("pb"),
        json: text("json"),
        yaml: String::from_utf8(text("yaml")).unwrap(),
        after: changed,
    }
}

/// JSON without its white space.
pub(crate) fn compact(json: &[u8]) -> Vec<u8> {
    let (mut quoted, mut escaped) = (false, false);
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
