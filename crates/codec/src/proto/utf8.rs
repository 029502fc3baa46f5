//! Bytes as text, fast for the short ASCII that nearly all texts of objects are.

#![expect(
    unsafe_code,
    reason = "the standard library's check costs more than the copy of a short text"
)]

/// Topmost bit of every byte, which ASCII has clear.
const HIGH: u128 = u128::from_ne_bytes([0x80; 16]);

/// The text, if the bytes are UTF-8.
#[inline]
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    if is_ascii(bytes) {
        // SAFETY: ASCII is UTF-8.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}

/// Looks at whole words, the last of which overlaps what is before it.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    let all = if let Some(last) = bytes.last_chunk() {
        let (words, _) = bytes.as_chunks();
        words.iter().fold(u128::from_ne_bytes(*last), |all, word| all | u128::from_ne_bytes(*word))
    } else if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        (u64::from_ne_bytes(*head) | u64::from_ne_bytes(*tail)).into()
    } else if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        (u32::from_ne_bytes(*head) | u32::from_ne_bytes(*tail)).into()
    } else {
        bytes.iter().fold(0, |all, byte| all | byte).into()
    };
    all & HIGH == 0
}

#[cfg(test)]
mod tests {
    use super::utf8;

    /// Every length around the words' sizes, with each byte in turn the first of a character that lacks the rest.
    #[test]
    fn tells_utf8_from_what_is_none_at_every_length_and_place() {
        for length in 0..70 {
            let ascii = vec![b'a'; length];
            assert_eq!(utf8(&ascii), std::str::from_utf8(&ascii).ok());
            for place in 0..length {
                for byte in [0x7f, 0x80, 0xc3, 0xff] {
                    let mut bytes = ascii.clone();
                    bytes[place] = byte;
                    assert_eq!(utf8(&bytes), std::str::from_utf8(&bytes).ok(), "{bytes:?}");
                    if place + 1 < length {
                        bytes[place + 1] = 0xa4;
                        assert_eq!(utf8(&bytes), std::str::from_utf8(&bytes).ok(), "{bytes:?}");
                    }
                }
            }
        }
    }
}
