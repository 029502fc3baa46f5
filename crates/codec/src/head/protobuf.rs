//! The head scan of protobuf.
//!
//! Metadata is field 1 of the message of every kind that has metadata. Fields of `ObjectMeta`: 1 name, 3 namespace, 5 uid, 6 resourceVersion,
//! 7 generation, 9 deletionTimestamp {1 seconds, 2 nanos}, 11 labels {1 key, 2 value}, 13 ownerReferences {1 kind, 3 name,
//! 4 uid, 5 apiVersion, 6 controller}. Go writes scalars even when they are zero: zero and empty mean absent.

use std::borrow::Cow;
use std::ops::Range;

use kubestrata_api_types::{ResourceType, Timestamp};

use super::{HeadBuilder, OWNER_TEXTS, Text, offset};
use crate::json::ScanError;
use crate::proto::forms;
use crate::schema;
use crate::wire::{Reader, Value};

/// Scans an object's message. On an error `builder` holds what was found before it.
pub(super) fn scan<'a>(
    resource: &ResourceType,
    bytes: &'a [u8],
    builder: &mut HeadBuilder<'a>,
) -> Result<(), ScanError> {
    if lacks_metadata(resource) {
        return Ok(());
    }
    let mut reader = Reader::new(bytes);
    let mut seen = false;
    while let Some(field) = reader.next()? {
        if field.number != 1 {
            continue;
        }
        let Value::Bytes(range) = field.value else {
            return Err(ScanError { offset: field.span.start, problem: "metadata is no message" });
        };
        // Decoders differ in what they make of two: some merge them, some take the last.
        if std::mem::replace(&mut seen, true) {
            return Err(ScanError { offset: field.span.start, problem: "metadata twice" });
        }
        builder.metadata = offset(range.start)..offset(range.end);
        builder.metadata_field = field.span.start;
        metadata(reader.inner(range), builder)?;
    }
    Ok(())
}

/// Whether field 1 of this kind is something else. These kinds are never stored, and rarely seen here.
fn lacks_metadata(resource: &ResourceType) -> bool {
    let suspect = matches!(
        &*resource.kind,
        "AdmissionReview" | "ConversionReview" | "DeploymentRollback" | "Table" | "WatchEvent"
    ) || resource.kind.ends_with("Options");
    suspect
        && schema::resource(resource)
            .and_then(|message| message.by_number(1))
            .is_some_and(|field| field.name() != "metadata")
}

fn metadata<'a>(mut reader: Reader<'a>, builder: &mut HeadBuilder<'a>) -> Result<(), ScanError> {
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(range)) => builder.name = text(&reader, builder, range),
            (3, Value::Bytes(range)) => builder.namespace = text(&reader, builder, range),
            (5, Value::Bytes(range)) => builder.uid = text(&reader, builder, range),
            (6, Value::Bytes(range)) => builder.resource_version = text(&reader, builder, range),
            (7, Value::Varint(number)) => {
                // Negative numbers are their two's complement in 64 bits.
                builder.generation = (number != 0).then_some(number.cast_signed());
            }
            (9, Value::Bytes(range)) => builder.deletion_timestamp = time(&reader, range)?,
            (11, Value::Bytes(range)) => label(reader.inner(range), builder)?,
            (13, Value::Bytes(range)) => owner(reader.inner(range), builder)?,
            (17, Value::Bytes(_)) => match &mut builder.managed_fields {
                None => builder.managed_fields = Some(field.span),
                Some(span) if span.end == field.span.start => span.end = field.span.end,
                Some(_) => builder.managed_fields_twice = true,
            },
            (1 | 3 | 5 | 6 | 7 | 9 | 11 | 13 | 17, _) => return Err(wire_type(&field.span)),
            _ => {}
        }
    }
    Ok(())
}

#[cold]
fn wire_type(span: &Range<usize>) -> ScanError {
    ScanError { offset: span.start, problem: "a field of another wire type" }
}

fn time(reader: &Reader<'_>, range: Range<usize>) -> Result<Option<Timestamp>, ScanError> {
    if range.is_empty() {
        return Ok(None);
    }
    let offset = range.start;
    let mut seconds = 0;
    let mut inner = reader.inner(range);
    while let Some(field) = inner.next()? {
        match (field.number, field.value) {
            (1, Value::Varint(number)) => seconds = number.cast_signed(),
            (2, Value::Varint(_)) => {}
            (1 | 2, _) => return Err(wire_type(&field.span)),
            _ => {}
        }
    }
    if seconds == forms::ZERO_TIME {
        return Ok(None);
    }
    // A `Time` has whole seconds; the nanoseconds are never written otherwise than zero, and not read by Go either.
    Timestamp::from_second(seconds)
        .map(Some)
        .map_err(|_| ScanError { offset, problem: "a time out of range" })
}

fn label(mut reader: Reader<'_>, builder: &mut HeadBuilder<'_>) -> Result<(), ScanError> {
    let (mut key, mut value) = (Text::default(), Text::default());
    while let Some(field) = reader.next()? {
        let (place, range) = match (field.number, field.value) {
            (1, Value::Bytes(range)) => (&mut key, range),
            (2, Value::Bytes(range)) => (&mut value, range),
            (1 | 2, _) => return Err(wire_type(&field.span)),
            _ => continue,
        };
        *place = text(&reader, builder, range);
    }
    builder.labels.push((key, value));
    Ok(())
}

fn owner(mut reader: Reader<'_>, builder: &mut HeadBuilder<'_>) -> Result<(), ScanError> {
    let mut owner = [Text::default(); OWNER_TEXTS];
    while let Some(field) = reader.next()? {
        let (index, range) = match (field.number, field.value) {
            (5, Value::Bytes(range)) => (0, range),
            (1, Value::Bytes(range)) => (1, range),
            (3, Value::Bytes(range)) => (2, range),
            (4, Value::Bytes(range)) => (3, range),
            (6, Value::Varint(number)) => {
                owner[4] = Text::flag(number != 0);
                continue;
            }
            (1 | 3..=6, _) => return Err(wire_type(&field.span)),
            _ => continue,
        };
        owner[index] = text(&reader, builder, range);
    }
    builder.owners.push(owner);
    Ok(())
}

/// A string. What is not UTF-8 is shown as the decoder shows it.
fn text(reader: &Reader<'_>, builder: &mut HeadBuilder<'_>, range: Range<usize>) -> Text {
    let bytes = reader.bytes(range.clone());
    // Names are ASCII, which is seen faster than that they are UTF-8.
    if bytes.is_ascii() {
        return Text::in_bytes(range.start, range.end);
    }
    match forms::text(bytes) {
        Cow::Borrowed(_) => Text::in_bytes(range.start, range.end),
        Cow::Owned(text) => builder.in_extra(&text),
    }
}
