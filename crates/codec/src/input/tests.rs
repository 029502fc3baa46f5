//! Tests of the input.

use bytes::Bytes;

use super::{BadValue, FRONT, Input};

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

#[test]
fn what_comes_in_one_piece_is_not_copied() {
    let chunk = bytes(r#"{"a":1} {"b":2}"#);
    let place = chunk.as_ptr();
    let mut input = Input::default();
    input.push(chunk);
    assert_eq!(input.peek(), Some(b'{'));
    let value = input.take_value(100).ok().flatten().unwrap();
    assert_eq!((&*value, value.as_ptr()), (&br#"{"a":1}"#[..], place));
    assert_eq!((input.peek(), input.position(), input.available()), (Some(b'{'), 8, 7));
}

/// However a value is cut, it is the same value, and the input stands behind it.
#[test]
fn values_are_joined_wherever_they_are_cut() {
    let value = r#"{"a":"x\"]}\\","b":[{},{"c":"\u0041\\\""}]}"#;
    let text = format!("{value}, ");
    for first in 0..=value.len() {
        for second in first..=value.len() {
            let mut input = Input::default();
            let mut found = None;
            for piece in [&text[..first], "", &text[first..second], &text[second..]] {
                assert!(found.is_none() || ["", ", "].contains(&piece), "the value ended early");
                input.push(bytes(piece));
                found = found.or_else(|| input.take_value(100).ok().flatten());
            }
            assert_eq!(found.as_deref(), Some(value.as_bytes()));
            assert_eq!((input.position(), input.rest()), (value.len(), &b", "[..]));
            assert!(!input.is_within_value());
        }
    }
}

#[test]
fn bytes_are_taken_when_all_are_there() {
    let text: Vec<u8> = (0..200).collect();
    for cut in 0..200 {
        let mut input = Input::default();
        input.push(Bytes::copy_from_slice(&text[..cut]));
        assert_eq!(input.take(150).is_some(), cut >= 150);
        if cut < 150 {
            input.hold();
            input.push(Bytes::copy_from_slice(&text[cut..]));
            let mut room = [0; FRONT];
            assert!(input.front(&mut room).starts_with(&text[..FRONT]));
            assert_eq!(input.take(150).as_deref(), Some(&text[..150]));
        }
    }
}

/// A sender of single bytes costs little more than they are, and a value beyond the limit ends it.
#[test]
fn small_pieces_are_held_together() {
    let mut input = Input::default();
    input.push(bytes("["));
    assert!(matches!(input.take_value(10_000), Ok(None)));
    for count in 1..10_000 {
        input.push(bytes(" "));
        assert!(matches!(input.take_value(10_000), Ok(None)));
        let room: usize = input.held.iter().map(Vec::capacity).sum();
        assert!(room <= count + count / 8 + 8, "{room} bytes for {count}");
        assert!(input.held.len() <= count / super::SMALL + 1);
    }
    input.push(bytes(" "));
    assert!(matches!(input.take_value(10_000), Err(BadValue::TooLarge)));
}

#[test]
fn what_is_pushed_too_early_is_kept() {
    let mut input = Input::default();
    input.push(bytes("[1]"));
    input.push(bytes("[2]"));
    let mut next = || input.take_value(10).ok().flatten().unwrap();
    assert_eq!((&*next(), &*next()), (&b"[1]"[..], &b"[2]"[..]));
}
