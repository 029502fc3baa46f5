//! One value on its way from the wire to a visitor.
//!
//! Everything that depends on the schema but not on the visitor is here, so that it is compiled once: for the hundreds of
//! visitors of a set of generated types, the size of the generic part is what counts.

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Options;
use super::error::{Error, Problem};
use super::forms::{self, Stamp};
use super::utf8::utf8;
use super::wire::{self, Fault, Malformed, Wire};
use crate::envelope;
use crate::schema::{self, Field, Message, Type};

/// What one decode shares among its values.
#[derive(Debug)]
pub(crate) struct Context<'c> {
    /// Address and length of the input, to turn places into offsets.
    base: usize,
    length: usize,
    pub(crate) options: Options<'c>,
    pub(super) unknown: Cell<usize>,
    pub(super) ignored: Cell<usize>,
    /// Look at the order of a message's fields before the first of them is given out.
    pub(super) careful: bool,
    /// Fields were found out of order when it was too late to be careful.
    disorder: Cell<bool>,
}

impl<'c> Context<'c> {
    pub(crate) fn new(bytes: &[u8], options: &Options<'c>) -> Self {
        Self {
            base: bytes.as_ptr() as usize,
            length: bytes.len(),
            options: *options,
            unknown: Cell::new(0),
            ignored: Cell::new(0),
            careful: false,
            disorder: Cell::new(false),
        }
    }

    /// The error that [`decode`] answers with a second, careful attempt.
    #[cold]
    pub(super) fn disorder(&self) -> Error {
        self.disorder.set(true);
        Error::new(Problem::Split)
    }

    pub(crate) fn note_unknown(&self) {
        self.unknown.set(self.unknown.get() + 1);
    }

    pub(crate) fn lost(&self) -> super::Lost {
        super::Lost { unknown: self.unknown.get(), ignored: self.ignored.get() }
    }

    /// Offset of a slice of the input; `None` for what lies elsewhere, as an absent field's empty slice does.
    pub(crate) fn offset(&self, at: &[u8]) -> Option<usize> {
        self.offset_of(at.as_ptr() as usize)
    }

    fn offset_of(&self, address: usize) -> Option<usize> {
        address.checked_sub(self.base).filter(|offset| *offset <= self.length)
    }

    #[cold]
    pub(crate) fn fault(&self, fault: Fault) -> Error {
        Error::new(fault.malformed.into()).or_at(self.offset_of(fault.address))
    }

    #[cold]
    pub(crate) fn error(&self, problem: Problem, at: &[u8]) -> Error {
        Error::new(problem).or_at(self.offset(at))
    }
}

/// Decodes a message by what `read` makes of its value.
///
/// Every encoder of Kubernetes writes the fields of a message in rising order, so that all parts of a list or map stand
/// together. That is taken for granted at first, and given up at the first field that is out of order, and at any error:
/// then `read` is called again, and each message is looked through before its first field is given out.
pub(crate) fn decode<'de, R>(
    message: &'static Message,
    bytes: &'de [u8],
    options: &Options<'_>,
    mut read: impl FnMut(&mut Value<'de, '_>) -> Result<R, Error>,
) -> Result<(R, super::Lost), Error> {
    let mut careful = false;
    loop {
        let context = Context { careful, ..Context::new(bytes, options) };
        let result = read(&mut Value::root(&context, message, bytes));
        // An error may come of an early part of what is in several parts, of which only the last counts.
        if !careful && (result.is_err() || context.disorder.get()) {
            careful = true;
            continue;
        }
        return result.map(|value| (value, context.lost()));
    }
}

/// Text from the input, from the options, or made here.
#[derive(Debug)]
pub(crate) enum Text<'de, 'c> {
    Input(&'de str),
    Given(&'c str),
    Stamp(Stamp),
    Made(String),
}

/// `apiVersion` and `kind`, which a message lacks and JSON shows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lead<'de> {
    None,
    /// Those of the options.
    Options,
    /// Those of an object's own envelope.
    Envelope(&'de str, &'de str),
}

/// Where a value is, and what it is.
#[derive(Debug)]
pub(crate) enum Source<'de, 'c> {
    /// One entry, not looked at yet.
    Wire(Type, Wire<'de>),
    /// A list of one type.
    List(Type, Run<'de>),
    /// A map from strings to one type.
    Map(Type, Run<'de>),
    Object(&'static Message, &'de [u8], Lead<'de>),
    Text(Text<'de, 'c>),
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// JSON text.
    Json(&'de [u8]),
    /// JSON that was read because a visitor wants one certain shape of it.
    Tree(Box<serde_json::Value>),
}

/// A value with what it needs to be decoded.
#[derive(Debug)]
pub(crate) struct Value<'de, 'c> {
    pub(super) context: &'c Context<'c>,
    pub(super) depth: u16,
    /// Where it is in what holds it.
    pub(super) place: Place<'de>,
    pub(super) source: Source<'de, 'c>,
}

/// Where a value is in what holds it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'de> {
    Field(&'static Field),
    /// The field that names the version or the kind, which no message has.
    Lead(&'static str),
    Index(usize),
    Key(&'de [u8]),
    /// The top, and keys of JSON text, which errors do not name.
    Unnamed,
}

impl<'de, 'c> Value<'de, 'c> {
    pub(crate) fn root(
        context: &'c Context<'c>,
        message: &'static Message,
        bytes: &'de [u8],
    ) -> Self {
        let source = Source::Object(message, bytes, Lead::Options);
        Self { context, depth: 0, place: Place::Unnamed, source }
    }

    /// What a walk has before its first value. Made where it stays: a copy of it would wait for what was just written.
    #[inline]
    pub(super) fn before_first(context: &'c Context<'c>, depth: u16) -> Self {
        Self { context, depth, place: Place::Unnamed, source: Source::Null }
    }

    pub(crate) fn into_source(self) -> Source<'de, 'c> {
        self.source
    }

    /// Looks at an entry: afterwards the source is anything but [`Source::Wire`].
    pub(super) fn resolve(&mut self) -> Result<(), Error> {
        if let Source::Wire(ty, wire) = self.source {
            self.source = resolve(self.context, ty, wire)?;
        }
        Ok(())
    }

    /// The same, and JSON text is read, for visitors that ask for something in particular.
    pub(super) fn resolve_json(&mut self) -> Result<(), Error> {
        self.resolve()?;
        if let Source::Json(text) = self.source {
            let tree = serde_json::from_slice(text)
                .map_err(|_| self.context.error(Problem::Json, text))?;
            self.source = Source::Tree(Box::new(tree));
        }
        if let Source::Tree(tree) = &mut self.source {
            self.source = match std::mem::take(&mut **tree) {
                serde_json::Value::Null => Source::Null,
                serde_json::Value::Bool(value) => Source::Bool(value),
                serde_json::Value::String(text) => Source::Text(Text::Made(text)),
                serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                    (Some(value), _) => Source::Unsigned(value),
                    (None, Some(value)) => Source::Signed(value),
                    (None, None) => Source::Float(number.as_f64().unwrap_or(f64::NAN)),
                },
                compound => Source::Tree(Box::new(compound)),
            };
        }
        Ok(())
    }

    /// Text as it stands in the input: what most values are.
    #[inline]
    pub(super) fn plain_text(&self) -> Option<&'de str> {
        match self.source {
            // What is too long is refused where the value is looked at in full.
            Source::Wire(Type::Text, Wire::Bytes(bytes))
                if bytes.len() <= self.context.options.string_bytes =>
            {
                utf8(bytes)
            }
            _ => None,
        }
    }

    /// A number as it stands in the input.
    #[inline]
    pub(super) fn plain_integer(&self) -> Option<i64> {
        match self.source {
            Source::Wire(Type::Int32, Wire::Varint(value)) => Some(i64::from(int32(value))),
            Source::Wire(Type::Int64, Wire::Varint(value)) => Some(value.cast_signed()),
            _ => None,
        }
    }

    /// The text of a value that is one; the value is null afterwards.
    pub(super) fn take_text(&mut self) -> Text<'de, 'c> {
        match std::mem::replace(&mut self.source, Source::Null) {
            Source::Text(text) => text,
            _ => Text::Input(""),
        }
    }

    /// Whether JSON shows null, of which most types know without a look at the entry that they never do.
    #[inline]
    pub(super) fn is_null(&mut self) -> Result<bool, Error> {
        match self.source {
            Source::Wire(
                Type::Text
                | Type::Nested(_)
                | Type::Bool
                | Type::Int32
                | Type::Int64
                | Type::Double,
                _,
            )
            | Source::List(..)
            | Source::Map(..) => Ok(false),
            _ => {
                self.resolve()?;
                Ok(match &self.source {
                    Source::Null => true,
                    Source::Tree(tree) => tree.is_null(),
                    _ => false,
                })
            }
        }
    }

    /// The place of the value, for an error that a visitor raises.
    #[cold]
    pub(super) fn offset(context: &Context<'_>, source: &Source<'_, '_>) -> Option<usize> {
        match source {
            Source::Wire(_, Wire::Bytes(bytes))
            | Source::Object(_, bytes, _)
            | Source::Json(bytes) => context.offset(bytes),
            Source::List(_, run) | Source::Map(_, run) => context.offset(run.rest),
            Source::Text(Text::Input(text)) => context.offset(text.as_bytes()),
            _ => None,
        }
    }

    /// Whether a type that passes the value over loses nothing by it.
    ///
    /// Zero says nothing unless the field is a pointer in Go: those of other fields are written always, and so are messages
    /// of nothing but zeros. `managedFields` are kept by the server in an update without them, and the type of an object
    /// (the texts that are not on the wire) is known beside it.
    #[cold]
    pub(super) fn says_nothing(&self) -> bool {
        match &self.source {
            Source::Text(_) | Source::Null => true,
            // What is in a list or a map is there, zero or not.
            Source::Wire(ty, wire) => {
                matches!(self.place, Place::Field(field) if !field.is_pointer())
                    && is_blank(*ty, *wire, 0)
            }
            Source::List(ty, _) => {
                ty.message().is_some_and(|message| std::ptr::eq(message, schema::managed_fields()))
            }
            _ => false,
        }
    }
}

/// Whether a field that is no pointer holds nothing but what Go writes for its zero value.
fn is_blank(ty: Type, wire: Wire<'_>, depth: u16) -> bool {
    let mut rest = match wire {
        Wire::Bytes([]) | Wire::Varint(0) | Wire::Fixed64(0) => return true,
        Wire::Bytes(bytes) => bytes,
        _ => return false,
    };
    let (Type::Nested(_), Some(message)) = (ty, ty.message()) else { return false };
    while !rest.is_empty() {
        let Ok((number, wire)) = wire::entry(&mut rest) else { return false };
        match message.position(number).map(|position| &message.fields()[position]) {
            Some(field)
                if depth < super::DEPTH
                    && !field.is_pointer()
                    && !field.is_repeated()
                    && !field.is_map()
                    && is_blank(field.ty(), wire, depth + 1) => {}
            _ => return false,
        }
    }
    true
}

/// The JSON view of one entry of type `ty`.
pub(crate) fn resolve<'de, 'c>(
    context: &'c Context<'c>,
    ty: Type,
    wire: Wire<'de>,
) -> Result<Source<'de, 'c>, Error> {
    let bytes = match (ty, wire) {
        (Type::Bool, Wire::Varint(value)) => return Ok(Source::Bool(value != 0)),
        (Type::Int32, Wire::Varint(value)) => return Ok(integer(i64::from(int32(value)))),
        (Type::Int64, Wire::Varint(value)) => return Ok(integer(value.cast_signed())),
        (Type::Double, Wire::Fixed64(bits)) => return Ok(number(f64::from_bits(bits))),
        (Type::Double, Wire::Varint(0)) => return Ok(Source::Unsigned(0)),
        (Type::Bool | Type::Int32 | Type::Int64 | Type::Double, _)
        | (_, Wire::Varint(_) | Wire::Fixed32(_) | Wire::Fixed64(_)) => {
            return Err(Error::new(Problem::WireType).or_at(match wire {
                Wire::Bytes(bytes) => context.offset(bytes),
                _ => None,
            }));
        }
        (_, Wire::Bytes(bytes)) => bytes,
    };
    if bytes.len() > context.options.string_bytes && matches!(ty, Type::Text | Type::Bytes) {
        return Err(context.error(Problem::Length, bytes));
    }
    match ty {
        Type::Text => Ok(Source::Text(text(bytes))),
        Type::Nested(_) => match ty.message() {
            Some(message) => Ok(Source::Object(message, bytes, Lead::None)),
            None => Ok(Source::Null),
        },
        Type::List(_) => {
            let element = ty.message().and_then(|message| message.fields().first());
            let element = element.map_or(Type::Text, Field::ty);
            let run = Run::gather(bytes, 1, element).map_err(|fault| context.fault(fault))?;
            Ok(Source::List(element, run))
        }
        Type::Bytes => Ok(Source::Text(Text::Made(STANDARD.encode(bytes)))),
        _ => special(context, ty, bytes),
    }
}

fn text<'de, 'c>(bytes: &'de [u8]) -> Text<'de, 'c> {
    match forms::text(bytes) {
        std::borrow::Cow::Borrowed(text) => Text::Input(text),
        std::borrow::Cow::Owned(text) => Text::Made(text),
    }
}

/// A negative int32 travels with the sign extended to 64 bits; Go cuts off what is above.
fn int32(value: u64) -> i32 {
    value as i32
}

/// As serde_json shows integers: unsigned unless negative.
fn integer<'de, 'c>(value: i64) -> Source<'de, 'c> {
    match u64::try_from(value) {
        Ok(value) => Source::Unsigned(value),
        Err(_) => Source::Signed(value),
    }
}

/// Go writes a whole number without a point, so JSON's readers take it for an integer.
fn number<'de, 'c>(value: f64) -> Source<'de, 'c> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT && !(value == 0.0 && value.is_sign_negative()) {
        integer(value as i64)
    } else {
        Source::Float(value)
    }
}

/// The JSON view of the types that have a form of their own.
fn special<'de, 'c>(
    context: &'c Context<'c>,
    ty: Type,
    bytes: &'de [u8],
) -> Result<Source<'de, 'c>, Error> {
    let range = || context.error(Problem::Range, bytes);
    if let Type::Time | Type::MicroTime = ty {
        let time = forms::read_time(bytes, ty).map_err(|fault| context.fault(fault))?;
        return Ok(match time {
            None => Source::Null,
            Some((seconds, nanos)) => {
                let micros = (ty == Type::MicroTime).then_some(nanos / 1000);
                Source::Text(Text::Stamp(forms::time(seconds, micros).ok_or_else(range)?))
            }
        });
    }
    let parts = Parts::read(bytes, ty.into()).map_err(|fault| context.fault(fault))?;
    Ok(match ty {
        Type::Quantity => match parts.bytes(1) {
            None | Some([]) => Source::Text(Text::Input("0")),
            Some(quantity) => Source::Text(text(quantity)),
        },
        Type::IntOrString => match parts.number(1) {
            0 => integer(i64::from(int32(parts.number(2)))),
            1 => Source::Text(text(parts.bytes(3).unwrap_or_default())),
            _ => return Err(range()),
        },
        Type::Json => return json(context, parts.bytes(1).unwrap_or_default()),
        Type::SchemaOrBool => match parts.bytes(2) {
            Some(schema) => Source::Object(schema::json_schema(), schema, Lead::None),
            None => Source::Bool(parts.number(1) != 0),
        },
        Type::SchemaOrArray | Type::SchemaOrStrings => {
            let element = match ty {
                Type::SchemaOrStrings => Type::Text,
                _ => Type::SCHEMA,
            };
            let run = Run::gather(bytes, 2, element).map_err(|fault| context.fault(fault))?;
            match parts.bytes(1) {
                _ if run.left > 0 => Source::List(element, run),
                Some(schema) => Source::Object(schema::json_schema(), schema, Lead::None),
                None => Source::Null,
            }
        }
        _ => Source::Null,
    })
}

/// Raw JSON, or a whole object in its own envelope.
fn json<'de, 'c>(context: &'c Context<'c>, raw: &'de [u8]) -> Result<Source<'de, 'c>, Error> {
    if raw.is_empty() || raw.trim_ascii() == b"null" {
        return Ok(Source::Null);
    }
    if !raw.starts_with(&envelope::MAGIC) {
        return Ok(Source::Json(raw));
    }
    let unknown_kind = || context.error(Problem::UnknownKind, raw);
    let inner = envelope::open(raw).map_err(|_| unknown_kind())?;
    let message = schema::kind_of(inner.api_version, inner.kind).ok_or_else(unknown_kind)?;
    Ok(Source::Object(message, inner.message, Lead::Envelope(inner.api_version, inner.kind)))
}

/// Which of the first fields of a message are numbers, and which have a length in front: a bit of each field's number.
/// A field of neither is of any wire type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forms {
    varints: u8,
    bytes: u8,
}

impl Forms {
    #[inline]
    fn fit(self, number: usize, wire: Wire<'_>) -> bool {
        let bit = 1 << number;
        match wire {
            Wire::Varint(_) => self.bytes & bit == 0,
            Wire::Bytes(_) => self.varints & bit == 0,
            _ => (self.varints | self.bytes) & bit == 0,
        }
    }
}

/// The fields of the messages that have a JSON form of their own.
impl From<Type> for Forms {
    fn from(ty: Type) -> Self {
        let (varints, bytes) = match ty {
            Type::Time | Type::MicroTime => (0b110, 0),
            Type::IntOrString => (0b110, 0b1000),
            Type::SchemaOrBool => (0b10, 0b100),
            Type::SchemaOrArray | Type::SchemaOrStrings => (0, 0b110),
            _ => (0, 0b10),
        };
        Self { varints, bytes }
    }
}

/// The fields 1 to 4 of a small message that is not in the table.
#[derive(Debug, Default)]
pub(crate) struct Parts<'a>([Option<Wire<'a>>; 4]);

impl<'a> Parts<'a> {
    pub(crate) fn read(mut rest: &'a [u8], forms: Forms) -> Result<Self, Fault> {
        let mut parts = Self::default();
        while !rest.is_empty() {
            let start = rest;
            let (number, wire) = wire::entry(&mut rest)?;
            if let Some(part) = parts.0.get_mut(number - 1) {
                // Even if another one follows: Go refuses it too.
                if !forms.fit(number, wire) {
                    return Err(wire::fault(Malformed::WireType, start));
                }
                *part = Some(wire);
            }
        }
        Ok(parts)
    }

    /// A varint, or zero.
    pub(crate) fn number(&self, number: usize) -> u64 {
        match self.0[number - 1] {
            Some(Wire::Varint(value)) => value,
            _ => 0,
        }
    }

    pub(crate) fn bytes(&self, number: usize) -> Option<&'a [u8]> {
        match self.0[number - 1] {
            Some(Wire::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

/// The entries of one field, in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'de> {
    /// From the first entry on; entries of other fields are passed over.
    rest: &'de [u8],
    number: usize,
    /// Elements still to come.
    pub(crate) left: usize,
    /// What is left of an entry that holds several numbers.
    packed: &'de [u8],
    can_pack: bool,
}

impl<'de> Run<'de> {
    /// The entries that follow each other at the front of `rest`, which is moved behind them.
    pub(crate) fn take(rest: &mut &'de [u8], number: usize, ty: Type) -> Result<Self, Fault> {
        let mut run = Self::new(rest, number, ty);
        let mut after = *rest;
        // Elements begin with the same byte, and most have less than 16 KiB; one that has more may follow.
        if let [tag @ ..0x80, ..] = after
            && tag & 7 == 2
            && !run.can_pack
        {
            while let [next, tail @ ..] = after
                && next == tag
                && let Some((length, tail)) = wire::usual_varint(tail)
                && let Some(behind) = tail.get(length..)
            {
                run.left += 1;
                after = behind;
            }
            *rest = after;
            if after.first() != Some(tag) {
                after = &[];
            }
        }
        while !after.is_empty() {
            let (next, wire) = wire::entry(&mut after)?;
            if next != number {
                break;
            }
            run.left += run.count(wire);
            *rest = after;
        }
        run.rest = &run.rest[..run.rest.len() - rest.len()];
        Ok(run)
    }

    /// All entries of the field in the message `rest`, wherever they are.
    pub(crate) fn gather(rest: &'de [u8], number: usize, ty: Type) -> Result<Self, Fault> {
        let mut run = Self::new(rest, number, ty);
        let mut after = rest;
        while !after.is_empty() {
            let (next, wire) = wire::entry(&mut after)?;
            if next == number {
                run.left += run.count(wire);
            }
        }
        Ok(run)
    }

    fn new(rest: &'de [u8], number: usize, ty: Type) -> Self {
        let can_pack = matches!(ty, Type::Bool | Type::Int32 | Type::Int64);
        Self { rest, number, left: 0, packed: &[], can_pack }
    }

    fn count(&self, wire: Wire<'_>) -> usize {
        match wire {
            // One number ends where the topmost bit is clear.
            Wire::Bytes(bytes) if self.can_pack => {
                bytes.iter().filter(|byte| **byte < 0x80).count()
            }
            _ => 1,
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Wire<'de>>, Fault> {
        if !self.can_pack
            && let Some((number, wire, rest)) = wire::usual_entry(self.rest)
            && number == self.number
        {
            self.rest = rest;
            self.left = self.left.saturating_sub(1);
            return Ok(Some(wire));
        }
        self.next_in_general()
    }

    #[inline(never)]
    fn next_in_general(&mut self) -> Result<Option<Wire<'de>>, Fault> {
        loop {
            if !self.packed.is_empty() {
                self.left = self.left.saturating_sub(1);
                return wire::varint(&mut self.packed).map(|value| Some(Wire::Varint(value)));
            }
            if self.rest.is_empty() {
                return Ok(None);
            }
            match wire::entry(&mut self.rest)? {
                (number, _) if number != self.number => {}
                (_, Wire::Bytes(bytes)) if self.can_pack => self.packed = bytes,
                (_, wire) => {
                    self.left = self.left.saturating_sub(1);
                    return Ok(Some(wire));
                }
            }
        }
    }
}

/// Key and value of one entry of a map; what is absent is zero.
pub(crate) fn map_entry<'de>(ty: Type, wire: Wire<'de>) -> Result<(&'de [u8], Wire<'de>), Problem> {
    let Wire::Bytes(mut rest) = wire else { return Err(Problem::WireType) };
    let (mut key, mut value) = (&[][..], None);
    while !rest.is_empty() {
        match wire::entry(&mut rest).map_err(|fault| Problem::from(fault.malformed))? {
            (1, Wire::Bytes(bytes)) => key = bytes,
            (1, _) => return Err(Problem::WireType),
            (2, wire) => value = Some(wire),
            _ => {}
        }
    }
    Ok((key, value.unwrap_or_else(|| zero(ty))))
}

/// The entry that an absent field stands for.
pub(crate) fn zero<'de>(ty: Type) -> Wire<'de> {
    match ty {
        Type::Bool | Type::Int32 | Type::Int64 | Type::Double => Wire::Varint(0),
        _ => Wire::Bytes(&[]),
    }
}

/// Whether `omitempty` drops the entry; it says nothing of messages.
pub(crate) fn is_empty(ty: Type, wire: Wire<'_>) -> bool {
    match (ty, wire) {
        (Type::Bool | Type::Int32 | Type::Int64, Wire::Varint(value)) => value == 0,
        (Type::Double, Wire::Fixed64(bits)) => f64::from_bits(bits) == 0.0,
        (Type::Text | Type::Bytes | Type::List(_), Wire::Bytes(bytes)) => bytes.is_empty(),
        _ => false,
    }
}
