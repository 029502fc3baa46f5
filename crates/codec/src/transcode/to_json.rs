//! Protobuf to JSON text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::text;
use crate::proto::error::Step;
use crate::proto::value::{
    Context, Lead, Run, Source, Text, Value, is_empty, map_entry, resolve, zero,
};
use crate::proto::wire::{self, Wire};
use crate::proto::{Error, Problem, forms};
use crate::schema::{Field, Message, Type};

/// Writes a whole object.
pub(super) fn root(
    context: &Context<'_>,
    message: &'static Message,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let value = Value::root(context, message, bytes);
    Writer { context, out }.value(value.into_source(), 0)
}

struct Writer<'w, 'c> {
    context: &'c Context<'c>,
    out: &'w mut Vec<u8>,
}

/// What separates the members of one object.
struct Members {
    first: bool,
}

impl<'c> Writer<'_, 'c> {
    fn value(&mut self, source: Source<'_, 'c>, depth: u16) -> Result<(), Error> {
        match source {
            Source::Wire(ty, wire) => return self.entry(ty, wire, depth),
            Source::Object(message, bytes, lead) => {
                return self.object(message, bytes, lead, depth);
            }
            Source::List(ty, run) => return self.list(ty, run, depth),
            Source::Map(ty, run) => return self.map(ty, run, depth),
            Source::Json(raw) => return self.json(raw),
            Source::Text(Text::Input(text) | Text::Given(text)) => text::string(self.out, text),
            Source::Text(Text::Stamp(stamp)) => text::string(self.out, stamp.as_str()),
            Source::Text(Text::Made(text)) => text::string(self.out, &text),
            Source::Null | Source::Tree(_) => self.out.extend_from_slice(b"null"),
            Source::Bool(true) => self.out.extend_from_slice(b"true"),
            Source::Bool(false) => self.out.extend_from_slice(b"false"),
            Source::Unsigned(value) => integer(self.out, value, false),
            Source::Signed(value) => integer(self.out, value.unsigned_abs(), value < 0),
            Source::Float(value) => text::float(self.out, value).map_err(Error::new)?,
        }
        Ok(())
    }

    fn entry(&mut self, ty: Type, wire: Wire<'_>, depth: u16) -> Result<(), Error> {
        if let (Type::Bytes, Wire::Bytes(bytes)) = (ty, wire) {
            self.out.push(b'"');
            let start = self.out.len();
            let length = base64::encoded_len(bytes.len(), true);
            let length = length.ok_or_else(|| self.context.error(Problem::Range, bytes))?;
            self.out.resize(start + length, 0);
            STANDARD
                .encode_slice(bytes, &mut self.out[start..])
                .map_err(|_| self.context.error(Problem::Range, bytes))?;
            self.out.push(b'"');
            return Ok(());
        }
        let source = resolve(self.context, ty, wire)?;
        self.value(source, depth)
    }

    fn json(&mut self, raw: &[u8]) -> Result<(), Error> {
        let text = forms::text(raw);
        serde_json::from_str::<serde::de::IgnoredAny>(&text)
            .map_err(|_| self.context.error(Problem::Json, raw))?;
        text::compact(self.out, text.as_bytes());
        Ok(())
    }

    fn list(&mut self, ty: Type, mut run: Run<'_>, depth: u16) -> Result<(), Error> {
        self.out.push(b'[');
        let mut index = 0;
        while let Some(wire) = run.next().map_err(|fault| self.context.fault(fault))? {
            if index > 0 {
                self.out.push(b',');
            }
            self.entry(ty, wire, depth).map_err(|error| error.within(Step::Index(index)))?;
            index += 1;
        }
        self.out.push(b']');
        Ok(())
    }

    /// A map in the order of its keys, each of which counts once.
    fn map(&mut self, ty: Type, mut run: Run<'_>, depth: u16) -> Result<(), Error> {
        let mut entries = Vec::with_capacity(run.left.min(64));
        while let Some(wire) = run.next().map_err(|fault| self.context.fault(fault))? {
            entries.push(map_entry(ty, wire).map_err(Error::new)?);
        }
        if !entries.is_sorted_by(|left, right| left.0 < right.0) {
            // Stable, so that the last of equal keys stays the last.
            entries.sort_by_key(|entry| entry.0);
        }
        self.out.push(b'{');
        let mut members = Members { first: true };
        for (index, (key, wire)) in entries.iter().enumerate() {
            let name = forms::text(key);
            let (start, first) = (self.out.len(), members.first);
            self.name(&mut members, &name);
            self.entry(ty, *wire, depth)
                .map_err(|error| error.within(Step::Key(name.into_owned())))?;
            // Written all the same: an error in it is one to every decoder.
            if entries.get(index + 1).is_some_and(|next| next.0 == *key) {
                self.out.truncate(start);
                members.first = first;
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn name(&mut self, members: &mut Members, name: &str) {
        if !members.first {
            self.out.push(b',');
        }
        members.first = false;
        text::string(self.out, name);
        self.out.push(b':');
    }

    fn object(
        &mut self,
        message: &'static Message,
        bytes: &[u8],
        lead: Lead<'_>,
        depth: u16,
    ) -> Result<(), Error> {
        if depth >= self.context.options.depth {
            return Err(self.context.error(Problem::Depth, bytes));
        }
        self.out.push(b'{');
        let mut members = Members { first: true };
        let (api_version, kind) = match lead {
            Lead::None => (None, None),
            Lead::Options => (self.context.options.api_version, self.context.options.kind),
            Lead::Envelope(api_version, kind) => (Some(api_version), Some(kind)),
        };
        for (name, value) in [("kind", kind), ("apiVersion", api_version)] {
            if let Some(value) = value {
                self.name(&mut members, name);
                text::string(self.out, value);
            }
        }
        self.fields(message, bytes, &mut members, depth + 1)?;
        self.out.push(b'}');
        Ok(())
    }

    /// The fields of a message, in the order of the Go struct.
    fn fields(
        &mut self,
        message: &'static Message,
        bytes: &[u8],
        members: &mut Members,
        depth: u16,
    ) -> Result<(), Error> {
        let index = Index::new(self.context, message, bytes)?;
        for (position, field) in message.fields().iter().enumerate() {
            let place = index.places[position].checked_sub(1).map(|place| &bytes[place as usize..]);
            if let (true, Some(inner)) = (field.is_inline(), field.message()) {
                let inlined = match place {
                    Some(place) => self.payload(place)?,
                    None => &[],
                };
                self.fields(inner, inlined, members, depth)?;
                continue;
            }
            self.field(field, place, index.ordered, members, depth)
                .map_err(|error| error.within(Step::Field(field.name())))?;
        }
        Ok(())
    }

    fn payload<'a>(&self, mut place: &'a [u8]) -> Result<&'a [u8], Error> {
        match wire::entry(&mut place).map_err(|fault| self.context.fault(fault))? {
            (_, Wire::Bytes(bytes)) => Ok(bytes),
            _ => Err(self.context.error(Problem::WireType, place)),
        }
    }

    fn field(
        &mut self,
        field: &'static Field,
        place: Option<&[u8]>,
        ordered: bool,
        members: &mut Members,
        depth: u16,
    ) -> Result<(), Error> {
        let fault = |fault| self.context.fault(fault);
        let ty = field.ty();
        let source = match place {
            Some(mut place) if field.is_repeated() || field.is_map() => {
                if self.context.options.skip_managed_fields && field.is_managed_fields() {
                    return Ok(());
                }
                let number = field.number() as usize;
                let run = if ordered {
                    Run::take(&mut place, number, ty)
                } else {
                    Run::gather(place, number, ty)
                };
                let run = run.map_err(fault)?;
                if field.is_map() { Source::Map(ty, run) } else { Source::List(ty, run) }
            }
            Some(mut place) => {
                let (_, wire) = wire::entry(&mut place).map_err(fault)?;
                if !field.is_pointer() && field.omits_empty() && is_empty(ty, wire) {
                    return Ok(());
                }
                Source::Wire(ty, wire)
            }
            // What is nil in Go is null in JSON, and what cannot be nil shows its zero value.
            None if field.is_nil() => {
                if field.omits_empty() {
                    return Ok(());
                }
                Source::Null
            }
            None if field.omits_empty() && is_empty(ty, zero(ty)) => return Ok(()),
            None => Source::Wire(ty, zero(ty)),
        };
        if field.omits_zero() && self.is_null(&source)? {
            return Ok(());
        }
        self.name(members, field.name());
        self.value(source, depth)
    }

    fn is_null(&self, source: &Source<'_, '_>) -> Result<bool, Error> {
        match source {
            Source::Wire(ty, wire) => {
                Ok(matches!(resolve(self.context, *ty, *wire)?, Source::Null))
            }
            other => Ok(matches!(other, Source::Null)),
        }
    }
}

/// Where the fields of one message are.
struct Index {
    /// By position in the message's fields: offset of the entry plus one, or zero. The first entry of a list or map, the
    /// last of all else.
    places: [u32; 64],
    ordered: bool,
}

impl Index {
    fn new(context: &Context<'_>, message: &Message, bytes: &[u8]) -> Result<Self, Error> {
        let mut index = Self { places: [0; 64], ordered: true };
        let mut rest = bytes;
        let mut last = 0;
        while !rest.is_empty() {
            let here = rest;
            let offset = bytes.len() - rest.len();
            let (number, _) = wire::entry(&mut rest).map_err(|fault| context.fault(fault))?;
            index.ordered &= number >= last;
            last = number;
            let Some(position) = message.position(number) else {
                context.note_unknown();
                continue;
            };
            let field = &message.fields()[position];
            let place = &mut index.places[position];
            let first = *place == 0;
            if !first && (field.is_repeated() || field.is_map()) {
                continue;
            }
            if !first && !field.ty().is_scalar() {
                return Err(context.error(Problem::Split, here));
            }
            *place = u32::try_from(offset + 1).map_err(|_| context.error(Problem::Range, here))?;
        }
        Ok(index)
    }
}

fn integer(out: &mut Vec<u8>, mut value: u64, negative: bool) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}
