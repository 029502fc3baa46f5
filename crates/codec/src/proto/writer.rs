//! Puts the fields of messages, which come in any order, into the order and form of the Go encoders.
//!
//! Both ways to protobuf, from Rust values and from JSON text, drive this one writer. It knows nothing of serde.
//!
//! Values are written one after the other into one buffer, and each open message has a piece for each of its fields, in
//! the order of the wire. When a message ends, its pieces are copied into place, the zero values of what was not given
//! between them, behind the length. So each byte is copied twice for each level of nesting, nothing is sorted, and
//! nothing is allocated for a message.

mod arrange;
mod scalar;

use std::ops::Range;

use self::arrange::Piece;
use super::error::{Error, Problem, Step, path_text};
use super::{forms, put};
use crate::schema::{self, Message, Type};

/// How deep JSON may nest inside a message, as serde_json has it.
const JSON_DEPTH: u16 = 128;

/// How many notes are kept of unknown and of repeated fields: enough to tell a person.
const NOTES: usize = 32;

/// Room for the fields of the messages that are open at one time, and for those messages; both grow if needed.
const PIECES: usize = 128;
const OPENS: usize = 12;

/// Where a value goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// The object itself.
    Root(&'static Message),
    /// One entry. An element of a list or map is written even if it is null.
    Value { ty: Type, number: u32, element: bool },
    /// A repeated field.
    List(Type, u32),
    /// A map field.
    Map(Type, u32),
    /// JSON text.
    Json,
    /// The key of a map, which begins an entry as [`Writer::field`] does.
    Key,
    /// Nowhere.
    Ignored,
}

/// A message, list or map that is being written.
#[derive(Debug)]
struct Open {
    kind: Kind,
    close: Close,
    /// Where its contents start in the buffer.
    start: usize,
    /// Its first piece.
    first: usize,
    /// By place on the wire: a value of the field was written.
    seen: u64,
    /// A value has begun and not ended.
    busy: bool,
    /// The place on the wire of the current value's field; [`NOWHERE`] if the message has no such field.
    place: u8,
    /// Where the current value starts.
    value: usize,
    /// The key written last, and whether all came in order.
    key: Range<usize>,
    sorted: bool,
    count: usize,
}

/// No message has so many fields.
const NOWHERE: u8 = u8::MAX;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Message(&'static Message),
    Map(Type, u32),
    List(Type, u32),
    JsonMap,
    JsonList,
    Ignored,
}

/// What is left to do around a message, list or JSON text that ends. Payloads are places that [`put::open`] gave.
#[derive(Debug, Clone, Copy)]
enum Close {
    Nothing,
    /// A message is the entry of this number.
    Entry(u32),
    /// The list is all of this payload.
    List(usize),
    /// The JSON text is all of the inner payload.
    Json {
        inner: usize,
        outer: usize,
    },
    /// A schema is the entry of this number in a payload.
    Schema {
        inner: u32,
        outer: usize,
    },
}

/// What to do with a field that the schema lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Refuse,
    Note,
}

/// Paths of fields that were not written, or not as they stood.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) unknown: Vec<String>,
    pub(crate) duplicate: Vec<String>,
}

/// The writer of one object.
///
/// After an error it is of no further use.
#[derive(Debug)]
pub(crate) struct Writer {
    out: Vec<u8>,
    scratch: Vec<u8>,
    pieces: Vec<Piece>,
    /// Innermost last.
    opens: Vec<Open>,
    /// Where the value of the key goes that was written to [`Target::Key`].
    pub(crate) pending: Target,
    messages: u16,
    json: u16,
    depth: u16,
    unknown: Unknown,
    notes: Notes,
}

impl Writer {
    /// A writer into `out`, which should be empty.
    pub(crate) fn new(out: Vec<u8>, depth: u16, unknown: Unknown) -> Self {
        Self {
            scratch: Vec::with_capacity(out.capacity()),
            out,
            pieces: Vec::with_capacity(PIECES),
            opens: Vec::with_capacity(OPENS),
            pending: Target::Ignored,
            messages: 0,
            json: 0,
            depth,
            unknown,
            notes: Notes::default(),
        }
    }

    /// What was written, and what is to be said of it.
    pub(crate) fn finish(self) -> (Vec<u8>, Notes) {
        debug_assert!(self.opens.is_empty(), "what was opened was closed");
        (self.out, self.notes)
    }

    #[cold]
    pub(crate) fn error(&self, problem: Problem) -> Error {
        self.steps().rev().fold(Error::new(problem), Error::within)
    }

    /// The way to the current value.
    fn steps(&self) -> impl DoubleEndedIterator<Item = Step> {
        self.opens.iter().filter(|open| open.busy).filter_map(|open| match open.kind {
            Kind::Message(message) => message.by_place(open.place).map(|f| Step::Field(f.name())),
            Kind::List(..) | Kind::JsonList => Some(Step::Index(open.count)),
            Kind::Map(..) => {
                Some(Step::Key(forms::text(self.out.get(open.key.clone())?).into_owned()))
            }
            Kind::JsonMap | Kind::Ignored => None,
        })
    }

    /// The path of a field `name` of what is being written.
    #[cold]
    fn path_to(&self, name: &str) -> String {
        let steps: Vec<Step> = self.steps().collect();
        let path = path_text(steps.iter());
        if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
    }

    #[cold]
    pub(crate) fn mismatch(&self, what: &str, target: Target) -> Error {
        self.error(Problem::Type(format!("{what} where {} is expected", expected(target))))
    }
}

fn expected(target: Target) -> &'static str {
    match target {
        Target::Root(_) | Target::Map(..) => "an object",
        Target::List(..) => "a list",
        Target::Key => "a key",
        Target::Json | Target::Ignored => "JSON",
        Target::Value { ty, .. } => match ty {
            Type::Bool => "a boolean",
            Type::Int32 => "an integer of 32 bits",
            Type::Int64 => "an integer of 64 bits",
            Type::Double => "a number",
            Type::Text => "a string",
            Type::Bytes => "a base64 string",
            Type::Nested(_) => "an object",
            Type::List(_) => "a list",
            Type::Time | Type::MicroTime => "a time",
            Type::Quantity => "a quantity",
            Type::IntOrString => "an integer or a string",
            Type::Json => "JSON",
            Type::SchemaOrBool => "a schema or a boolean",
            Type::SchemaOrArray | Type::SchemaOrStrings => "a schema or a list",
        },
    }
}

// === begin and end ===

impl Writer {
    /// Begins an object.
    pub(crate) fn open_map(&mut self, target: Target) -> Result<(), Error> {
        let (kind, close) = match target {
            Target::Root(message) => (Kind::Message(message), Close::Nothing),
            Target::Map(ty, number) => (Kind::Map(ty, number), Close::Nothing),
            Target::Json => (Kind::JsonMap, Close::Nothing),
            Target::Ignored => (Kind::Ignored, Close::Nothing),
            Target::Value { ty: Type::Nested(index), number, .. } => {
                (Kind::Message(Message::at(index)), Close::Entry(number))
            }
            Target::Value { ty: Type::Json, number, .. } => (Kind::JsonMap, self.open_json(number)),
            Target::Value {
                ty: ty @ (Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings),
                number,
                ..
            } => {
                let outer = put::open(&mut self.out, number);
                let mut inner = 1;
                if ty == Type::SchemaOrBool {
                    // With a schema, Go sets the boolean too.
                    put::number(&mut self.out, 1, 1);
                    inner = 2;
                }
                (Kind::Message(schema::json_schema()), Close::Schema { inner, outer })
            }
            Target::Value { .. } | Target::List(..) | Target::Key => {
                return Err(self.mismatch("an object", target));
            }
        };
        self.enter(kind)?;
        self.push(kind, close);
        match kind {
            Kind::Message(message) => {
                let pieces = self.pieces.len() + message.places();
                self.pieces.resize(pieces, Piece::ABSENT);
            }
            Kind::JsonMap => self.out.push(b'{'),
            _ => {}
        }
        Ok(())
    }

    /// Begins a list.
    pub(crate) fn open_list(&mut self, target: Target) -> Result<(), Error> {
        let (kind, close) = match target {
            Target::List(ty, number) => (Kind::List(ty, number), Close::Nothing),
            Target::Json => (Kind::JsonList, Close::Nothing),
            Target::Ignored => (Kind::Ignored, Close::Nothing),
            Target::Value { ty: Type::Json, number, .. } => {
                (Kind::JsonList, self.open_json(number))
            }
            Target::Value { ty: Type::SchemaOrArray, number, .. } => {
                (Kind::List(Type::SCHEMA, 2), Close::List(put::open(&mut self.out, number)))
            }
            Target::Value { ty: Type::SchemaOrStrings, number, .. } => {
                (Kind::List(Type::Text, 2), Close::List(put::open(&mut self.out, number)))
            }
            Target::Value { ty: ty @ Type::List(_), number, .. } => {
                let element = ty.message().and_then(|message| message.fields().first());
                let element = element.map_or(Type::Text, schema::Field::ty);
                (Kind::List(element, 1), Close::List(put::open(&mut self.out, number)))
            }
            _ => return Err(self.mismatch("a list", target)),
        };
        self.enter(kind)?;
        self.push(kind, close);
        if matches!(kind, Kind::JsonList) {
            self.out.push(b'[');
        }
        Ok(())
    }

    fn open_json(&mut self, number: u32) -> Close {
        let outer = put::open(&mut self.out, number);
        Close::Json { inner: put::open(&mut self.out, 1), outer }
    }

    fn enter(&mut self, kind: Kind) -> Result<(), Error> {
        let (depth, limit) = match kind {
            Kind::Message(_) => (&mut self.messages, self.depth),
            Kind::JsonMap | Kind::JsonList | Kind::Ignored => (&mut self.json, JSON_DEPTH),
            Kind::Map(..) | Kind::List(..) => return Ok(()),
        };
        *depth += 1;
        if *depth > limit { Err(self.error(Problem::Depth)) } else { Ok(()) }
    }

    fn push(&mut self, kind: Kind, close: Close) {
        let start = self.out.len();
        self.opens.push(Open {
            kind,
            close,
            start,
            first: self.pieces.len(),
            seen: 0,
            busy: false,
            place: NOWHERE,
            value: start,
            key: 0..0,
            sorted: true,
            count: 0,
        });
    }

    /// Ends what was opened last.
    pub(crate) fn close(&mut self) {
        let Some(open) = self.opens.pop() else { return };
        match open.kind {
            Kind::Message(message) => {
                self.messages -= 1;
                self.arrange(message, &open);
            }
            Kind::Map(ty, _) if !open.sorted => self.sort(ty, &open),
            Kind::JsonMap => {
                self.json -= 1;
                self.out.push(b'}');
            }
            Kind::JsonList => {
                self.json -= 1;
                self.out.push(b']');
            }
            Kind::Ignored => self.json -= 1,
            Kind::Map(..) | Kind::List(..) => {}
        }
        match open.close {
            // `arrange` has put the head before a message.
            Close::Nothing | Close::Entry(_) => {}
            Close::List(payload) | Close::Schema { outer: payload, .. } => {
                put::close(&mut self.out, payload);
            }
            Close::Json { inner, outer } => {
                put::close(&mut self.out, inner);
                put::close(&mut self.out, outer);
            }
        }
    }
}

// === members ===

impl Writer {
    /// Begins the value of a key, and tells where it goes; [`Writer::done`] must follow.
    pub(crate) fn field(&mut self, name: &str) -> Result<Target, Error> {
        let Some(open) = self.opens.last_mut() else { return Ok(Target::Ignored) };
        let target = match open.kind {
            Kind::Message(message) => {
                let Some((field, place)) = message.find(name) else {
                    self.unknown(message, name)?;
                    return Ok(Target::Ignored);
                };
                open.place = place;
                open.value = self.out.len();
                let (ty, number) = (field.ty(), field.number());
                if field.is_map() {
                    Target::Map(ty, number)
                } else if field.is_repeated() {
                    Target::List(ty, number)
                } else {
                    Target::Value { ty, number, element: false }
                }
            }
            Kind::Map(ty, number) => {
                open.value = put::open(&mut self.out, number);
                put::bytes(&mut self.out, 1, name.as_bytes());
                let key = self.out.len() - name.len()..self.out.len();
                if open.count > 0 && self.out[open.key.clone()] >= self.out[key.clone()] {
                    open.sorted = false;
                }
                open.key = key;
                Target::Value { ty, number: 2, element: true }
            }
            Kind::JsonMap => {
                if open.count > 0 {
                    self.out.push(b',');
                }
                scalar::json_text(&mut self.out, name);
                self.out.push(b':');
                Target::Json
            }
            Kind::List(..) | Kind::JsonList | Kind::Ignored => Target::Ignored,
        };
        open.busy = true;
        Ok(target)
    }

    /// A field that the message lacks: its value is passed over.
    #[cold]
    fn unknown(&mut self, message: &Message, name: &str) -> Result<(), Error> {
        let is_type = message.is_kind() && matches!(name, "apiVersion" | "kind");
        if !is_type {
            match self.unknown {
                Unknown::Refuse => {
                    let problem = Problem::UnknownField(name.to_owned());
                    return Err(self.error(problem));
                }
                Unknown::Note if self.notes.unknown.len() < NOTES => {
                    let path = self.path_to(name);
                    self.notes.unknown.push(path);
                }
                Unknown::Note => {}
            }
        }
        if let Some(open) = self.opens.last_mut() {
            open.place = NOWHERE;
            open.busy = true;
        }
        Ok(())
    }

    /// Begins the next element of a list, and tells where it goes; [`Writer::done`] must follow.
    pub(crate) fn element(&mut self) -> Target {
        let Some(open) = self.opens.last_mut() else { return Target::Ignored };
        open.busy = true;
        match open.kind {
            Kind::List(ty, number) => Target::Value { ty, number, element: true },
            Kind::JsonList => {
                if open.count > 0 {
                    self.out.push(b',');
                }
                Target::Json
            }
            _ => Target::Ignored,
        }
    }

    /// Takes back [`Writer::element`] at the end of a list whose length was not known.
    ///
    /// JSON text inside a field is not read element by element, so no comma has been written.
    pub(crate) fn undo(&mut self) {
        if let Some(open) = self.opens.last_mut() {
            open.busy = false;
        }
    }

    /// Ends a value that [`Writer::field`] or [`Writer::element`] began.
    pub(crate) fn done(&mut self) {
        let Some(open) = self.opens.last_mut() else { return };
        open.busy = false;
        open.count += 1;
        match open.kind {
            Kind::Message(message) if open.place != NOWHERE => {
                let bit = 1_u64 << open.place;
                // As in Go, the last one counts.
                self.pieces[open.first + usize::from(open.place)] =
                    Piece { start: open.value, end: self.out.len() };
                if open.seen & bit != 0 {
                    let place = open.place;
                    self.duplicate(message, place);
                } else {
                    open.seen |= bit;
                }
            }
            Kind::Map(..) => {
                let moved = put::close(&mut self.out, open.value);
                open.key = open.key.start + moved..open.key.end + moved;
            }
            _ => {}
        }
    }

    #[cold]
    fn duplicate(&mut self, message: &Message, place: u8) {
        if self.notes.duplicate.len() < NOTES
            && let Some(field) = message.by_place(place)
        {
            let path = self.path_to(field.name());
            self.notes.duplicate.push(path);
        }
    }
}
