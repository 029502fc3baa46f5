//! The skipper against one that looks at every byte.

use super::*;
use crate::tests::hostile::Random;

/// The same as [`Skipper::find_end`] for a value in brackets, without any shortcut. An error is its offset.
fn plainly(bytes: &[u8], depth_max: usize) -> Result<Option<usize>, usize> {
    let (mut at, mut depth, mut in_string) = (0, 0, false);
    while let Some(byte) = bytes.get(at) {
        match (in_string, byte) {
            (true, b'\\') => at += 1,
            (true, b'"') => in_string = false,
            (false, b'"') => in_string = true,
            (false, b'{' | b'[') if depth == depth_max => return Err(at),
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') if depth == 1 => return Ok(Some(at + 1)),
            (false, b'}' | b']') => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    Ok(None)
}

/// Brackets and strings in any order, long enough for several blocks.
fn text(random: &mut Random) -> Vec<u8> {
    const PIECES: [&str; 14] = [
        "{",
        "[",
        "{\"",
        "}",
        "]",
        "}}",
        "\"",
        "\\\"",
        "\\\\",
        "\":\"",
        "a key of a map",
        ",",
        "1",
        "ä",
    ];
    let mut text = b"{".to_vec();
    let length = random.below(400);
    // Some without backslashes, which are the ones that go by blocks to their end.
    let pieces = if random.below(2) == 0 { &PIECES[..] } else { &PIECES[..7] };
    while text.len() < length {
        text.extend_from_slice(pieces[random.below(pieces.len())].as_bytes());
    }
    text
}

#[test]
fn blocks_change_nothing() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut ended, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let bytes = text(&mut random);
        let depth_max = 1 + random.below(40);
        let expected = plainly(&bytes, depth_max);
        let found = Skipper::new(0).find_end(&bytes, depth_max).map_err(|error| error.offset);
        assert_eq!(found, expected, "{:?}, depth {depth_max}", String::from_utf8_lossy(&bytes));
        // The same bytes as they arrive: twice all that is there so far, and in pieces that come once.
        let (first, second) = bytes.split_at(random.below(bytes.len() + 1));
        let mut growing = Skipper::new(0);
        let mut pieces = Skipper::new(0);
        let early = growing.find_end(first, depth_max);
        assert_eq!(pieces.find_end(first, depth_max).is_err(), early.is_err());
        if let Ok(None) = early {
            let late = growing.find_end(&bytes, depth_max).map_err(|error| error.offset);
            assert_eq!(late, expected, "split at {}", first.len());
            pieces.next_piece(first.len());
            let late = pieces.find_end(second, depth_max);
            let late = late.map(|end| end.map(|end| end + first.len()));
            assert_eq!(late.map_err(|error| error.offset + first.len()), expected);
        } else {
            assert_eq!(early.map_err(|error| error.offset), expected);
        }
        ended += usize::from(matches!(expected, Ok(Some(_))));
        refused += usize::from(expected.is_err());
    }
    assert!(ended > 2000 && refused > 500, "the texts show too little: {ended}, {refused}");
}
