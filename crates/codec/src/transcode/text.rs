//! JSON text as Go's `encoding/json` writes it.

use crate::proto::Problem;

/// A string in quotes, with the escapes of Go: those of JSON, and `<`, `>`, `&`, U+2028 and U+2029, so that the text can
/// stand in a script of a web page.
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escaped(out, text.as_bytes(), true);
    out.push(b'"');
}

/// Text with what Go escapes escaped; in text that is JSON already (`inside` false) only what JSON itself does not.
fn escaped(out: &mut Vec<u8>, bytes: &[u8], inside: bool) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let (length, escape): (usize, Option<u8>) = match byte {
            b'<' | b'>' | b'&' => (1, None),
            b'"' | b'\\' if inside => (1, Some(byte)),
            b'\n' if inside => (1, Some(b'n')),
            b'\r' if inside => (1, Some(b'r')),
            b'\t' if inside => (1, Some(b't')),
            8 if inside => (1, Some(b'b')),
            12 if inside => (1, Some(b'f')),
            0..0x20 if inside => (1, None),
            0xe2 if matches!(bytes[at..], [_, 0x80, 0xa8 | 0xa9, ..]) => (3, None),
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&bytes[copied..at]);
        match (length, escape) {
            (_, Some(short)) => out.extend_from_slice(&[b'\\', short]),
            (3, None) => {
                out.extend_from_slice(b"\\u202");
                out.push(HEX[usize::from(bytes[at + 2] & 0xf)]);
            }
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
            }
        }
        at += length;
        copied = at;
    }
    out.extend_from_slice(&bytes[copied..]);
}

/// JSON text from a raw field: without white space, and with the escapes of Go.
///
/// The text has been checked to be JSON.
pub(super) fn compact(out: &mut Vec<u8>, json: &[u8]) {
    spans(json, |span| escaped(out, span, false));
}

/// Calls `f` with the parts of JSON text between white space.
pub(super) fn spans(json: &[u8], mut f: impl FnMut(&[u8])) {
    let (mut start, mut quoted, mut at) = (0, false, 0);
    while at < json.len() {
        match json[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b' ' | b'\n' | b'\r' | b'\t' if !quoted => {
                f(&json[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    f(json.get(start..).unwrap_or_default());
}

/// A number as Go writes it: the shortest digits that lead back to it, with an exponent only far from one.
pub(super) fn float(out: &mut Vec<u8>, value: f64) -> Result<(), Problem> {
    if !value.is_finite() {
        return Err(Problem::Range);
    }
    let magnitude = value.abs();
    let text = if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        // Rust writes no sign before a positive exponent.
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        }
    } else {
        value.to_string()
    };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}
