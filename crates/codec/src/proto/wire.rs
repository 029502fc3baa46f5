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

/// A problem, and how many bytes of the slice were left where it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) problem: Problem,
    /// Address of the place; only ever compared with that of the input.
    pub(crate) address: usize,
}

#[cold]
fn fault(problem: Problem, at: &[u8]) -> Fault {
    Fault { problem, address: at.as_ptr() as usize }
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
    let problem = if rest.len() < 10 { Problem::Truncated } else { Problem::Varint };
    Err(fault(problem, rest))
}

/// Reads a tag: field number and wire type.
#[inline]
pub(crate) fn tag(rest: &mut &[u8]) -> Result<(u32, u8), Fault> {
    let start = *rest;
    let tag = varint(rest)?;
    match u32::try_from(tag >> 3) {
        Ok(number) if number != 0 => Ok((number, (tag & 7) as u8)),
        _ => Err(fault(Problem::Tag, start)),
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
        None => Err(fault(Problem::Truncated, start)),
    }
}

/// Reads one entry.
#[inline]
pub(crate) fn entry<'a>(rest: &mut &'a [u8]) -> Result<(u32, Wire<'a>), Fault> {
    let start = *rest;
    let (number, kind) = tag(rest)?;
    let wire = match kind {
        0 => Wire::Varint(varint(rest)?),
        2 => Wire::Bytes(bytes(rest)?),
        1 => Wire::Fixed64(u64::from_le_bytes(fixed(rest)?)),
        5 => Wire::Fixed32(u32::from_le_bytes(fixed(rest)?)),
        _ => return Err(fault(Problem::Tag, start)),
    };
    Ok((number, wire))
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Fault> {
    match rest.split_first_chunk() {
        Some((head, tail)) => {
            *rest = tail;
            Ok(*head)
        }
        None => Err(fault(Problem::Truncated, rest)),
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
