//! Zero and sparse objects of every kind, as the published Go encoders write them.
//!
//! The golden files are fully filled, so that they say nothing of what is absent. `schema/corpus` writes such
//! objects in both encodings; with `KUBESTRATA_CORPUS` set to its output, all must be converted both ways byte for byte.

use std::fs::File;
use std::io::{BufReader, Read};

use kubestrata_codec::{envelope, proto, schema, transcode};

/// The objects of a corpus, one after the other: it may be larger than memory.
struct Objects(BufReader<File>);

impl Objects {
    fn part(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut bytes).unwrap();
        Some(bytes)
    }
}

impl Iterator for Objects {
    /// Protobuf, JSON of it, and protobuf of that.
    type Item = [Vec<u8>; 3];

    fn next(&mut self) -> Option<Self::Item> {
        Some([self.part()?, self.part()?, self.part()?])
    }
}

/// What differs, by kind.
#[derive(Debug, Default, PartialEq, Eq)]
struct Differing {
    to_json: Vec<String>,
    to_protobuf: Vec<String>,
}

#[test]
fn both_directions_are_those_of_go() {
    let Some(path) = std::env::var_os("KUBESTRATA_CORPUS") else {
        return;
    };
    let mut differing = Differing::default();
    let (mut objects, mut refused) = (0, 0);
    for [body, expected, back] in Objects(BufReader::new(File::open(path).unwrap())) {
        objects += 1;
        let outer = envelope::open(&body).unwrap();
        let message = schema::kind_of(outer.api_version, outer.kind).unwrap();
        let options = proto::Options::of(outer.api_version, outer.kind);
        let name = || format!("{}/{}", outer.api_version, outer.kind);

        let mut text = Vec::new();
        match transcode::to_json(outer.message, message, &options, &mut text) {
            Ok(lost) if text == expected && !lost.is_partial() => {}
            Ok(_) => differing.to_json.push(format!("{}: {}", name(), around(&text, &expected))),
            Err(error) => differing.to_json.push(format!("{}: {error}", name())),
        }
        let mut bytes = Vec::new();
        let back = envelope::open(&back).map(|outer| outer.message).ok();
        match transcode::to_protobuf(&expected, message, &mut bytes) {
            Ok(notes) if back == Some(bytes.as_slice()) && notes.unknown.is_empty() => {}
            // Go refuses what it has written itself; that we take it harms nobody.
            Ok(_) if back.is_none() => refused += 1,
            Ok(notes) => differing.to_protobuf.push(format!("{}: {notes:?}", name())),
            Err(error) => differing.to_protobuf.push(format!("{}: {error}", name())),
        }
        differing.to_json.truncate(20);
        differing.to_protobuf.truncate(20);
    }
    assert!(objects > 0, "an empty corpus");
    println!("{objects} objects, {refused} of them with JSON that Go refuses");
    assert_eq!(differing, Differing::default(), "of {objects} objects");
}

/// Where two texts begin to differ.
fn around(left: &[u8], right: &[u8]) -> String {
    let at = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let part = |text: &[u8]| {
        String::from_utf8_lossy(
            &text[at.saturating_sub(40).min(text.len())..(at + 20).min(text.len())],
        )
        .into_owned()
    };
    format!("…{}… where Go has …{}…", part(left), part(right))
}
