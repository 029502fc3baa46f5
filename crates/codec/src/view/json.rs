//! Reading one field from JSON.

use std::collections::BTreeMap;

use kubestrata_api_types::Segment;
use serde_json::Value;

use crate::json::{Cursor, ScanError};
use crate::limits::Limits;

/// Calls `out` for each value at `path` below the value at offset `at`.
pub(crate) fn field(
    bytes: &[u8],
    at: usize,
    path: &[Segment],
    out: &mut dyn FnMut(&str),
) -> Result<(), ScanError> {
    descend(&mut Cursor::new(bytes, at, Limits::DEFAULT.depth), path, out)
}

/// Consumes the value at the cursor, or stops somewhere in it.
fn descend(
    cursor: &mut Cursor<'_>,
    path: &[Segment],
    out: &mut dyn FnMut(&str),
) -> Result<(), ScanError> {
    let Some((segment, rest)) = path.split_first() else { return scalar(cursor, out) };
    match (cursor.peek(), segment) {
        (Some(b'{'), Segment::Field(name)) => {
            cursor.take(b'{');
            let mut found = None;
            let mut first = true;
            // Of equal keys the last counts, as for every decoder.
            while let Some(key) = cursor.key(&mut first)? {
                let fits = *cursor.name(key)? == *name.as_bytes();
                let start = cursor.clone();
                cursor.value()?;
                if fits {
                    found = Some(start);
                }
            }
            match found {
                Some(mut start) => descend(&mut start, rest, out),
                None => Ok(()),
            }
        }
        (Some(b'{'), Segment::All) => {
            cursor.take(b'{');
            let mut first = true;
            // In the order of the keys, as decoded objects have them, and of equal ones the last.
            let mut values = BTreeMap::new();
            while let Some(key) = cursor.key(&mut first)? {
                values.insert(cursor.text(key)?, cursor.clone());
                cursor.value()?;
            }
            values.values_mut().try_for_each(|value| descend(value, rest, out))
        }
        (Some(b'['), Segment::All) => {
            cursor.take(b'[');
            let mut first = true;
            while cursor.element(&mut first)? {
                descend(&mut cursor.clone(), rest, out)?;
                cursor.value()?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn scalar(cursor: &mut Cursor<'_>, out: &mut dyn FnMut(&str)) -> Result<(), ScanError> {
    match cursor.peek() {
        Some(b'"') => {
            let string = cursor.string()?;
            out(&cursor.text(string)?);
        }
        Some(b'{' | b'[') | None => {}
        Some(_) => {
            let error = cursor.error("not a JSON value");
            let value = cursor.value()?;
            let text = std::str::from_utf8(cursor.raw(value)).map_err(|_| error)?;
            // The scan that found it took any letters and digits. Read as a decoder reads it: a number has a range.
            if !serde_json::from_str::<Value>(text).map_err(|_| error)?.is_null() {
                out(text);
            }
        }
    }
    Ok(())
}
