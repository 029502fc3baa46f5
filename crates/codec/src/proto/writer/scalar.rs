//! Values without parts, each in the form of its type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Target, Writer};
use crate::proto::error::{Error, Problem};
use crate::proto::forms::{self, ZERO_TIME};
use crate::proto::{put, quantity};
use crate::schema::Type;

impl Writer {
    pub(crate) fn put_null(&mut self, target: Target) -> Result<(), Error> {
        match target {
            Target::Value { ty, number, element: true } => put::zero(&mut self.out, ty, number),
            Target::Json => self.out.extend_from_slice(b"null"),
            Target::Root(_) | Target::Key => return Err(self.mismatch("null", target)),
            Target::Value { .. } | Target::List(..) | Target::Map(..) | Target::Ignored => {}
        }
        Ok(())
    }

    pub(crate) fn put_bool(&mut self, target: Target, value: bool) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Bool, number, .. } => {
                put::number(&mut self.out, number, u64::from(value));
            }
            Target::Value { ty: Type::SchemaOrBool, number, .. } => {
                put::bytes(&mut self.out, number, &[0x08, u8::from(value)]);
            }
            _ => return self.put_json(target, "a boolean", if value { "true" } else { "false" }),
        }
        Ok(())
    }

    pub(crate) fn put_integer(&mut self, target: Target, value: i128) -> Result<(), Error> {
        let out_of_range = |writer: &Self| writer.mismatch("an integer out of range", target);
        match target {
            Target::Value { ty: Type::Int32, number, .. } => {
                let value = i32::try_from(value).map_err(|_| out_of_range(self))?;
                put::number(&mut self.out, number, i64::from(value).cast_unsigned());
            }
            Target::Value { ty: Type::Int64, number, .. } => {
                let value = i64::try_from(value).map_err(|_| out_of_range(self))?;
                put::number(&mut self.out, number, value.cast_unsigned());
            }
            Target::Value { ty: Type::Double, number, .. } => {
                put::double(&mut self.out, number, value as f64);
            }
            Target::Value { ty: Type::IntOrString, number, .. } => {
                let value = i32::try_from(value).map_err(|_| out_of_range(self))?;
                let payload = put::open(&mut self.out, number);
                put::number(&mut self.out, 1, 0);
                put::number(&mut self.out, 2, i64::from(value).cast_unsigned());
                put::bytes(&mut self.out, 3, &[]);
                put::close(&mut self.out, payload);
            }
            Target::Value { ty: Type::Quantity, .. } => {
                return self.put_text(target, &value.to_string());
            }
            _ => return self.put_json(target, "an integer", &value.to_string()),
        }
        Ok(())
    }

    pub(crate) fn put_float(&mut self, target: Target, value: f64) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Double, number, .. } if value.is_finite() => {
                put::double(&mut self.out, number, value);
                Ok(())
            }
            Target::Value { ty: Type::Quantity, .. } if value.is_finite() => {
                self.put_text(target, &value.to_string())
            }
            _ => match serde_json::Number::from_f64(value) {
                Some(number) => self.put_json(target, "a number", &number.to_string()),
                None => Err(self.error(Problem::Range)),
            },
        }
    }

    #[inline]
    pub(crate) fn put_text(&mut self, target: Target, text: &str) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Text, number, .. } => {
                put::bytes(&mut self.out, number, text.as_bytes());
                Ok(())
            }
            _ => self.put_other_text(target, text),
        }
    }

    fn put_other_text(&mut self, target: Target, text: &str) -> Result<(), Error> {
        match target {
            Target::Value { ty, number, .. } => {
                let payload = put::open(&mut self.out, number);
                self.put_special(target, ty, text)?;
                put::close(&mut self.out, payload);
            }
            Target::Json => json_text(&mut self.out, text),
            Target::Key => self.pending = self.field(text)?,
            Target::Ignored => {}
            Target::Root(_) | Target::List(..) | Target::Map(..) => {
                return Err(self.mismatch("a string", target));
            }
        }
        Ok(())
    }

    /// The contents of an entry of a type whose JSON form is text of a certain form.
    fn put_special(&mut self, target: Target, ty: Type, text: &str) -> Result<(), Error> {
        let malformed = |writer: &Self| writer.mismatch("a malformed string", target);
        match ty {
            Type::Bytes => {
                STANDARD.decode_vec(text, &mut self.out).map_err(|_| malformed(self))?;
            }
            Type::Time | Type::MicroTime => {
                let (seconds, nanos) = forms::parse_time(text).ok_or_else(|| malformed(self))?;
                let nanos = if ty == Type::Time { 0 } else { nanos / 1000 * 1000 };
                if seconds != ZERO_TIME || nanos != 0 {
                    put::number(&mut self.out, 1, seconds.cast_unsigned());
                    put::number(&mut self.out, 2, u64::from(nanos));
                }
            }
            Type::Quantity => {
                let quantity = quantity::canonical(text).ok_or_else(|| malformed(self))?;
                put::bytes(&mut self.out, 1, quantity.as_bytes());
            }
            Type::IntOrString => {
                put::number(&mut self.out, 1, 1);
                put::number(&mut self.out, 2, 0);
                put::bytes(&mut self.out, 3, text.as_bytes());
            }
            Type::Json => {
                let payload = put::open(&mut self.out, 1);
                json_text(&mut self.out, text);
                put::close(&mut self.out, payload);
            }
            _ => return Err(self.mismatch("a string", target)),
        }
        Ok(())
    }

    pub(crate) fn put_bytes(&mut self, target: Target, bytes: &[u8]) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Bytes, number, .. } => {
                put::bytes(&mut self.out, number, bytes);
                Ok(())
            }
            _ => Err(self.mismatch("bytes", target)),
        }
    }

    /// JSON text that is at hand, into a field of JSON.
    pub(crate) fn put_json(&mut self, target: Target, what: &str, text: &str) -> Result<(), Error> {
        match target {
            Target::Value { ty: Type::Json, number, .. } => {
                let payload = put::open(&mut self.out, number);
                put::bytes(&mut self.out, 1, text.as_bytes());
                put::close(&mut self.out, payload);
            }
            Target::Json => self.out.extend_from_slice(text.as_bytes()),
            Target::Key => self.pending = self.field(text)?,
            Target::Ignored => {}
            Target::Root(_) | Target::List(..) | Target::Map(..) | Target::Value { .. } => {
                return Err(self.mismatch(what, target));
            }
        }
        Ok(())
    }
}

/// A JSON string.
pub(super) fn json_text(out: &mut Vec<u8>, text: &str) {
    // Writing a string into a vector cannot fail.
    let _ = serde_json::to_writer(out, text);
}
