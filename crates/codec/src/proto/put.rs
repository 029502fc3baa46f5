//! The protobuf wire, written to a vector.

use crate::schema::{Field, Message, Type};

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

#[inline]
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn tag(out: &mut Vec<u8>, number: u32, kind: u32) {
    varint(out, u64::from(number << 3 | kind));
}

/// An entry of bytes, text or a message that is at hand.
#[inline]
pub(crate) fn bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    tag(out, number, LENGTH);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A varint entry.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, number: u32, value: u64) {
    tag(out, number, VARINT);
    varint(out, value);
}

/// An entry of a floating point number.
pub(crate) fn double(out: &mut Vec<u8>, number: u32, value: f64) {
    tag(out, number, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Makes what was written since `start` the payload of field `number`, and tells how far it moved.
pub(crate) fn wrap(out: &mut Vec<u8>, start: usize, number: u32) -> usize {
    let end = out.len();
    tag(out, number, LENGTH);
    varint(out, (end - start) as u64);
    let head = out.len() - end;
    out[start..].rotate_right(head);
    head
}

/// What the Go encoders write for a field that has no value: nothing for what is a pointer, list or map in Go, and the
/// zero value for all else.
pub(crate) fn absent(out: &mut Vec<u8>, field: &Field) {
    if !field.is_nil() {
        zero(out, field.ty(), field.number());
    }
}

/// The zero value of a type.
pub(crate) fn zero(out: &mut Vec<u8>, ty: Type, at: u32) {
    match ty {
        Type::Bool | Type::Int32 | Type::Int64 => number(out, at, 0),
        Type::Double => double(out, at, 0.0),
        Type::Quantity => bytes(out, at, &[0x0a, 1, b'0']),
        Type::IntOrString => bytes(out, at, &[0x08, 0, 0x10, 0, 0x1a, 0]),
        Type::SchemaOrBool => bytes(out, at, &[0x08, 0]),
        Type::Nested(_) => {
            let start = out.len();
            for field in ty.message().into_iter().flat_map(Message::by_wire_order) {
                absent(out, field);
            }
            wrap(out, start, at);
        }
        Type::Text
        | Type::Bytes
        | Type::List(_)
        | Type::Time
        | Type::MicroTime
        | Type::Json
        | Type::SchemaOrArray
        | Type::SchemaOrStrings => bytes(out, at, &[]),
    }
}
