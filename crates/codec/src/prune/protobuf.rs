//! Pruning of protobuf: a copy that leaves fields out, with the lengths of all messages around them put right.

use std::ops::Range;

use kubestrata_api_types::Segment;

use super::{Paths, ends, step};
use crate::json::ScanError;
use crate::limits::Limits;
use crate::schema::{Field, Message, Type};
use crate::wire::{self, Reader, Value};

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
    // Bytes that stay as they are, and are copied in one piece.
    let mut kept: Option<Range<usize>> = None;
    while let Some(entry) = reader.next()? {
        let change = match message.by_number(entry.number) {
            Some(field) => change(reader, field, &entry.value, paths)?,
            None => Change::Keep,
        };
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
        // Scalars have nothing inside, and what JSON shows of the few other types is cut by no path.
        _ => Ok(Change::Keep),
    }
}

/// JSON text in field 1 of a message. It may be a whole object in an envelope instead, which is not cut.
fn raw_json(
    reader: &Reader<'_>,
    range: &Range<usize>,
    paths: &Paths<'_>,
) -> Result<Change, ScanError> {
    let mut inner = reader.inner(range.clone());
    while let Some(entry) = inner.next()? {
        if let (1, Value::Bytes(raw)) = (entry.number, entry.value) {
            let text = inner.bytes(raw);
            if !matches!(text.first(), Some(b'{' | b'[')) {
                return Ok(Change::Keep);
            }
            let text = super::json::prune(text, paths, Limits::DEFAULT.depth)?;
            let mut out = Vec::with_capacity(range.len());
            wire::put_bytes(&mut out, 1, &text);
            return Ok(Change::Contents(out));
        }
    }
    Ok(Change::Keep)
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
    let paths = step(paths, |segment| match segment {
        Segment::Field(name) => name.as_bytes() == key,
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
