//! The values whose JSON form is not that of their wire type: times, and text that is not UTF-8.

use std::borrow::Cow;

use kubestrata_api_types::Timestamp;

use super::utf8::utf8;
use super::value::Parts;
use super::wire::{self, Fault};
use crate::schema::Type;

/// Seconds of the zero time of Go, 0001-01-01T00:00:00Z, which JSON shows as null.
pub(crate) const ZERO_TIME: i64 = -62_135_596_800;

/// The text of a time in place: times come several to an object, and none needs an allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    bytes: [u8; 27],
    length: u8,
}

impl Stamp {
    pub(crate) fn as_str(&self) -> &str {
        // It is digits and what stands between them.
        utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

/// Seconds and nanoseconds of a `Time` or `MicroTime`. `None` if there are none, and for Go's zero time, the year 1: JSON
/// shows both as null.
pub(crate) fn read_time(bytes: &[u8], ty: Type) -> Result<Option<(i64, u32)>, Fault> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (seconds, nanos) = match read_usual_time(bytes) {
        Some(found) => found,
        None => {
            let parts = Parts::read(bytes, ty.into())?;
            (parts.number(1), parts.number(2))
        }
    };
    let seconds = seconds.cast_signed();
    let nanos = match ty {
        Type::MicroTime => u32::try_from(nanos).unwrap_or_default().min(999_999_999),
        // A `Time` has whole seconds, and Go does not read what else is there.
        _ => 0,
    };
    Ok((seconds != ZERO_TIME || nanos >= 1000).then_some((seconds, nanos)))
}

/// The two numbers of a time as Go writes them.
fn read_usual_time(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut rest = bytes.strip_prefix(&[0x08])?;
    let seconds = wire::varint(&mut rest).ok()?;
    let mut rest = rest.strip_prefix(&[0x10])?;
    let nanos = wire::varint(&mut rest).ok()?;
    rest.is_empty().then_some((seconds, nanos))
}

/// A time as Go writes it in JSON: RFC 3339 in UTC, with microseconds if `micros` is given.
pub(crate) fn time(seconds: i64, micros: Option<u32>) -> Option<Stamp> {
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400).cast_unsigned() as u32;
    // Outside of these years there is no RFC 3339 form.
    let (year, month, day) = civil(days).filter(|(year, ..)| *year <= 9999)?;
    let mut bytes = *b"0000-00-00T00:00:00.000000Z";
    let mut put = |at: usize, value: u32| {
        // Of what is below 100, a tenth, without a division.
        let tens = (value * 103) >> 10;
        bytes[at] = b'0' + tens as u8;
        bytes[at + 1] = b'0' + (value - tens * 10) as u8;
    };
    put(0, year / 100);
    put(2, year % 100);
    put(5, month);
    put(8, day);
    put(11, of_day / 3600);
    put(14, of_day / 60 % 60);
    put(17, of_day % 60);
    let Some(micros) = micros else {
        bytes[19] = b'Z';
        return Some(Stamp { bytes, length: 20 });
    };
    put(20, micros / 10_000);
    put(22, micros / 100 % 100);
    put(24, micros % 100);
    Some(Stamp { bytes, length: 27 })
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar. `None` before the year 0
/// and some million years after it.
///
/// Counts in eras of 400 years that begin on the first of March, so that the leap day is the last of its year; in 32 bits,
/// whose divisions are cheaper, from an era before the year 0 on.
fn civil(days: i64) -> Option<(u32, u32, u32)> {
    let days = u32::try_from(days.saturating_add(719_468 + 146_097)).ok()?;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u32::from(month <= 2);
    Some((year.checked_sub(400)?, month, day))
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
    let is_day =
        civil(days).is_some_and(|(y, m, d)| (y.into(), m.into(), d.into()) == (year, month, day));
    if !is_day || year > 9998 {
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
    match utf8(bytes) {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(replaced(bytes)),
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
