use super::*;

#[test]
fn times_are_written_as_go_writes_them() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_251_199, "2024-02-29T23:59:59Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (ZERO_TIME, "0001-01-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(time(seconds, None).unwrap().as_str(), text);
        // jiff ends a day and a bit before the last year does, so that every offset has room.
        assert_eq!(parse_time(text), (seconds < 253_402_207_200).then_some((seconds, 0)));
    }
    assert_eq!(parse_time("1969-12-31T23:59:59.5Z"), Some((-1, 500_000_000)));
    assert_eq!(parse_time("2024-01-01T01:00:00+01:00"), parse_time("2024-01-01T00:00:00Z"));
    assert_eq!(time(5, Some(42)).unwrap().as_str(), "1970-01-01T00:00:05.000042Z");
    assert!(time(253_402_300_800, None).is_none());
    assert!(time(i64::MIN, None).is_none());
    assert!(time(i64::MAX, None).is_none());
}

#[test]
fn bytes_that_are_no_text_are_replaced_one_by_one() {
    assert_eq!(text(b"ok"), "ok");
    assert_eq!(text(b"a\xe4\xbd"), "a\u{fffd}\u{fffd}");
    assert_eq!(text(b"\xffb"), "\u{fffd}b");
}
