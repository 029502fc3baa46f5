//! The protobuf wire: tags, varints and lengths, read from a slice.

use super::error::Problem;

/// The value of one entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl Wire<'_> {
    /// A zero, or nothing.
    #[inline]
    pub(super) fn is_zero(self) -> bool {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => value == 0,
            Self::Fixed32(value) => value == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }
}

/// What is wrong with the wire, small enough to be handed out of the innermost loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
    Truncated,
    Varint,
    Tag,
    WireType,
}

impl From<Malformed> for Problem {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Truncated => Self::Truncated,
            Malformed::Varint => Self::Varint,
            Malformed::Tag => Self::Tag,
            Malformed::WireType => Self::WireType,
        }
    }
}

/// A problem and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) malformed: Malformed,
    /// Address of the place; only ever compared with that of the input.
    pub(crate) address: usize,
}

#[cold]
pub(crate) fn fault(malformed: Malformed, at: &[u8]) -> Fault {
    Fault { malformed, address: at.as_ptr() as usize }
}

/// Reads one varint off the front of `rest`.
#[inline]
pub(crate) fn varint(rest: &mut &[u8]) -> Result<u64, Fault> {
    match rest {
        [byte, tail @ ..] if *byte < 0x80 => {
            let value = u64::from(*byte);
            *rest = tail;
            Ok(value)
        }
        _ => long_varint(rest),
    }
}

fn long_varint(rest: &mut &[u8]) -> Result<u64, Fault> {
    let mut value = 0_u64;
    for (index, byte) in rest.iter().take(10).enumerate() {
        // The tenth byte holds the topmost bit of 64 alone; as in Go, what it holds beyond that is dropped.
        value |= u64::from(byte & 0x7f).wrapping_shl(u32::try_from(index * 7).unwrap_or(0));
        if *byte < 0x80 {
            *rest = &rest[index + 1..];
            return Ok(value);
        }
    }
    let malformed = if rest.len() < 10 { Malformed::Truncated } else { Malformed::Varint };
    Err(fault(malformed, rest))
}

/// Reads a tag: field number and wire type.
#[inline]
fn tag(rest: &mut &[u8]) -> Result<(usize, u8), Fault> {
    let start = *rest;
    let tag = varint(rest)?;
    match u32::try_from(tag >> 3) {
        Ok(number) if number != 0 => Ok((number as usize, (tag & 7) as u8)),
        _ => Err(fault(Malformed::Tag, start)),
    }
}

/// Reads a length and that many bytes.
#[inline]
pub(crate) fn bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Fault> {
    let start = *rest;
    let length = varint(rest)?;
    match usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length)) {
        Some((head, tail)) => {
            *rest = tail;
            Ok(head)
        }
        None => Err(fault(Malformed::Truncated, start)),
    }
}

/// Reads one entry.
///
/// The number is as wide as a register: a narrower one, written to memory by one of two ways and read from it as a
/// whole, would hold up the processor at every entry.
#[inline]
pub(crate) fn entry<'a>(rest: &mut &'a [u8]) -> Result<(usize, Wire<'a>), Fault> {
    if let Some((number, wire, tail)) = short_entry(rest) {
        *rest = tail;
        return Ok((number, wire));
    }
    any_entry(rest)
}

/// An entry of the most frequent form, and what is behind it: the number is below 16, and the value a small number or
/// text of less than 128 bytes, so that there are two bytes in front. `None` if it is any other.
#[inline]
pub(crate) fn short_entry(rest: &[u8]) -> Option<(usize, Wire<'_>, &[u8])> {
    let [tag @ 0x08..0x80, second @ ..0x80, tail @ ..] = rest else { return None };
    let number = usize::from(*tag >> 3);
    match tag & 7 {
        0 => Some((number, Wire::Varint(u64::from(*second)), tail)),
        2 => {
            let (head, tail) = tail.split_at_checked(usize::from(*second))?;
            Some((number, Wire::Bytes(head), tail))
        }
        _ => None,
    }
}

/// An entry of any usual form, and what is behind it: tag, number and length take at most two bytes each. `None` if it is
/// any other.
#[inline]
pub(super) fn usual_entry(rest: &[u8]) -> Option<(usize, Wire<'_>, &[u8])> {
    let (tag, rest) = usual_varint(rest)?;
    let (value, rest) = usual_varint(rest)?;
    let number = tag >> 3;
    match tag & 7 {
        0 => Some((number, Wire::Varint(value as u64), rest)),
        2 => {
            let (head, tail) = rest.split_at_checked(value)?;
            Some((number, Wire::Bytes(head), tail))
        }
        _ => None,
    }
}

#[inline]
pub(super) fn usual_varint(rest: &[u8]) -> Option<(usize, &[u8])> {
    match rest {
        [byte @ ..0x80, rest @ ..] => Some((usize::from(*byte), rest)),
        [low, high @ ..0x80, rest @ ..] => {
            Some((usize::from(*low & 0x7f) | usize::from(*high) << 7, rest))
        }
        _ => None,
    }
}

/// An entry of any form.
#[inline(never)]
fn any_entry<'a>(rest: &mut &'a [u8]) -> Result<(usize, Wire<'a>), Fault> {
    let start = *rest;
    let (number, kind) = tag(rest)?;
    // By far the most, asked for apart since a jump by table is hard to foresee.
    if kind == 2 {
        return Ok((number, Wire::Bytes(bytes(rest)?)));
    }
    let wire = match kind {
        0 => Wire::Varint(varint(rest)?),
        1 => Wire::Fixed64(u64::from_le_bytes(fixed(rest)?)),
        5 => Wire::Fixed32(u32::from_le_bytes(fixed(rest)?)),
        _ => return Err(fault(Malformed::Tag, start)),
    };
    Ok((number, wire))
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Fault> {
    match rest.split_first_chunk() {
        Some((head, tail)) => {
            *rest = tail;
            Ok(*head)
        }
        None => Err(fault(Malformed::Truncated, rest)),
    }
}

/// In what order the fields of a message stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Each number once, rising.
    Distinct,
    /// Rising, some more than once in a row: what Go writes for lists and maps.
    Runs,
    /// Anything else: a field may be in separate places.
    Mixed,
}

/// The order of the fields of one message, found together with a check of all its tags and lengths.
pub(crate) fn order(mut rest: &[u8]) -> Result<Order, Fault> {
    let mut last = 0;
    let mut order = Order::Distinct;
    while !rest.is_empty() {
        let (number, _) = entry(&mut rest)?;
        if number <= last {
            let found = if number == last { Order::Runs } else { Order::Mixed };
            order = order.max(found);
        }
        last = number;
    }
    Ok(order)
}
