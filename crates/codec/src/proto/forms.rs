//! The values whose JSON form is not that of their wire type: times, and text that is not UTF-8.

use std::borrow::Cow;

use kubestrata_api_types::Timestamp;

/// Seconds of the zero time of Go, 0001-01-01T00:00:00Z, which JSON shows as null.
pub(crate) const ZERO_TIME: i64 = -62_135_596_800;

/// A short text in place: times come several to an object, and none needs an allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    bytes: [u8; 40],
    length: u8,
}

impl Stamp {
    fn new() -> Self {
        Self { bytes: [0; 40], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.length)] = byte;
        self.length += 1;
    }

    /// `value`, which is below 100, in two digits.
    fn two(&mut self, value: u64) {
        self.push(b'0' + (value / 10) as u8);
        self.push(b'0' + (value % 10) as u8);
    }

    pub(crate) fn as_str(&self) -> &str {
        // Only ASCII is ever pushed.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

/// A time as Go writes it in JSON: RFC 3339 in UTC, with microseconds if `micros` is given.
pub(crate) fn time(seconds: i64, micros: Option<u32>) -> Option<Stamp> {
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400).cast_unsigned();
    let (year, month, day) = civil(days);
    let mut stamp = Stamp::new();
    // Outside of these years there is no RFC 3339 form.
    let year = u64::try_from(year).ok().filter(|year| *year <= 9999)?;
    stamp.two(year / 100);
    stamp.two(year % 100);
    for (separator, value) in [
        (b'-', month),
        (b'-', day),
        (b'T', of_day / 3600),
        (b':', of_day / 60 % 60),
        (b':', of_day % 60),
    ] {
        stamp.push(separator);
        stamp.two(value);
    }
    if let Some(micros) = micros {
        stamp.push(b'.');
        for pair in [micros / 10_000, micros / 100 % 100, micros % 100] {
            stamp.two(u64::from(pair));
        }
    }
    stamp.push(b'Z');
    Some(stamp)
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// Counts in eras of 400 years that begin on the first of March, so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, u64, u64) {
    let days = days.saturating_add(719_468);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month.cast_unsigned(), day.cast_unsigned())
}

/// Seconds and nanoseconds of an RFC 3339 text.
pub(crate) fn parse_time(text: &str) -> Option<(i64, u32)> {
    parse_usual_time(text.as_bytes()).or_else(|| parse_any_time(text))
}

/// The same of a text as Go and `k8s_openapi` write it, in UTC and in the letters of [`time`]; most are.
fn parse_usual_time(text: &[u8]) -> Option<(i64, u32)> {
    let (text, fraction) = text.split_at_checked(19)?;
    let nanos = match fraction {
        b"Z" => 0,
        [b'.', digits @ .., b'Z'] if matches!(digits.len(), 1..=9) => {
            u32::try_from(decimal(digits)?).ok()?
                * 10_u32.pow(9 - u32::try_from(digits.len()).ok()?)
        }
        _ => return None,
    };
    if (text[4], text[7], text[10], text[13], text[16]) != (b'-', b'-', b'T', b':', b':') {
        return None;
    }
    let (year, month, day) = (decimal(&text[..4])?, decimal(&text[5..7])?, decimal(&text[8..10])?);
    let (hour, minute) = (decimal(&text[11..13])?, decimal(&text[14..16])?);
    let second = decimal(&text[17..])?;
    let days = days(year, month, day);
    // A day that is not in its month, and the last year, whose end is beyond what is allowed, take the long way.
    if civil(days) != (year, month.cast_unsigned(), day.cast_unsigned()) || year > 9998 {
        return None;
    }
    (hour < 24 && minute < 60 && second < 60)
        .then(|| (((days * 24 + hour) * 60 + minute) * 60 + second, nanos))
}

fn decimal(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| {
        digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0'))
    })
}

/// The day counted from 1970-01-01: the way back from [`civil`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, shifted) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn parse_any_time(text: &str) -> Option<(i64, u32)> {
    let time: Timestamp = text.parse().ok()?;
    let (seconds, nanos) = (time.as_second(), time.subsec_nanosecond());
    // jiff gives both parts the same sign; protobuf counts nanoseconds forward.
    let (seconds, nanos) =
        if nanos < 0 { (seconds - 1, nanos + 1_000_000_000) } else { (seconds, nanos) };
    Some((seconds, u32::try_from(nanos).ok()?))
}

/// Text for bytes that should be UTF-8.
///
/// Protobuf clients do store text cut in the middle of a character, in messages of Events for one. Go shows each byte that
/// belongs to no character as U+FFFD, and so do we; to refuse would hide the object.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(replaced(bytes)),
    }
}

#[cold]
fn replaced(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for _ in chunk.invalid() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

#[cfg(test)]
mod tests;
