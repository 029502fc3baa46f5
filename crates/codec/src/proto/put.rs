//! The protobuf wire, written to a vector.

use crate::schema::{Field, Message, Type};

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

/// Numbers below this have a tag of one byte.
const SHORT: u32 = 16;

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

/// A tag and a number behind it.
#[inline]
fn head(out: &mut Vec<u8>, number: u32, kind: u32, value: u64) {
    // Most heads are two bytes, which are added with one look at the room that is left.
    if number < SHORT && value < 0x80 {
        out.extend_from_slice(&[(number << 3 | kind) as u8, value as u8]);
    } else {
        long_head(out, number, kind, value);
    }
}

#[inline(never)]
fn long_head(out: &mut Vec<u8>, number: u32, kind: u32, value: u64) {
    tag(out, number, kind);
    varint(out, value);
}

/// An entry of bytes, text or a message that is at hand.
#[inline]
pub(crate) fn bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    head(out, number, LENGTH, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A varint entry.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, number: u32, value: u64) {
    head(out, number, VARINT, value);
}

/// An entry of a floating point number.
pub(crate) fn double(out: &mut Vec<u8>, number: u32, value: f64) {
    tag(out, number, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Begins an entry whose length is not known yet, and tells where its payload starts; [`close`] must follow.
#[inline]
pub(crate) fn open(out: &mut Vec<u8>, number: u32) -> usize {
    // Most payloads are short, and their length fits into the one byte.
    head(out, number, LENGTH, 0);
    out.len()
}

/// Ends an entry that [`open`] began, and tells how far its payload moved.
#[inline]
pub(crate) fn close(out: &mut Vec<u8>, payload: usize) -> usize {
    let length = out.len() - payload;
    if length < 0x80 {
        out[payload - 1] = length as u8;
        return 0;
    }
    close_long(out, payload, length)
}

fn close_long(out: &mut Vec<u8>, payload: usize, length: usize) -> usize {
    let end = out.len();
    varint(out, length as u64);
    // The length was written at the end, and all of it but one byte makes the entry longer.
    let size = out.len() - end;
    let mut varint = [0; 10];
    varint[..size].copy_from_slice(&out[end..]);
    out.truncate(end + size - 1);
    out.copy_within(payload..end, payload + size - 1);
    out[payload - 1..][..size].copy_from_slice(&varint[..size]);
    size - 1
}

/// What the Go encoders write for a field that has no value: nothing for what is a pointer, list or map in Go, and the
/// zero value for all else.
#[inline]
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
            let payload = open(out, at);
            for field in ty.message().into_iter().flat_map(Message::by_wire_order) {
                absent(out, field);
            }
            close(out, payload);
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
