//! The head scan of JSON.

use std::borrow::Cow;

use kubestrata_api_types::Timestamp;

use super::{HeadBuilder, Text, offset};
use crate::json::{Cursor, ScanError, Str};

/// Scans an object's text. On an error `builder` holds what was found before it.
pub(super) fn scan<'a>(
    bytes: &'a [u8],
    depth_max: usize,
    builder: &mut HeadBuilder<'a>,
) -> Result<(), ScanError> {
    let mut cursor = Cursor::new(bytes, 0, depth_max);
    cursor.expect(b'{', "an object must be a JSON object")?;
    let mut first = true;
    while let Some(key) = cursor.key(&mut first)? {
        match &*cursor.name(key)? {
            b"metadata" => {
                // Of two, the last counts, and nothing of the first; null is none.
                let own = std::mem::take(&mut builder.own);
                let twice = builder.managed_fields_twice || builder.managed_fields.is_some();
                *builder = HeadBuilder { own, ..HeadBuilder::new(bytes) };
                builder.managed_fields_twice = twice;
                if !cursor.null() {
                    let start = cursor.at();
                    metadata(&mut cursor, builder)?;
                    builder.metadata = offset(start)..offset(cursor.at());
                }
            }
            b"kind" => builder.own.kind = optional_string(&mut cursor)?,
            b"apiVersion" => builder.own.api_version = optional_string(&mut cursor)?,
            _ => cursor.skip()?,
        }
    }
    cursor.end()
}

fn metadata<'a>(cursor: &mut Cursor<'a>, builder: &mut HeadBuilder<'a>) -> Result<(), ScanError> {
    cursor.expect(b'{', "metadata is no object")?;
    let mut first = true;
    loop {
        let (before, was_first) = (cursor.at(), first);
        let Some(key) = cursor.key(&mut first)? else { break };
        let key = cursor.name(key)?;
        match &*key {
            b"name" => builder.name = optional_text(cursor, builder)?,
            b"namespace" => builder.namespace = optional_text(cursor, builder)?,
            b"uid" => builder.uid = optional_text(cursor, builder)?,
            b"resourceVersion" => builder.resource_version = optional_text(cursor, builder)?,
            b"generation" => {
                builder.generation = optional_integer(cursor)?.filter(|number| *number != 0);
            }
            b"deletionTimestamp" => builder.deletion_timestamp = optional_time(cursor)?,
            b"labels" => labels(cursor, builder)?,
            b"ownerReferences" => owners(cursor, builder)?,
            b"managedFields" => {
                cursor.skip()?;
                // Without it, one comma must go too: the one before, or behind the first member the one after.
                let mut after = cursor.clone();
                let end = if was_first && after.take(b',') { after.at() } else { cursor.at() };
                builder.managed_fields_twice |= builder.managed_fields.is_some();
                builder.managed_fields = Some(before..end);
            }
            _ => cursor.skip()?,
        }
    }
    Ok(())
}

fn labels(cursor: &mut Cursor<'_>, builder: &mut HeadBuilder<'_>) -> Result<(), ScanError> {
    builder.labels.clear();
    if cursor.null() {
        return Ok(());
    }
    cursor.expect(b'{', "labels are no object")?;
    let mut first = true;
    while let Some(key) = cursor.key(&mut first)? {
        let key = text(cursor, builder, key)?;
        let value = optional_text(cursor, builder)?;
        builder.labels.push((key, value));
    }
    Ok(())
}

fn owners(cursor: &mut Cursor<'_>, builder: &mut HeadBuilder<'_>) -> Result<(), ScanError> {
    builder.owners.clear();
    if cursor.null() {
        return Ok(());
    }
    cursor.expect(b'[', "ownerReferences are no list")?;
    let mut first = true;
    while cursor.element(&mut first)? {
        cursor.expect(b'{', "an owner reference is no object")?;
        let mut owner = [Text::default(); super::OWNER_TEXTS];
        let mut first_member = true;
        while let Some(key) = cursor.key(&mut first_member)? {
            let index = match &*cursor.name(key)? {
                b"apiVersion" => 0,
                b"kind" => 1,
                b"name" => 2,
                b"uid" => 3,
                b"controller" => {
                    let value = cursor.value()?;
                    owner[4] = Text::flag(cursor.raw(value) == b"true");
                    continue;
                }
                _ => {
                    cursor.value()?;
                    continue;
                }
            };
            owner[index] = optional_text(cursor, builder)?;
        }
        builder.owners.push(owner);
    }
    Ok(())
}

fn optional_str(cursor: &mut Cursor<'_>) -> Result<Option<Str>, ScanError> {
    if cursor.null() { Ok(None) } else { cursor.string().map(Some) }
}

fn optional_string<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, str>>, ScanError> {
    match optional_str(cursor)? {
        Some(string) => cursor.text(string).map(Some),
        None => Ok(None),
    }
}

/// Null is the empty text.
fn optional_text(
    cursor: &mut Cursor<'_>,
    builder: &mut HeadBuilder<'_>,
) -> Result<Text, ScanError> {
    match optional_str(cursor)? {
        Some(string) => text(cursor, builder, string),
        None => Ok(Text::default()),
    }
}

fn text(
    cursor: &Cursor<'_>,
    builder: &mut HeadBuilder<'_>,
    string: Str,
) -> Result<Text, ScanError> {
    // Names are ASCII, which is seen faster than that they are UTF-8.
    if !string.escaped && is_plain(cursor.raw(string.start..string.end)) {
        return Ok(Text::in_bytes(string.start, string.end));
    }
    let text = cursor.text(string)?;
    Ok(if string.escaped {
        builder.in_extra(&text)
    } else {
        Text::in_bytes(string.start, string.end)
    })
}

fn optional_integer(cursor: &mut Cursor<'_>) -> Result<Option<i64>, ScanError> {
    if cursor.null() {
        return Ok(None);
    }
    let error = cursor.error("not an integer");
    let value = cursor.value()?;
    // What is read here is a number to whoever decodes the object.
    serde_json::from_slice(cursor.raw(value)).map(Some).map_err(|_| error)
}

fn optional_time(cursor: &mut Cursor<'_>) -> Result<Option<Timestamp>, ScanError> {
    let Some(string) = optional_str(cursor)? else { return Ok(None) };
    let error = ScanError { offset: string.start, problem: "not a time" };
    cursor.text(string)?.parse().map(Some).map_err(|_| error)
}

/// ASCII without control characters, which JSON allows in escaped form alone.
fn is_plain(text: &[u8]) -> bool {
    // Without an early end, so that it goes by vectors.
    text.iter().fold(true, |plain, byte| plain & (0x20..0x80).contains(byte))
}
