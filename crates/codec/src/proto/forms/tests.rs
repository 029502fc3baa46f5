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
fn every_day_of_the_calendar_has_its_date() {
    let (first, last) = (days(0, 1, 1), days(9999, 12, 31));
    assert_eq!((civil(first), civil(last)), (Some((0, 1, 1)), Some((9999, 12, 31))));
    assert_eq!(civil(first - 1), None);
    let mut before = (0, 1, 0);
    for day in first..=last {
        let date = civil(day).unwrap();
        assert!(before < date, "{before:?}, {date:?}");
        assert_eq!(days(date.0.into(), date.1.into(), date.2.into()), day);
        before = date;
    }
}

#[test]
fn times_are_read_as_go_reads_them() {
    for (bytes, time, micro) in [
        (&b""[..], None, None),
        (b"\x08\x05\x10\x00", Some((5, 0)), Some((5, 0))),
        (b"\x08\x05", Some((5, 0)), Some((5, 0))),
        (b"\x10\xd0\x0f", Some((0, 0)), Some((0, 2000))),
        // The last of each counts, in any order, and what is beyond them does not.
        (b"\x10\x07\x08\x05\x08\x06\x18\x01", Some((6, 0)), Some((6, 7))),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00", Some((-1, 0)), Some((-1, 0))),
        (b"\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01\x10\x00", None, None),
    ] {
        assert_eq!(read_time(bytes, Type::Time), Ok(time), "{bytes:?}");
        assert_eq!(read_time(bytes, Type::MicroTime), Ok(micro), "{bytes:?}");
    }
    for bytes in [&b"\x08"[..], b"\x0a\x00", b"\x08\x05\x12\x00", b"\x08\x05\x10"] {
        assert!(read_time(bytes, Type::Time).is_err(), "{bytes:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_replaced_one_by_one() {
    assert_eq!(text(b"ok"), "ok");
    assert_eq!(text(b"a\xe4\xbd"), "a\u{fffd}\u{fffd}");
    assert_eq!(text(b"\xffb"), "\u{fffd}b");
}

#[test]
fn the_short_way_to_read_a_time_agrees_with_the_long_one() {
    let mut short = 0;
    for year in ["0000", "0001", "1900", "1970", "2000", "2024", "2026", "9998", "9999"] {
        for month in ["00", "01", "02", "03", "08", "12", "13", "1x"] {
            for day in ["00", "01", "28", "29", "30", "31", "32"] {
                for time in [
                    "00:00:00Z",
                    "23:59:59Z",
                    "23:59:60Z",
                    "24:00:00Z",
                    "12:60:00Z",
                    "12:34:56.7Z",
                    "12:34:56.000001Z",
                    "12:34:56.1234567891Z",
                    "12:34:56.Z",
                    "12:34:56",
                    "12:34:56+00:00",
                ] {
                    let text = format!("{year}-{month}-{day}T{time}");
                    let usual = parse_usual_time(text.as_bytes());
                    assert!(usual.is_none() || usual == parse_any_time(&text), "{text}");
                    short += u32::from(usual.is_some());
                }
            }
        }
    }
    assert!(short > 700, "{short}");
}
