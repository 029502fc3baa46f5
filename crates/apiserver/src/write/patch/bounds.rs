//! What a patch may make of an object: `copy` doubles for a few bytes, and many small patches add up.

use std::io;

use json_patch::{PatchOperation, patch_unsafe};
use serde_json::Value;

use crate::failure::{Outcome, rejected_patch, too_large};

/// Levels of arrays and maps that an object may have: what is deeper could be stored and not be read again.
const DEPTH_MAX: usize = 127;

/// Applies the operations one by one. What they copy is at most `limit` bytes of JSON in all (kube-apiserver
/// `JSONPatchMaxCopyBytes`). After an error the value is of no use.
pub(super) fn apply(value: &mut Value, patch: &[PatchOperation], limit: usize) -> Outcome<()> {
    let mut copied = 0_usize;
    for operation in patch {
        if let PatchOperation::Copy(copy) = operation {
            let source = value.pointer(copy.from.as_str()).ok_or_else(rejected_patch)?;
            copied = copied.saturating_add(size(source));
            // A copy into itself makes a value deeper, at less than its size.
            if copied > limit || is_deeper(source, DEPTH_MAX) {
                return Err(rejected_patch());
            }
        }
        let one = std::slice::from_ref(operation);
        patch_unsafe(value, one).map_err(|_| rejected_patch())?;
    }
    Ok(())
}

/// Refuses what is larger than `limit` bytes of JSON, unless it was as large as that before, and what is too deep.
pub(super) fn check(value: &Value, before: &Value, limit: usize) -> Outcome<()> {
    // Before anything else walks through it: the other walks have no end but the value's own.
    if is_deeper(value, DEPTH_MAX) {
        return Err(rejected_patch());
    }
    let size_now = size(value);
    if size_now > limit && size_now > size(before) {
        return Err(too_large(limit));
    }
    Ok(())
}

/// Bytes of the value as JSON.
fn size(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Neither counting nor a value of JSON can fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Looks no deeper than `levels`.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(list) => list.iter().any(|value| is_deeper(value, below)),
        Value::Object(map) => map.values().any(|value| is_deeper(value, below)),
        _ => false,
    }
}
