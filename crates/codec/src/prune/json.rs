//! Pruning of JSON: a copy that leaves members out, and touches no other byte.

use kubestrata_api_types::Segment;

use super::{Paths, ends, step};
use crate::json::{Cursor, ScanError};

pub(super) fn prune(
    bytes: &[u8],
    paths: &Paths<'_>,
    depth_max: usize,
) -> Result<Vec<u8>, ScanError> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut cursor = Cursor::new(bytes, 0, depth_max);
    cursor.peek();
    copy(&mut cursor, paths, depth_max, &mut out)?;
    cursor.end()?;
    Ok(out)
}

/// Copies the next value without what `paths`, all of them not empty, name in it.
fn copy(
    cursor: &mut Cursor<'_>,
    paths: &Paths<'_>,
    depth_left: usize,
    out: &mut Vec<u8>,
) -> Result<(), ScanError> {
    if depth_left == 0 {
        return Err(cursor.error("nested too deep"));
    }
    match cursor.peek() {
        Some(b'{') => copy_object(cursor, paths, depth_left, out),
        Some(b'[') => copy_list(cursor, paths, depth_left, out),
        // The path expects more structure than there is: nothing to cut.
        _ => {
            let value = cursor.value()?;
            out.extend_from_slice(cursor.raw(value));
            Ok(())
        }
    }
}

fn copy_object(
    cursor: &mut Cursor<'_>,
    paths: &Paths<'_>,
    depth_left: usize,
    out: &mut Vec<u8>,
) -> Result<(), ScanError> {
    cursor.expect(b'{', "no object")?;
    out.push(b'{');
    let (mut first, mut first_out) = (true, true);
    while let Some(key) = cursor.key(&mut first)? {
        let name = cursor.text(key)?;
        let inner = step(paths, |segment| match segment {
            Segment::Field(field) => **field == *name,
            _ => true,
        });
        if ends(&inner) {
            cursor.value()?;
            continue;
        }
        if !std::mem::take(&mut first_out) {
            out.push(b',');
        }
        out.extend_from_slice(cursor.raw(key.start - 1..key.end + 1));
        out.push(b':');
        copy_or_prune(cursor, &inner, depth_left, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn copy_list(
    cursor: &mut Cursor<'_>,
    paths: &Paths<'_>,
    depth_left: usize,
    out: &mut Vec<u8>,
) -> Result<(), ScanError> {
    let inner = step(paths, |segment| *segment == Segment::All);
    let all = ends(&inner);
    cursor.expect(b'[', "no list")?;
    out.push(b'[');
    let (mut first, mut first_out) = (true, true);
    while cursor.element(&mut first)? {
        if all {
            cursor.value()?;
            continue;
        }
        if !std::mem::take(&mut first_out) {
            out.push(b',');
        }
        copy_or_prune(cursor, &inner, depth_left, out)?;
    }
    out.push(b']');
    Ok(())
}

fn copy_or_prune(
    cursor: &mut Cursor<'_>,
    paths: &Paths<'_>,
    depth_left: usize,
    out: &mut Vec<u8>,
) -> Result<(), ScanError> {
    if paths.is_empty() {
        let value = cursor.value()?;
        out.extend_from_slice(cursor.raw(value));
        Ok(())
    } else {
        copy(cursor, paths, depth_left - 1, out)
    }
}
