//! What an X.509 certificate says of itself: what rustls does not tell of a certificate it refuses.

use rustls_pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;

/// The longest part of a name that is shown, in characters.
const PART_CHARS_MAX: usize = 64;
/// Parts of a name that are shown.
const PARTS_MAX: usize = 8;

/// Names and time. Empty as far as the bytes are no certificate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// As in `O=acme, CN=api`; parts other than organisations and common names are left out.
    pub(super) subject: String,
    pub(super) issuer: String,
    /// First and last second of validity, in Unix time.
    pub(super) validity: Option<(u64, u64)>,
}

impl Summary {
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Self {
        let Some((issuer, period, subject)) = parts(certificate) else { return Self::default() };
        let (subject, issuer) = (name(subject), name(issuer));
        Self { subject, issuer, validity: times(period) }
    }
}

/// First and last second of validity, in Unix time. `None` if the bytes are no certificate (RFC 5280, 4.1).
pub(super) fn validity(certificate: &CertificateDer<'_>) -> Option<(u64, u64)> {
    let (_, period, _) = parts(certificate)?;
    times(period)
}

/// Issuer, validity and subject.
fn parts<'a>(certificate: &'a CertificateDer<'_>) -> Option<(&'a [u8], &'a [u8], &'a [u8])> {
    let (_, body, _) = element(certificate)?;
    let (_, mut rest, _) = element(body)?;
    let (tag, _, after) = element(rest)?;
    if tag == VERSION {
        rest = after;
    }
    // Serial number and signature algorithm come before.
    for _ in 0..2 {
        (_, _, rest) = element(rest)?;
    }
    let (_, issuer, rest) = element(rest)?;
    let (tag, period, rest) = element(rest)?;
    let (_, subject, _) = element(rest)?;
    (tag == SEQUENCE).then_some((issuer, period, subject))
}

fn times(period: &[u8]) -> Option<(u64, u64)> {
    let (from_tag, from, rest) = element(period)?;
    let (until_tag, until, _) = element(rest)?;
    Some((time(from_tag, from)?, time(until_tag, until)?))
}

/// A distinguished name (RFC 5280, 4.1.2.4), as far as it tells people something.
fn name(mut rest: &[u8]) -> String {
    let mut out = Vec::new();
    while let Some((SET, mut set, after)) = element(rest) {
        rest = after;
        while let Some((SEQUENCE, pair, after)) = element(set) {
            set = after;
            if let Some(part) = attribute(pair)
                && out.len() < PARTS_MAX
            {
                out.push(part);
            }
        }
    }
    out.join(", ")
}

fn attribute(pair: &[u8]) -> Option<String> {
    let (tag, id, value) = element(pair)?;
    // 2.5.4.3 and 2.5.4.10.
    let what = match (tag, id) {
        (OBJECT_ID, [0x55, 0x04, 0x03]) => "CN",
        (OBJECT_ID, [0x55, 0x04, 0x0a]) => "O",
        _ => return None,
    };
    let (tag, text, _) = element(value)?;
    if !matches!(tag, UTF8_STRING | PRINTABLE_STRING | TELETEX_STRING | IA5_STRING) {
        return None;
    }
    // Whoever made the certificate chose the text: no more of it than a name needs, and nothing that steers a terminal.
    let text = String::from_utf8_lossy(text);
    let text: String = text.chars().filter(|c| !c.is_control()).take(PART_CHARS_MAX).collect();
    Some(format!("{what}={text}"))
}

/// One DER element: tag, contents, what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        // More than four bytes of length is no certificate that fits memory.
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        (digits.iter().fold(0, |sum, &digit| sum << 8 | usize::from(digit)), rest)
    };
    let (contents, after) = rest.split_at_checked(length)?;
    Some((tag, contents, after))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, the two forms that RFC 5280 allows.
fn time(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        std::str::from_utf8(digits.get(range)?).ok()?.parse().ok()
    };
    let (year, at) = match (tag, digits.len()) {
        // RFC 5280, 4.1.2.5.1: two digits mean 1950 to 2049.
        (UTC_TIME, 12) => {
            let year = number(0..2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, 2)
        }
        (GENERALIZED_TIME, 14) => (number(0..4)?, 4),
        _ => return None,
    };
    let part = |index: usize| number(at + 2 * index..at + 2 * index + 2);
    let days = days_since_1970(year, part(0)?, part(1)?);
    let seconds = days * 86_400 + part(2)? * 3_600 + part(3)? * 60 + part(4)?;
    // A certificate from before 1970 has been valid since.
    Some(u64::try_from(seconds).unwrap_or(0))
}

/// Days from 1970-01-01 in the Gregorian calendar, by counting from March so that a leap day ends a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let shifted = (month + 9) % 12;
    let year = year - i64::from(month <= 2);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * shifted + 2) / 5 + day - 719_469
}
