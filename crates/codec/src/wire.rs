//! The protobuf wire format: tags, varints, lengths.

use std::ops::Range;

use crate::json::ScanError;

/// One field of a message.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) value: Value,
    /// The whole field, tag included, in the bytes of the reader.
    pub(crate) span: Range<usize>,
}

/// The value of a field, by wire type. The widths of the fixed types matter to nobody here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Varint(u64),
    Fixed,
    /// Where the contents are, in the bytes of the reader.
    Bytes(Range<usize>),
}

/// Reads the fields of one message, which is a range of larger bytes.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    /// A reader of all of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, end: bytes.len() }
    }

    /// A reader of a message inside.
    pub(crate) fn inner(&self, range: Range<usize>) -> Self {
        Self { bytes: self.bytes, at: range.start, end: range.end }
    }

    fn error(&self, problem: &'static str) -> ScanError {
        ScanError { offset: self.at, problem }
    }

    /// The next field, or `None` at the end of the message.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Field>, ScanError> {
        if self.at >= self.end {
            return Ok(None);
        }
        let start = self.at;
        // Most fields have a number below 16, and are small numbers or text of less than 128 bytes: two bytes in front.
        if let [tag @ 0x08..0x80, second @ ..0x80, rest @ ..] = &self.bytes[start..self.end] {
            let (number, length) = (u32::from(*tag >> 3), usize::from(*second));
            let found = match tag & 7 {
                0 => Some((Value::Varint(u64::from(*second)), start + 2)),
                2 if length <= rest.len() => {
                    let end = start + 2 + length;
                    Some((Value::Bytes(start + 2..end), end))
                }
                _ => None,
            };
            if let Some((value, end)) = found {
                self.at = end;
                return Ok(Some(Field { number, value, span: start..end }));
            }
        }
        self.next_general().map(Some)
    }

    /// The next field, which is there, whatever it is.
    fn next_general(&mut self) -> Result<Field, ScanError> {
        let start = self.at;
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| self.error("field number too large"))?;
        if number == 0 {
            return Err(self.error("field number zero"));
        }
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.fixed(8)?,
            2 => {
                let length = usize::try_from(self.varint()?)
                    .map_err(|_| self.error("length beyond the message"))?;
                if length > self.end - self.at {
                    return Err(self.error("length beyond the message"));
                }
                let range = self.at..self.at + length;
                self.at = range.end;
                Value::Bytes(range)
            }
            5 => self.fixed(4)?,
            _ => return Err(self.error("unknown wire type")),
        };
        Ok(Field { number, value, span: start..self.at })
    }

    fn fixed(&mut self, width: usize) -> Result<Value, ScanError> {
        if self.end - self.at < width {
            return Err(self.error("message ends early"));
        }
        self.at += width;
        Ok(Value::Fixed)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, ScanError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            if self.at >= self.end {
                return Err(self.error("message ends early"));
            }
            let byte = self.bytes[self.at];
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.error("number of more than 64 bits"))
    }

    /// The contents of a field.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &'a [u8] {
        &self.bytes[range]
    }

    /// The text of a field.
    #[inline]
    pub(crate) fn text(&self, range: Range<usize>) -> Result<&'a str, ScanError> {
        let offset = range.start;
        std::str::from_utf8(&self.bytes[range])
            .map_err(|_| ScanError { offset, problem: "string is not UTF-8" })
    }
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "the low seven bits are meant")]
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
    out.push(number as u8);
}

/// How many bytes a varint takes.
pub(crate) fn varint_size(number: u64) -> usize {
    let bits = 64 - (number | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends tag and length of a field of bytes.
pub(crate) fn put_head(out: &mut Vec<u8>, number: u32, length: usize) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, length as u64);
}

/// Appends a field of bytes, even if it is empty, as Go's generated encoders do.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_head(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends a varint field, even if it is zero.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// How many bytes a field of `length` bytes takes, for field numbers below 16.
pub(crate) fn field_size(length: usize) -> usize {
    1 + varint_size(length as u64) + length
}
