//! Quantities in the form in which a server keeps them.
//!
//! A client may write `0.5`, `1024Ki` or `1e3m`; the server's JSON decoder makes `500m`, `1Mi` and an error of them, and
//! what it stores and shows is that form. The rules are those of `resource.ParseQuantity` and `CanonicalizeBytes` in
//! apimachinery, with its odd corner: a text that passes for canonical is kept as it is, sign and zeros included.

use std::borrow::Cow;

/// How the suffix of a quantity counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `n`, `u`, `m`, none, `k`, `M`, …
    Decimal,
    /// `e3`.
    Exponent,
    /// `Ki`, `Mi`, …
    Binary,
}

/// The smallest exponent of ten that a quantity keeps: what is finer is rounded up.
const NANO: i32 = -9;

/// The largest suffix, `E`.
const EXA: i32 = 18;

/// The canonical form of a quantity, or `None` if the text is none, or beyond 30 digits.
pub(crate) fn canonical(text: &str) -> Option<Cow<'_, str>> {
    if is_canonical(text) { Some(Cow::Borrowed(text)) } else { canonicalize(text) }
}

/// Whether the text is a plain number in its canonical form, as most are that a server sent; if not, it may still be one.
fn is_canonical(text: &str) -> bool {
    /// So many digits and the suffix `Gi` are less than the most that a quantity can hold.
    const PLAIN: usize = 9;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.split_at(digits);
    if digits > PLAIN {
        return false;
    }
    let value = number.bytes().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    match suffix {
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" => value % 1000 != 0,
        "Ki" | "Mi" | "Gi" => value % 1024 != 0 && !number.starts_with('0'),
        _ => false,
    }
}

fn canonicalize(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return None;
    }
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let digits_end = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = unsigned.split_at(digits_end);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
        None => ("", rest),
    };
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let whole = whole.trim_start_matches('0');
    if whole.len() + fraction.len() > 30 || !has_digits {
        return None;
    }
    let (format, exponent) = interpret(suffix)?;
    let digits: i128 = match [whole, fraction].concat().as_str() {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    if keeps_its_text(whole, fraction, digits, format, exponent) {
        return Some(Cow::Borrowed(text));
    }
    let scale = i32::try_from(fraction.len()).ok()?;
    let (magnitude, scale) = match format {
        Format::Binary => (digits.checked_shl(exponent.cast_unsigned())?, -scale),
        Format::Decimal | Format::Exponent => (digits, exponent.checked_sub(scale)?),
    };
    // A shift drops what does not fit.
    if format == Format::Binary && magnitude >> exponent != digits {
        return None;
    }
    let (magnitude, scale) = at_least_nano(magnitude, scale)?;
    let text = shown(magnitude, scale, format)?;
    Some(Cow::Owned(if negative && text != "0" { format!("-{text}") } else { text }))
}

fn interpret(suffix: &str) -> Option<(Format, i32)> {
    let (format, exponent) = match suffix {
        "n" => (Format::Decimal, -9),
        "u" => (Format::Decimal, -6),
        "m" => (Format::Decimal, -3),
        "" => (Format::Decimal, 0),
        "k" => (Format::Decimal, 3),
        "M" => (Format::Decimal, 6),
        "G" => (Format::Decimal, 9),
        "T" => (Format::Decimal, 12),
        "P" => (Format::Decimal, 15),
        "E" => (Format::Decimal, 18),
        "Ki" => (Format::Binary, 10),
        "Mi" => (Format::Binary, 20),
        "Gi" => (Format::Binary, 30),
        "Ti" => (Format::Binary, 40),
        "Pi" => (Format::Binary, 50),
        "Ei" => (Format::Binary, 60),
        _ => (Format::Exponent, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some((format, exponent))
}

/// Whether apimachinery takes the text for canonical without a closer look.
fn keeps_its_text(
    whole: &str,
    fraction: &str,
    digits: i128,
    format: Format,
    exponent: i32,
) -> bool {
    let length = whole.len() + fraction.len();
    match format {
        Format::Binary => {
            // About how many decimal digits an int64 has left beside the suffix.
            let room = 15 - exponent * 3 / 10 - 1;
            fraction.is_empty()
                && i32::try_from(length).is_ok_and(|length| length <= room)
                && digits & 7 != 0
        }
        Format::Decimal | Format::Exponent => {
            let scale = i32::try_from(fraction.len()).ok().and_then(|f| exponent.checked_sub(f));
            length <= 18
                && !whole.is_empty()
                && digits % 1000 != 0
                && scale.is_some_and(|scale| scale >= NANO && scale % 3 == 0)
        }
    }
}

/// Rounds up what is finer than a billionth.
fn at_least_nano(magnitude: i128, scale: i32) -> Option<(i128, i32)> {
    if magnitude == 0 || scale >= NANO {
        return Some((magnitude, scale));
    }
    let divisor = 10_i128.checked_pow(NANO.checked_sub(scale)?.cast_unsigned());
    // A divisor beyond 128 bits leaves nothing but the rounding.
    let quotient =
        divisor.map_or(1, |divisor| magnitude / divisor + i128::from(magnitude % divisor != 0));
    Some((quotient, NANO))
}

fn shown(magnitude: i128, scale: i32, format: Format) -> Option<String> {
    if magnitude == 0 {
        return Some("0".to_owned());
    }
    if format == Format::Binary {
        let unit = 10_i128.checked_pow(scale.checked_neg()?.cast_unsigned())?;
        let value = (magnitude / unit).min(i128::from(i64::MAX));
        if magnitude % unit == 0 && value >= 1024 {
            let (mut value, mut step) = (value, 0);
            while value % 1024 == 0 && step < 6 {
                value /= 1024;
                step += 1;
            }
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][step];
            return Some(format!("{value}{suffix}"));
        }
    }
    let (mut magnitude, mut scale) = (magnitude, scale);
    while magnitude % 10 == 0 {
        magnitude /= 10;
        scale = scale.checked_add(1)?;
    }
    while scale % 3 != 0 || scale > EXA && format != Format::Exponent {
        magnitude = magnitude.checked_mul(10)?;
        scale -= 1;
    }
    let suffix = match (format, scale) {
        (_, 0) => Cow::Borrowed(""),
        (Format::Exponent, scale) => Cow::Owned(format!("e{scale}")),
        (_, -9) => Cow::Borrowed("n"),
        (_, -6) => Cow::Borrowed("u"),
        (_, -3) => Cow::Borrowed("m"),
        (_, 3) => Cow::Borrowed("k"),
        (_, 6) => Cow::Borrowed("M"),
        (_, 9) => Cow::Borrowed("G"),
        (_, 12) => Cow::Borrowed("T"),
        (_, 15) => Cow::Borrowed("P"),
        (_, 18) => Cow::Borrowed("E"),
        _ => return None,
    };
    Some(format!("{magnitude}{suffix}"))
}

#[cfg(test)]
mod tests;
