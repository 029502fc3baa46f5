//! Zero and sparse objects of every kind, as the published Go encoders write them.
//!
//! The golden files are fully filled, so that they say nothing of what is absent. `schema/corpus` writes such
//! objects in both encodings; with `KUBESTRATA_CORPUS` set to its output, all must be converted both ways byte for byte.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};

use kubestrata_codec::{envelope, proto, schema, transcode};
use serde_json::Value;

use crate::tally::{Tally, text, value};
use crate::typed::{self, Typed};

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

/// Objects of the corpus that `cargo xtask test --real` makes.
const THREE_FILLS: usize = 2_728;
/// Those of them whose kind has a type.
const TYPED: usize = 436;

/// Why an object does not come out of its type byte for byte: a null, or nothing, that the type has no place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// An object that the type requires becomes one of nothing but empty strings.
    Object,
    /// A list that the type requires becomes an empty one.
    List,
    /// Bytes that the type requires become empty ones.
    Bytes,
    /// An optional time that is there, and zero, becomes none.
    ZeroTime,
    /// A time that the type requires is null: the type refuses the object.
    NullTime,
    /// Bytes in a map are nil in Go, which writes the key alone. The type has empty ones, and so has the JSON of both.
    NilInMap,
}

/// How many objects of three fills each cause has.
const CAUSES: [(Cause, usize); 6] = [
    (Cause::Object, 14),
    (Cause::List, 1),
    (Cause::Bytes, 11),
    (Cause::ZeroTime, 11),
    (Cause::NullTime, 3),
    (Cause::NilInMap, 1),
];

/// Field 2 of a map's entry, of no length.
const EMPTY_VALUE: &[u8] = b"\x12\x00";
const NULL_TIME: &str = "null where a timestamp string is expected";
const SAME_VALUE: &str = "the same value, with an empty one in a map";

impl Cause {
    /// The cause of a difference; none that is known is a mistake of ours.
    fn of(difference: &str) -> Option<Self> {
        let (place, values) = difference.rsplit_once(": ").unwrap_or(("", difference));
        let is_time = ["time", "Time", "Timestamp", "notAfter", "notBefore"];
        let is_time = is_time.iter().any(|name| place.ends_with(name));
        let is_empty = |text: &str| match serde_json::from_str(text) {
            Ok(Value::Object(members)) => members.values().all(|member| member == ""),
            _ => false,
        };
        match values.split_once(" where Go has ") {
            Some((object, "null" | r#""nothing""#)) if is_empty(object) => Some(Self::Object),
            Some(("[]", "null")) => Some(Self::List),
            Some((r#""""#, "null")) => Some(Self::Bytes),
            Some((r#""nothing""#, "null")) if is_time => Some(Self::ZeroTime),
            _ if difference.starts_with(NULL_TIME) => Some(Self::NullTime),
            _ if difference == SAME_VALUE => Some(Self::NilInMap),
            _ => None,
        }
    }
}

#[test]
fn all_directions_are_those_of_go() {
    let Some(path) = std::env::var_os("KUBESTRATA_CORPUS") else {
        return;
    };
    let (mut to_json, mut to_value, mut to_protobuf) =
        (Tally::default(), Tally::default(), Tally::default());
    let (mut causes, mut unknown) = (BTreeMap::<Cause, Vec<String>>::new(), Vec::new());
    let (mut objects, mut refused, mut through) = (0, 0, 0);
    for [body, expected, back] in Objects(BufReader::new(File::open(path).unwrap())) {
        objects += 1;
        let outer = envelope::open(&body).unwrap();
        let message = schema::kind_of(outer.api_version, outer.kind).unwrap();
        let options = proto::Options::of(outer.api_version, outer.kind);
        let name = format!("{}/{} {objects}", outer.api_version, outer.kind);

        let mut json = Vec::new();
        to_json.add(
            &name,
            match transcode::to_json(outer.message, message, &options, &mut json) {
                Ok(lost) if lost.is_partial() => Some(format!("{lost:?}")),
                Ok(_) => text(&json, &expected),
                Err(error) => Some(error.to_string()),
            },
        );
        let decoded = proto::from_slice::<Value>(outer.message, message, &options);
        to_value.add(
            &name,
            match decoded {
                Ok(decoded) => same(&decoded, &serde_json::from_slice(&expected).unwrap()),
                Err(error) => Some(error.to_string()),
            },
        );
        let mut bytes = Vec::new();
        let back = envelope::open(&back).map(|outer| outer.message).ok();
        let stored = transcode::to_protobuf(&expected, message, &mut bytes);
        to_protobuf.add(
            &name,
            match (stored, back) {
                (Ok(notes), _) if !notes.unknown.is_empty() => Some(format!("{notes:?}")),
                (Ok(_), Some(back)) => text(&bytes, back),
                // Go refuses what it has written itself; that we take it harms nobody.
                (Ok(_), None) => {
                    refused += 1;
                    None
                }
                (Err(error), _) => Some(error.to_string()),
            },
        );
        if let Some(kind) = typed::of(outer.api_version, outer.kind) {
            through += 1;
            if let Some(difference) = through_type(kind, outer.message, message, &options) {
                match Cause::of(&difference) {
                    Some(cause) => causes.entry(cause).or_default().push(difference),
                    None => unknown.push(format!("{name}: {difference}")),
                }
            }
        }
    }
    println!("{objects} objects, {refused} of them with JSON that Go refuses");
    println!("{through} through types, of which not the same: {causes:#?}");
    assert!(objects > 0, "an empty corpus");
    assert_eq!(unknown, [""; 0], "of no cause that docs/codec.md names");
    if objects == THREE_FILLS {
        assert_eq!(through, TYPED);
        let counts = causes.into_iter().map(|(cause, found)| (cause, found.len()));
        assert_eq!(counts.collect::<Vec<_>>(), CAUSES);
    }
    to_json.assert("protobuf to JSON text", objects, &[]);
    to_value.assert("protobuf to a value", objects, &[]);
    to_protobuf.assert("JSON to protobuf", objects, &[]);
}

/// Through the Rust type. Gives what kind of difference there is; the place is another for each object.
fn through_type(
    kind: &Typed,
    bytes: &[u8],
    message: &'static schema::Message,
    options: &proto::Options<'_>,
) -> Option<String> {
    match (kind.through)(bytes, message, options) {
        Err(error) => Some(format!("{error} of {}", kind.kind)),
        Ok((_, lost)) if lost.is_partial() => Some(format!("{}: {lost:?}", kind.kind)),
        Ok((again, _)) if again == bytes => None,
        Ok((again, _)) => match value(&show(&again, message), &show(bytes, message)) {
            // Both texts part where Go's entry ends and ours has an empty value.
            None if again.len() == bytes.len() + EMPTY_VALUE.len()
                && again.windows(2).filter(|pair| *pair == EMPTY_VALUE).count()
                    > bytes.windows(2).filter(|pair| *pair == EMPTY_VALUE).count() =>
            {
                Some(SAME_VALUE.to_owned())
            }
            None => text(&again, bytes),
            Some(difference) => Some(format!("{}{difference}", kind.kind)),
        },
    }
}

/// The message as JSON.
fn show(bytes: &[u8], message: &'static schema::Message) -> Value {
    let mut shown = Vec::new();
    transcode::to_json(bytes, message, &proto::Options::default(), &mut shown).unwrap();
    serde_json::from_slice(&shown).unwrap()
}

/// The first place where two values differ, apart from nulls, and from the last place of floating point: serde_json does not
/// read each to the nearest.
fn same(left: &Value, right: &Value) -> Option<String> {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names = left.keys().chain(right.keys());
            names.find_map(|name| {
                let of = |members: &serde_json::Map<String, Value>| {
                    members.get(name).cloned().unwrap_or_default()
                };
                same(&of(left), &of(right)).map(|found| format!(".{name}{found}"))
            })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            left.iter().zip(right).find_map(|pair| same(pair.0, pair.1))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            ((one - other).abs() > one.abs() * 4.0 * f64::EPSILON)
                .then(|| format!(": {one} where Go has {other}"))
        }
        _ => value(left, right),
    }
}
