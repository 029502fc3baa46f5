//! Puts the fields of messages, which come in any order, into the order and form of the Go encoders.
//!
//! Both ways to protobuf, from Rust values and from JSON text, drive this one writer. It knows nothing of serde.
//!
//! Values are written one after the other into one buffer, and each message remembers which piece is which field. When a
//! message ends, its pieces are copied into place, the zero values of what was not given between them, and the length is
//! put in front. So each byte is copied twice for each level of nesting, and nothing is allocated for a message.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::{Error, Problem, Step, path_text};
use super::forms::{self, ZERO_TIME};
use super::value::map_entry;
use super::{put, quantity, wire};
use crate::schema::{self, Message, Type};

/// How deep JSON may nest inside a message, as serde_json has it.
const JSON_DEPTH: u16 = 128;

/// How many notes are kept of unknown and of repeated fields: enough to tell a person.
const NOTES: usize = 32;

/// Room for the fields of the messages that are open at one time, and for the way to the innermost; both grow if needed.
const PIECES: usize = 64;
const PLACES: usize = 16;

/// Room for the zero values of a message.
const ZEROS: usize = 128;

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
    /// The key of a map.
    Key,
    /// Nowhere.
    Ignored,
}

/// A message, list or map that is being written.
#[derive(Debug)]
pub(crate) struct Open {
    kind: Kind,
    /// Where it starts in the buffer.
    start: usize,
    /// Its first piece.
    first: usize,
    hint: usize,
    /// By position in the message: a value of the field, or of one inlined in it, was written.
    seen: u64,
    /// The position of the current value's field.
    position: u8,
    close: Close,
    /// Where the current value starts, and the numbers of its field.
    value: usize,
    order: [u8; 3],
    /// The key written last, and whether all came in order.
    key: Range<usize>,
    sorted: bool,
    count: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Message(&'static Message),
    Map(Type, u32),
    List(Type, u32),
    JsonMap,
    JsonList,
    Ignored,
}

/// What is put around a message, list or JSON text that ends.
#[derive(Debug, Clone, Copy)]
enum Close {
    Nothing,
    /// The head of an entry.
    Entry(u32),
    /// The head of field 1, and that of an entry around it.
    Json(u32),
    /// The head of a schema in one field of a message, and that of the message, which starts at the place given.
    Schema {
        inner: u32,
        start: usize,
        outer: u32,
    },
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    order: [u8; 3],
    start: usize,
    end: usize,
}

#[derive(Debug, Clone)]
enum Place {
    Field(&'static str),
    Index(usize),
    Key(Range<usize>),
    Unnamed,
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
#[derive(Debug)]
pub(crate) struct Writer {
    out: Vec<u8>,
    scratch: Vec<u8>,
    pieces: Vec<Piece>,
    place: Vec<Place>,
    /// The text of the key that was written to [`Target::Key`].
    pub(crate) key: String,
    messages: u16,
    json: u16,
    depth: u16,
    unknown: Unknown,
    pub(crate) notes: Notes,
}

impl Writer {
    /// A writer into `out`, which should be empty.
    pub(crate) fn new(out: Vec<u8>, depth: u16, unknown: Unknown) -> Self {
        Self {
            out,
            scratch: Vec::new(),
            pieces: Vec::with_capacity(PIECES),
            place: Vec::with_capacity(PLACES),
            key: String::new(),
            messages: 0,
            json: 0,
            depth,
            unknown,
            notes: Notes::default(),
        }
    }

    /// What was written, and what is to be said of it.
    pub(crate) fn finish(self) -> (Vec<u8>, Notes) {
        (self.out, self.notes)
    }

    #[cold]
    pub(crate) fn error(&self, problem: Problem) -> Error {
        self.steps().rev().fold(Error::new(problem), Error::within)
    }

    fn steps(&self) -> impl DoubleEndedIterator<Item = Step> {
        self.place.iter().filter_map(|place| match place {
            Place::Field(name) => Some(Step::Field(name)),
            Place::Index(index) => Some(Step::Index(*index)),
            Place::Key(range) => {
                Some(Step::Key(forms::text(self.out.get(range.clone())?).into_owned()))
            }
            Place::Unnamed => None,
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

// === compound values ===

impl Writer {
    fn opened(&self, kind: Kind, start: usize, close: Close) -> Open {
        Open {
            kind,
            start,
            first: self.pieces.len(),
            hint: 0,
            seen: 0,
            position: 0,
            close,
            value: start,
            order: [0; 3],
            key: 0..0,
            sorted: true,
            count: 0,
        }
    }

    /// Begins an object.
    pub(crate) fn open_map(&mut self, target: Target) -> Result<Open, Error> {
        let start = self.out.len();
        let (kind, start, close) = match target {
            Target::Root(message) => (Kind::Message(message), start, Close::Nothing),
            Target::Map(ty, number) => (Kind::Map(ty, number), start, Close::Nothing),
            Target::Json => (Kind::JsonMap, start, Close::Nothing),
            Target::Ignored => (Kind::Ignored, start, Close::Nothing),
            Target::Value { ty, number, .. } => match ty {
                Type::Json => (Kind::JsonMap, start, Close::Json(number)),
                Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings => {
                    let mut inner = 1;
                    if ty == Type::SchemaOrBool {
                        // With a schema, Go sets the boolean too.
                        put::number(&mut self.out, 1, 1);
                        inner = 2;
                    }
                    let close = Close::Schema { inner, start, outer: number };
                    (Kind::Message(schema::json_schema()), self.out.len(), close)
                }
                _ => match ty.message() {
                    Some(message) if matches!(ty, Type::Nested(_)) => {
                        (Kind::Message(message), start, Close::Entry(number))
                    }
                    _ => return Err(self.mismatch("an object", target)),
                },
            },
            Target::List(..) | Target::Key => return Err(self.mismatch("an object", target)),
        };
        self.enter(kind)?;
        if matches!(kind, Kind::JsonMap) {
            self.out.push(b'{');
        }
        Ok(self.opened(kind, start, close))
    }

    /// Begins a list.
    pub(crate) fn open_list(&mut self, target: Target) -> Result<Open, Error> {
        let start = self.out.len();
        let (kind, close) = match target {
            Target::List(ty, number) => (Kind::List(ty, number), Close::Nothing),
            Target::Json => (Kind::JsonList, Close::Nothing),
            Target::Ignored => (Kind::Ignored, Close::Nothing),
            Target::Value { ty: Type::Json, number, .. } => (Kind::JsonList, Close::Json(number)),
            Target::Value { ty: Type::SchemaOrArray, number, .. } => {
                (Kind::List(Type::SCHEMA, 2), Close::Entry(number))
            }
            Target::Value { ty: Type::SchemaOrStrings, number, .. } => {
                (Kind::List(Type::Text, 2), Close::Entry(number))
            }
            Target::Value { ty: ty @ Type::List(_), number, .. } => {
                let element = ty.message().and_then(|message| message.fields().first());
                let element = element.map_or(Type::Text, schema::Field::ty);
                (Kind::List(element, 1), Close::Entry(number))
            }
            _ => return Err(self.mismatch("a list", target)),
        };
        self.enter(kind)?;
        if matches!(kind, Kind::JsonList) {
            self.out.push(b'[');
        }
        Ok(self.opened(kind, start, close))
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

    /// Begins the value of a key, and tells where it goes; [`Writer::done`] must follow.
    pub(crate) fn field(&mut self, open: &mut Open, name: &str) -> Result<Target, Error> {
        let value = self.out.len();
        let (place, target) = match open.kind {
            Kind::Message(message) => {
                let Some(path) = message.path_of(name, &mut open.hint) else {
                    self.unknown(message, name)?;
                    open.order = [0; 3];
                    self.place.push(Place::Unnamed);
                    return Ok(Target::Ignored);
                };
                let field = message.follow(path);
                open.order = message.numbers(path);
                open.position = path[0] - 1;
                let (ty, number) = (field.ty(), field.number());
                let target = if field.is_map() {
                    Target::Map(ty, number)
                } else if field.is_repeated() {
                    Target::List(ty, number)
                } else {
                    Target::Value { ty, number, element: false }
                };
                (Place::Field(field.name()), target)
            }
            Kind::Map(ty, _) => {
                put::bytes(&mut self.out, 1, name.as_bytes());
                let key = self.out.len() - name.len()..self.out.len();
                open.order = [1, 0, 0];
                (Place::Key(key), Target::Value { ty, number: 2, element: true })
            }
            Kind::JsonMap => {
                if open.count > 0 {
                    self.out.push(b',');
                }
                self.json_text(name);
                self.out.push(b':');
                (Place::Unnamed, Target::Json)
            }
            Kind::List(..) | Kind::JsonList | Kind::Ignored => (Place::Unnamed, Target::Ignored),
        };
        open.value = value;
        self.place.push(place);
        Ok(target)
    }

    #[cold]
    fn unknown(&mut self, message: &Message, name: &str) -> Result<(), Error> {
        if message.is_kind() && matches!(name, "apiVersion" | "kind") {
            return Ok(());
        }
        match self.unknown {
            Unknown::Refuse => {
                let problem = Problem::UnknownField(name.to_owned());
                Err(self.error(problem))
            }
            Unknown::Note => {
                if self.notes.unknown.len() < NOTES {
                    let path = self.path_to(name);
                    self.notes.unknown.push(path);
                }
                Ok(())
            }
        }
    }

    /// Begins the next element of a list, and tells where it goes; [`Writer::done`] must follow.
    pub(crate) fn element(&mut self, open: &mut Open) -> Target {
        self.place.push(Place::Index(open.count));
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
        self.place.pop();
    }

    /// Ends a value that [`Writer::field`] or [`Writer::element`] began.
    pub(crate) fn done(&mut self, open: &mut Open) {
        let place = self.place.pop();
        open.count += 1;
        match (open.kind, place) {
            (Kind::Message(_), Some(Place::Field(name))) => {
                let (start, end) = (open.value, self.out.len());
                let piece = Piece { order: open.order, start, end };
                let bit = 1_u64 << open.position;
                if open.seen & bit != 0 {
                    self.further(open.first, piece, name);
                } else {
                    self.pieces.push(piece);
                }
                open.seen |= bit;
            }
            (Kind::Map(_, number), Some(Place::Key(key))) => {
                let head = put::wrap(&mut self.out, open.value, number);
                let key = key.start + head..key.end + head;
                if open.count > 1 && self.out[open.key.clone()] >= self.out[key.clone()] {
                    open.sorted = false;
                }
                open.key = key;
                self.pieces.push(Piece { order: [0; 3], start: open.value, end: self.out.len() });
            }
            _ => {}
        }
    }

    /// A piece of a field, or of an inlined message, that has one already.
    fn further(&mut self, first: usize, piece: Piece, name: &str) {
        match self.pieces[first..].iter_mut().find(|earlier| earlier.order == piece.order) {
            Some(earlier) => {
                // As in Go, the last one counts.
                *earlier = piece;
                self.duplicate(name);
            }
            None => self.pieces.push(piece),
        }
    }

    #[cold]
    fn duplicate(&mut self, name: &str) {
        if self.notes.duplicate.len() < NOTES {
            let path = self.path_to(name);
            self.notes.duplicate.push(path);
        }
    }

    /// Ends an object or a list.
    pub(crate) fn close(&mut self, open: Open) {
        match open.kind {
            Kind::Message(message) => {
                self.messages -= 1;
                self.arrange(message, &open);
            }
            Kind::Map(ty, _) => {
                if !open.sorted {
                    self.sort(ty, &open);
                }
                self.pieces.truncate(open.first);
            }
            Kind::JsonMap => {
                self.json -= 1;
                self.out.push(b'}');
            }
            Kind::JsonList => {
                self.json -= 1;
                self.out.push(b']');
            }
            Kind::Ignored => self.json -= 1,
            Kind::List(..) => {}
        }
        match open.close {
            Close::Nothing => {}
            Close::Entry(number) => {
                // `arrange` has put the head before a message.
                if !matches!(open.kind, Kind::Message(_)) {
                    put::wrap(&mut self.out, open.start, number);
                }
            }
            Close::Json(number) => {
                put::wrap(&mut self.out, open.start, 1);
                put::wrap(&mut self.out, open.start, number);
            }
            Close::Schema { inner, start, outer } => {
                put::wrap(&mut self.out, open.start, inner);
                put::wrap(&mut self.out, start, outer);
            }
        }
    }

    /// Puts the pieces of a message into the order of the wire.
    fn arrange(&mut self, message: &Message, open: &Open) {
        let pieces = &mut self.pieces[open.first..];
        pieces.sort_unstable_by_key(|piece| piece.order);
        self.scratch.clear();
        self.scratch.reserve(self.out.len() - open.start + ZEROS);
        emit(message, pieces, 0, &self.out, &mut self.scratch);
        self.pieces.truncate(open.first);
        self.out.truncate(open.start);
        match open.close {
            Close::Entry(number) => put::bytes(&mut self.out, number, &self.scratch),
            _ => self.out.extend_from_slice(&self.scratch),
        }
    }

    /// Puts the entries of a map into the order of their keys, the last of each key alone.
    #[cold]
    fn sort(&mut self, ty: Type, open: &Open) {
        let out = &self.out;
        let key = |piece: &Piece| {
            let mut entry = &out[piece.start..piece.end];
            let found = wire::entry(&mut entry).ok().and_then(|(_, wire)| map_entry(ty, wire).ok());
            found.map_or(&[][..], |(key, _)| key)
        };
        let pieces = &mut self.pieces[open.first..];
        pieces.sort_by(|left, right| key(left).cmp(key(right)));
        self.scratch.clear();
        for (index, piece) in pieces.iter().enumerate() {
            if pieces.get(index + 1).is_none_or(|next| key(next) != key(piece)) {
                self.scratch.extend_from_slice(&out[piece.start..piece.end]);
            }
        }
        self.out.truncate(open.start);
        self.out.extend_from_slice(&self.scratch);
    }
}

/// Copies sorted pieces of a message, with what belongs between them. `level` counts inlined messages.
fn emit(message: &Message, pieces: &[Piece], level: usize, from: &[u8], to: &mut Vec<u8>) {
    let mut rest = pieces;
    for field in message.by_wire_order() {
        let fits = |piece: &Piece| u32::from(piece.order[level]) == field.number();
        if let (true, Some(inner)) = (field.is_inline(), field.message()) {
            let count = rest.iter().take_while(|piece| fits(piece)).count();
            let (mine, others) = rest.split_at(count);
            rest = others;
            let start = to.len();
            emit(inner, mine, level + 1, from, to);
            put::wrap(to, start, field.number());
            continue;
        }
        match rest.split_first() {
            Some((piece, others)) if fits(piece) => {
                rest = others;
                if piece.end > piece.start {
                    to.extend_from_slice(&from[piece.start..piece.end]);
                } else {
                    put::absent(to, field);
                }
            }
            _ => put::absent(to, field),
        }
    }
}

// === scalar values ===

impl Writer {
    pub(crate) fn put_null(&mut self, target: Target) -> Result<(), Error> {
        match target {
            Target::Value { ty, number, element: true } => put::zero(&mut self.out, ty, number),
            Target::Json => self.out.extend_from_slice(b"null"),
            Target::Root(_) | Target::Key => return Err(self.mismatch("null", target)),
            Target::Value { .. } | Target::List(..) | Target::Map(..) | Target::Ignored => {}
        }
        Ok(())
    }

    pub(crate) fn put_bool(&mut self, target: Target, value: bool) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Bool, number, .. } => {
                put::number(&mut self.out, number, u64::from(value));
            }
            Target::Value { ty: Type::SchemaOrBool, number, .. } => {
                put::bytes(&mut self.out, number, &[0x08, u8::from(value)]);
            }
            _ => return self.put_json(target, "a boolean", if value { "true" } else { "false" }),
        }
        Ok(())
    }

    pub(crate) fn put_integer(&mut self, target: Target, value: i128) -> Result<(), Error> {
        let out_of_range = |writer: &Self| writer.mismatch("an integer out of range", target);
        match target {
            Target::Value { ty: Type::Int32, number, .. } => {
                let value = i32::try_from(value).map_err(|_| out_of_range(self))?;
                put::number(&mut self.out, number, i64::from(value).cast_unsigned());
            }
            Target::Value { ty: Type::Int64, number, .. } => {
                let value = i64::try_from(value).map_err(|_| out_of_range(self))?;
                put::number(&mut self.out, number, value.cast_unsigned());
            }
            Target::Value { ty: Type::Double, number, .. } => {
                put::double(&mut self.out, number, value as f64);
            }
            Target::Value { ty: Type::IntOrString, number, .. } => {
                let value = i32::try_from(value).map_err(|_| out_of_range(self))?;
                let start = self.out.len();
                put::number(&mut self.out, 1, 0);
                put::number(&mut self.out, 2, i64::from(value).cast_unsigned());
                put::bytes(&mut self.out, 3, &[]);
                put::wrap(&mut self.out, start, number);
            }
            Target::Value { ty: Type::Quantity, .. } => {
                return self.put_text(target, &value.to_string());
            }
            _ => return self.put_json(target, "an integer", &value.to_string()),
        }
        Ok(())
    }

    pub(crate) fn put_float(&mut self, target: Target, value: f64) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Double, number, .. } if value.is_finite() => {
                put::double(&mut self.out, number, value);
                Ok(())
            }
            Target::Value { ty: Type::Quantity, .. } if value.is_finite() => {
                self.put_text(target, &value.to_string())
            }
            _ => match serde_json::Number::from_f64(value) {
                Some(number) => self.put_json(target, "a number", &number.to_string()),
                None => Err(self.error(Problem::Range)),
            },
        }
    }

    pub(crate) fn put_text(&mut self, target: Target, text: &str) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Text, number, .. } => {
                put::bytes(&mut self.out, number, text.as_bytes());
            }
            Target::Value { ty, number, .. } => return self.put_special(target, ty, number, text),
            Target::Json => self.json_text(text),
            Target::Key => {
                self.key.clear();
                self.key.push_str(text);
            }
            Target::Ignored => {}
            Target::Root(_) | Target::List(..) | Target::Map(..) => {
                return Err(self.mismatch("a string", target));
            }
        }
        Ok(())
    }

    fn put_special(
        &mut self,
        target: Target,
        ty: Type,
        number: u32,
        text: &str,
    ) -> Result<(), Error> {
        let malformed = |writer: &Self| writer.mismatch("a malformed string", target);
        let start = self.out.len();
        match ty {
            Type::Bytes => {
                STANDARD.decode_vec(text, &mut self.out).map_err(|_| malformed(self))?;
            }
            Type::Time | Type::MicroTime => {
                let (seconds, nanos) = forms::parse_time(text).ok_or_else(|| malformed(self))?;
                let nanos = if ty == Type::Time { 0 } else { nanos / 1000 * 1000 };
                if seconds != ZERO_TIME || nanos != 0 {
                    put::number(&mut self.out, 1, seconds.cast_unsigned());
                    put::number(&mut self.out, 2, u64::from(nanos));
                }
            }
            Type::Quantity => {
                let quantity = quantity::canonical(text).ok_or_else(|| malformed(self))?;
                put::bytes(&mut self.out, 1, quantity.as_bytes());
            }
            Type::IntOrString => {
                put::number(&mut self.out, 1, 1);
                put::number(&mut self.out, 2, 0);
                put::bytes(&mut self.out, 3, text.as_bytes());
            }
            Type::Json => {
                self.json_text(text);
                put::wrap(&mut self.out, start, 1);
            }
            _ => return Err(self.mismatch("a string", target)),
        }
        put::wrap(&mut self.out, start, number);
        Ok(())
    }

    pub(crate) fn put_bytes(&mut self, target: Target, bytes: &[u8]) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Bytes, number, .. } => {
                put::bytes(&mut self.out, number, bytes);
                Ok(())
            }
            _ => Err(self.mismatch("bytes", target)),
        }
    }

    /// JSON text that is at hand, into a field of JSON.
    pub(crate) fn put_json(&mut self, target: Target, what: &str, text: &str) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Json, number, .. } => {
                let start = self.out.len();
                put::bytes(&mut self.out, 1, text.as_bytes());
                put::wrap(&mut self.out, start, number);
            }
            Target::Json => self.out.extend_from_slice(text.as_bytes()),
            Target::Key => {
                self.key.clear();
                self.key.push_str(text);
            }
            Target::Ignored => {}
            Target::Root(_) | Target::List(..) | Target::Map(..) | Target::Value { .. } => {
                return Err(self.mismatch(what, target));
            }
        }
        Ok(())
    }

    fn json_text(&mut self, text: &str) {
        // Writing a string into a vector cannot fail.
        let _ = serde_json::to_writer(&mut self.out, text);
    }
}
