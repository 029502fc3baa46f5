//! Pruning of protobuf: a copy that leaves fields out, with the lengths of all messages around them put right.

use std::ops::Range;

use kubestrata_api_types::Segment;

use super::{Paths, ends, step};
use crate::envelope;
use crate::json::ScanError;
use crate::limits::Limits;
use crate::proto::forms;
use crate::schema::{self, Field, Message, Type};
use crate::wire::{self, Field as Entry, Reader, Value};

/// The message without what `paths`, none of them empty, name in it.
pub(super) fn prune(
    bytes: &[u8],
    message: &'static Message,
    paths: &Paths<'_>,
) -> Result<Vec<u8>, ScanError> {
    let mut out = Vec::with_capacity(bytes.len());
    copy_message(&mut Reader::new(bytes), message, paths, &mut out)?;
    Ok(out)
}

fn copy_message(
    reader: &mut Reader<'_>,
    message: &'static Message,
    paths: &Paths<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ScanError> {
    rewrite(reader, out, |reader, entry| match message.by_number(entry.number) {
        Some(field) => change(reader, field, &entry.value, paths),
        None => Ok(Change::Keep),
    })
}

/// Copies the entries of a message with the changes that `change` wants.
fn rewrite(
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
    mut change: impl FnMut(&Reader<'_>, &Entry) -> Result<Change, ScanError>,
) -> Result<(), ScanError> {
    // Bytes that stay as they are, and are copied in one piece.
    let mut kept: Option<Range<usize>> = None;
    while let Some(entry) = reader.next()? {
        let change = change(reader, &entry)?;
        if let Change::Keep = change {
            let start = kept.map_or(entry.span.start, |kept| kept.start);
            kept = Some(start..entry.span.end);
            continue;
        }
        if let Some(kept) = kept.take() {
            out.extend_from_slice(reader.bytes(kept));
        }
        if let Change::Contents(contents) = change {
            wire::put_bytes(out, entry.number, &contents);
        }
    }
    if let Some(kept) = kept {
        out.extend_from_slice(reader.bytes(kept));
    }
    Ok(())
}

/// What becomes of one entry.
enum Change {
    Keep,
    Drop,
    Contents(Vec<u8>),
}

fn change(
    reader: &Reader<'_>,
    field: &'static Field,
    value: &Value,
    paths: &Paths<'_>,
) -> Result<Change, ScanError> {
    if field.is_inline() {
        // JSON has its fields where the message would stand.
        return match (value, field.message()) {
            (Value::Bytes(range), Some(message))
                if paths.iter().any(|path| leads_into(message, path)) =>
            {
                contents(reader, range, message, paths)
            }
            _ => Ok(Change::Keep),
        };
    }
    let inner = step(paths, |segment| match segment {
        Segment::Field(name) => **name == *field.name(),
        _ => true,
    });
    if inner.is_empty() {
        return Ok(Change::Keep);
    }
    if ends(&inner) {
        return Ok(Change::Drop);
    }
    if let (true, Value::Bytes(range)) = (field.is_map(), value) {
        return map_entry(reader, range, field, &inner);
    }
    let inner =
        if field.is_repeated() { step(&inner, |segment| *segment == Segment::All) } else { inner };
    if ends(&inner) {
        return Ok(Change::Drop);
    }
    match value {
        Value::Bytes(range) => element(reader, range, field, &inner),
        _ => Ok(Change::Keep),
    }
}

/// A single message, or one of a list.
fn element(
    reader: &Reader<'_>,
    range: &Range<usize>,
    field: &'static Field,
    paths: &Paths<'_>,
) -> Result<Change, ScanError> {
    if paths.is_empty() {
        return Ok(Change::Keep);
    }
    match (field.ty(), field.message()) {
        (Type::Nested(_), Some(message)) => contents(reader, range, message, paths),
        // A message that only wraps a list, which is what JSON shows.
        (Type::List(_), _) if ends(&step(paths, |segment| *segment == Segment::All)) => {
            Ok(Change::Contents(Vec::new()))
        }
        (Type::Json, _) => raw_json(reader, range, paths),
        (ty @ (Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings), _) => {
            schema_or(reader, range, ty, paths)
        }
        // Scalars have nothing inside, and what JSON shows of the few other types is cut by no path.
        _ => Ok(Change::Keep),
    }
}

/// JSON text in field 1 of a message, or a whole object in an envelope, which is cut if its kind is known.
fn raw_json(
    reader: &Reader<'_>,
    range: &Range<usize>,
    paths: &Paths<'_>,
) -> Result<Change, ScanError> {
    let mut out = Vec::with_capacity(range.len());
    rewrite(&mut reader.inner(range.clone()), &mut out, |reader, entry| {
        let (1, Value::Bytes(raw)) = (entry.number, &entry.value) else { return Ok(Change::Keep) };
        let raw_bytes = reader.bytes(raw.clone());
        if matches!(raw_bytes.trim_ascii_start().first(), Some(b'{' | b'[')) {
            return super::json::prune(raw_bytes, paths, Limits::DEFAULT.depth)
                .map(Change::Contents)
                .map_err(|error| ScanError { offset: raw.start + error.offset, ..error });
        }
        let Ok(object) = envelope::open(raw_bytes) else { return Ok(Change::Keep) };
        let Some(message) = schema::kind_of(object.api_version, object.kind) else {
            return Ok(Change::Keep);
        };
        let pruned = prune(object.message, message, paths)
            .map_err(|error| ScanError { offset: raw.start, ..error })?;
        Ok(Change::Contents(envelope::close(object.api_version, object.kind, &pruned)))
    })?;
    Ok(Change::Contents(out))
}

/// A JSON schema or something else: {2 schema}, {1 schema, 2 schemas} or {1 schema, 2 strings}. JSON shows the one that is
/// there in place of the message.
fn schema_or(
    reader: &Reader<'_>,
    range: &Range<usize>,
    ty: Type,
    paths: &Paths<'_>,
) -> Result<Change, ScanError> {
    let listed = ty != Type::SchemaOrBool && has(reader.inner(range.clone()), 2)?;
    let inner = if listed { step(paths, |segment| *segment == Segment::All) } else { paths.into() };
    let single = if ty == Type::SchemaOrBool { 2 } else { 1 };
    let mut out = Vec::with_capacity(range.len());
    rewrite(&mut reader.inner(range.clone()), &mut out, |reader, entry| {
        match (entry.number, &entry.value) {
            (2, Value::Bytes(_)) if listed && ends(&inner) => Ok(Change::Drop),
            (2, Value::Bytes(schema))
                if listed && ty == Type::SchemaOrArray && !inner.is_empty() =>
            {
                contents(reader, schema, schema::json_schema(), &inner)
            }
            (number, Value::Bytes(schema)) if !listed && number == single => {
                contents(reader, schema, schema::json_schema(), &inner)
            }
            _ => Ok(Change::Keep),
        }
    })?;
    Ok(Change::Contents(out))
}

/// Whether a message has a field.
fn has(mut reader: Reader<'_>, number: u32) -> Result<bool, ScanError> {
    while let Some(entry) = reader.next()? {
        if entry.number == number {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contents(
    reader: &Reader<'_>,
    range: &Range<usize>,
    message: &'static Message,
    paths: &Paths<'_>,
) -> Result<Change, ScanError> {
    let mut out = Vec::with_capacity(range.len());
    copy_message(&mut reader.inner(range.clone()), message, paths, &mut out)?;
    Ok(Change::Contents(out))
}

/// An entry of a map: {1 key, 2 value}.
fn map_entry(
    reader: &Reader<'_>,
    range: &Range<usize>,
    field: &'static Field,
    paths: &Paths<'_>,
) -> Result<Change, ScanError> {
    let (mut key, mut value) = (&b""[..], None);
    let mut inner = reader.inner(range.clone());
    while let Some(entry) = inner.next()? {
        match (entry.number, entry.value) {
            (1, Value::Bytes(range)) => key = inner.bytes(range),
            (2, Value::Bytes(range)) => value = Some(range),
            _ => {}
        }
    }
    // A path names a key as it is shown.
    let shown = forms::text(key);
    let paths = step(paths, |segment| match segment {
        Segment::Field(name) => **name == *shown,
        _ => true,
    });
    if ends(&paths) {
        return Ok(Change::Drop);
    }
    let Some(value) = value else { return Ok(Change::Keep) };
    match element(reader, &value, field, &paths)? {
        Change::Contents(contents) => {
            let mut out = Vec::with_capacity(range.len());
            wire::put_bytes(&mut out, 1, key);
            wire::put_bytes(&mut out, 2, &contents);
            Ok(Change::Contents(out))
        }
        change => Ok(change),
    }
}

/// Whether the first step of `path` is a field of `message` or of a message inlined in it.
fn leads_into(message: &'static Message, path: &[Segment]) -> bool {
    match path.first() {
        Some(Segment::Field(name)) => message.by_name(name).is_some(),
        Some(_) => true,
        None => false,
    }
}
