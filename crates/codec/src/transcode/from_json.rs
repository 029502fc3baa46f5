//! JSON text to protobuf: serde_json reads, and its visitors drive the writer.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Notes, text};
use crate::proto::writer::{Target, Unknown, Writer};
use crate::proto::{DEPTH, Error, Problem};
use crate::schema::{Message, Type};

/// Writes a whole object.
pub(super) fn root<'a>(
    json: &'a [u8],
    message: &'static Message,
    out: &mut Vec<u8>,
) -> Result<Notes<'a>, Error> {
    let mut state = State {
        writer: Writer::new(Vec::with_capacity(json.len()), DEPTH, Unknown::Note),
        error: None,
        api_version: None,
        kind: None,
        raw: String::new(),
    };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let seed = Seed { state: &mut state, target: Target::Root(message), top: true };
    let result = seed.deserialize(&mut reader).and_then(|()| reader.end());
    if let Err(error) = result {
        let offset = offset(json, &error);
        // Our own errors pass through serde_json as an empty text.
        let own = state.error.unwrap_or_else(|| Error::new(Problem::Json));
        return Err(own.or_at(Some(offset)));
    }
    let State { writer, api_version, kind, .. } = state;
    let (bytes, notes) = writer.finish();
    // The usual case is an empty vector, which then takes the buffer as it is.
    if out.is_empty() {
        *out = bytes;
    } else {
        out.extend_from_slice(&bytes);
    }
    Ok(Notes { api_version, kind, unknown: notes.unknown, duplicate: notes.duplicate })
}

/// serde_json tells line and column.
fn offset(json: &[u8], error: &serde_json::Error) -> usize {
    let lines = json.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    (before + error.column()).min(json.len())
}

struct State<'a> {
    writer: Writer,
    /// The error that ended the reading, if it is ours.
    error: Option<Error>,
    api_version: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
    /// Reused for JSON in fields.
    raw: String,
}

/// Reads one value to its target.
struct Seed<'s, 'a> {
    state: &'s mut State<'a>,
    target: Target,
    /// The object itself, whose `apiVersion` and `kind` are for the caller.
    top: bool,
}

impl<'s, 'a> Seed<'s, 'a> {
    fn inner(state: &'s mut State<'a>, target: Target) -> Self {
        Self { state, target, top: false }
    }

    /// Keeps an error of ours, and gives serde_json one to carry.
    fn check<T, E: serde::de::Error>(&mut self, result: Result<T, Error>) -> Result<T, E> {
        result.map_err(|error| {
            self.state.error = Some(error);
            E::custom("")
        })
    }
}

impl<'de: 'a, 'a> DeserializeSeed<'de> for Seed<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        match self.target {
            Target::Ignored => serde::Deserialize::deserialize(deserializer).map(|IgnoredAny| ()),
            Target::Value { ty: Type::Json, .. } => {
                let raw: &RawValue = serde::Deserialize::deserialize(deserializer)?;
                if raw.get() == "null" {
                    let result = self.state.writer.put_null(self.target);
                    return self.check(result);
                }
                let mut compact = std::mem::take(&mut self.state.raw);
                compact.clear();
                text::spans(raw.get().as_bytes(), |span| {
                    compact.push_str(std::str::from_utf8(span).unwrap_or_default());
                });
                let result = self.state.writer.put_json(self.target, "JSON", &compact);
                self.state.raw = compact;
                self.check(result)
            }
            Target::Value { ty: Type::Double, .. } => {
                let raw: &RawValue = serde::Deserialize::deserialize(deserializer)?;
                // serde_json's own reading of a fraction may differ in the last place.
                let writer = &mut self.state.writer;
                let result = match raw.get().parse() {
                    // What is beyond all numbers reads as infinite, which JSON has no word for.
                    Ok(value) => writer.put_float(self.target, value),
                    Err(_) if raw.get() == "null" => writer.put_null(self.target),
                    Err(_) => Err(writer.mismatch("another value", self.target)),
                };
                self.check(result)
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Seed<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: serde::de::Error>(mut self) -> Result<(), E> {
        let result = self.state.writer.put_null(self.target);
        self.check(result)
    }

    fn visit_bool<E: serde::de::Error>(mut self, value: bool) -> Result<(), E> {
        let result = self.state.writer.put_bool(self.target, value);
        self.check(result)
    }

    fn visit_i64<E: serde::de::Error>(mut self, value: i64) -> Result<(), E> {
        let result = self.state.writer.put_integer(self.target, i128::from(value));
        self.check(result)
    }

    fn visit_u64<E: serde::de::Error>(mut self, value: u64) -> Result<(), E> {
        let result = self.state.writer.put_integer(self.target, i128::from(value));
        self.check(result)
    }

    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<(), E> {
        let result = self.state.writer.put_float(self.target, value);
        self.check(result)
    }

    fn visit_str<E: serde::de::Error>(mut self, value: &str) -> Result<(), E> {
        let result = self.state.writer.put_text(self.target, value);
        self.check(result)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let result = self.state.writer.open_map(self.target);
        self.check(result)?;
        while let Some(name) = map.next_key_seed(Name)? {
            if self.top && matches!(&*name, "apiVersion" | "kind") {
                let value: Option<Text<'de>> = map.next_value()?;
                let value = value.map(|Text(value)| value);
                if name == "kind" {
                    self.state.kind = value;
                } else {
                    self.state.api_version = value;
                }
                continue;
            }
            self.member(&name, &mut map)?;
        }
        self.state.writer.close();
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let result = self.state.writer.open_list(self.target);
        self.check(result)?;
        loop {
            let target = self.state.writer.element();
            let more = list.next_element_seed(Seed::inner(self.state, target))?.is_some();
            if !more {
                self.state.writer.undo();
                break;
            }
            self.state.writer.done();
        }
        self.state.writer.close();
        Ok(())
    }
}

impl<'a> Seed<'_, 'a> {
    fn member<'de: 'a, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let result = self.state.writer.field(name);
        let target = self.check(result)?;
        map.next_value_seed(Seed::inner(self.state, target))?;
        self.state.writer.done();
        Ok(())
    }
}

/// A string, borrowed where the text has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Name).map(Text)
    }
}

struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
