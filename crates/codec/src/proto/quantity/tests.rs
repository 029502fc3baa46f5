use super::*;

#[test]
fn quantities_become_what_apimachinery_makes_of_them() {
    for (text, expected) in [
        ("0", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("1000", "1k"),
        ("100m", "100m"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("1500000", "1500k"),
        ("1024Ki", "1Mi"),
        ("1025Ki", "1025Ki"),
        ("512", "512"),
        ("8Gi", "8Gi"),
        ("16384Mi", "16Gi"),
        ("0.5Gi", "512Mi"),
        ("1.5Ki", "1536"),
        ("0.3Ki", "307200m"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        ("12e6", "12e6"),
        ("1E", "1E"),
        ("1E3", "1E3"),
        ("10n", "10n"),
        ("0.1n", "1n"),
        ("0.00000000001", "1n"),
        ("-1.5Gi", "-1536Mi"),
        (" 7 ", "7"),
        ("+1", "+1"),
        ("1.", "1."),
        ("01", "01"),
        ("1000Ki", "1000Ki"),
        ("1.10", "1100m"),
        ("1e1", "10"),
        ("2000Mi", "2000Mi"),
        (".5", "500m"),
        ("9223372036854775807", "9223372036854775807"),
        ("16Ei", "9223372036854775807"),
    ] {
        assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
    }
    for text in ["", "x", "1x", "1 Gi", "1.2.3", "--1", "1e", "Ki", "1e99999999999", "."] {
        assert_eq!(canonical(text), None, "{text}");
    }
}

#[test]
fn the_short_way_agrees_with_the_long_one() {
    let mut short = 0;
    for suffix in ["", "n", "m", "k", "G", "T", "E", "Ki", "Mi", "Ti", "Ei", "e1", "x"] {
        for number in (0..2100).map(|n: u32| n.to_string()).chain(
            ["01", "010", "+1", "1.5", "123456789", "999999999", "1234567890"].map(str::to_owned),
        ) {
            let text = format!("{number}{suffix}");
            assert_eq!(canonical(&text), canonicalize(&text), "{text}");
            short += u32::from(is_canonical(&text));
        }
    }
    assert!(short > 9 * 2000, "{short}");
}
