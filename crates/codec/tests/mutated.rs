//! Damaged input of either encoding ends in a value or in an error with its place, never in a panic.
//!
//! The damage is drawn from a seed, so that a failure repeats.

#![expect(clippy::unwrap_used, reason = "a test: a failure is a panic")]

use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use kubestrata_codec::{envelope, proto, schema, transcode};
use serde_json::Value;

/// A generator of the xorshift family: enough to choose bytes.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).unwrap()
    }

    /// A copy of `bytes` with one to four injuries.
    fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.roll(4) {
            let at = self.roll(bytes.len());
            match self.roll(6) {
                0 => bytes.truncate(at),
                1 if !bytes.is_empty() => bytes[at] ^= 1 << self.roll(8),
                2 if !bytes.is_empty() => bytes[at] = [0, 0x7f, 0x80, 0xff][self.roll(4)],
                3 => bytes.insert(at, u8::try_from(self.roll(256)).unwrap()),
                4 => {
                    let end = (at + self.roll(64)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    // A piece of the message once more, somewhere else.
                    let end = (at + self.roll(256)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    let to = self.roll(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
        }
        bytes
    }
}

fn goldens() -> Vec<(Vec<u8>, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pb"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            (std::fs::read(path).unwrap(), std::fs::read(path.with_extension("json")).unwrap())
        })
        .collect()
}

fn check_place(error: &proto::Error, length: usize) {
    if let Some(offset) = error.offset() {
        assert!(offset <= length, "{error}");
    }
    if !matches!(error.problem(), proto::Problem::Type(_)) {
        assert!(error.offset().is_some() || !error.path().is_empty(), "{error} has no place");
    }
}

#[test]
fn damaged_protobuf_is_read_or_refused() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut read, mut refused) = (0, 0);
    for (body, _) in goldens() {
        let outer = envelope::open(&body).unwrap();
        let message = schema::kind_of(outer.api_version, outer.kind).unwrap();
        let options = proto::Options::of(outer.api_version, outer.kind);
        for _ in 0..400 {
            let bytes = dice.damaged(outer.message);
            let mut text = Vec::new();
            match transcode::to_json(&bytes, message, &options, &mut text) {
                Ok(_) => {
                    read += 1;
                    // What was written is JSON, and can be read back.
                    let _: &serde_json::value::RawValue = serde_json::from_slice(&text).unwrap();
                }
                Err(error) => {
                    refused += 1;
                    check_place(&error, bytes.len());
                }
            }
            let tree: Result<Value, _> = proto::from_slice(&bytes, message, &options);
            if let Err(error) = tree {
                check_place(&error, bytes.len());
            }
            if outer.kind == "Pod" {
                match proto::from_slice::<Pod>(&bytes, message, &options) {
                    // Whatever was understood can be written again.
                    Ok(pod) => drop(proto::to_vec(&pod, message).unwrap()),
                    Err(error) => check_place(&error, bytes.len()),
                }
            }
        }
    }
    assert!(read > 500 && refused > 500, "{read} read, {refused} refused");
}

#[test]
fn damaged_json_is_read_or_refused() {
    let mut dice = Dice(0xd1b5_4a32_d192_ed03);
    let (mut read, mut refused) = (0, 0);
    for (body, json) in goldens() {
        let outer = envelope::open(&body).unwrap();
        let message = schema::kind_of(outer.api_version, outer.kind).unwrap();
        let compact = serde_json::to_vec(&serde_json::from_slice::<Value>(&json).unwrap()).unwrap();
        for _ in 0..400 {
            let text = dice.damaged(&compact);
            let mut bytes = Vec::new();
            match transcode::to_protobuf(&text, message, &mut bytes) {
                Ok(_) => {
                    read += 1;
                    let options = proto::Options::default();
                    transcode::to_json(&bytes, message, &options, &mut Vec::new()).unwrap();
                }
                Err(error) => {
                    refused += 1;
                    check_place(&error, text.len());
                }
            }
        }
    }
    assert!(read > 100 && refused > 500, "{read} read, {refused} refused");
}

#[test]
fn a_small_message_does_not_claim_much_memory() {
    // Lengths and counts that promise more than there is.
    let pods = schema::kind("", "v1", "PodList").unwrap();
    for bytes in [
        &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..],
        &[0x12, 0xff, 0xff, 0xff, 0x7f],
        &[0xff; 64],
    ] {
        let error = proto::from_slice::<Value>(bytes, pods, &proto::Options::default());
        assert!(error.unwrap_err().offset().is_some());
    }
}
