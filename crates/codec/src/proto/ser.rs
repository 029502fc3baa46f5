//! `serde::Serializer` into the writer: the part that is compiled for every type, and so kept small.

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::error::Error;
use super::writer::{Target, Writer};

/// Writes one value to its target.
#[derive(Debug)]
pub(crate) struct Into<'w> {
    pub(crate) writer: &'w mut Writer,
    pub(crate) target: Target,
}

/// An object or a list whose parts are still to come, the innermost that the writer has open: one type for all.
#[derive(Debug)]
pub(crate) struct Parts<'w> {
    writer: &'w mut Writer,
    /// It is the value in an object with one key, as an enum's variant with content is.
    is_variant: bool,
}

impl<'w> Into<'w> {
    fn object(self) -> Result<Parts<'w>, Error> {
        self.writer.open_map(self.target)?;
        Ok(Parts { writer: self.writer, is_variant: false })
    }

    fn list(self) -> Result<Parts<'w>, Error> {
        self.writer.open_list(self.target)?;
        Ok(Parts { writer: self.writer, is_variant: false })
    }

    fn variant(self, name: &str, is_list: bool) -> Result<Parts<'w>, Error> {
        self.writer.open_map(self.target)?;
        let target = self.writer.field(name)?;
        if is_list {
            self.writer.open_list(target)?;
        } else {
            self.writer.open_map(target)?;
        }
        Ok(Parts { writer: self.writer, is_variant: true })
    }
}

impl Parts<'_> {
    fn entry<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        let target = self.writer.field(name)?;
        self.value(target, value)
    }

    fn value<T: Serialize + ?Sized>(&mut self, target: Target, value: &T) -> Result<(), Error> {
        value.serialize(Into { writer: self.writer, target })?;
        self.writer.done();
        Ok(())
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let target = self.writer.element();
        self.value(target, value)
    }

    fn finish(self) {
        self.writer.close();
        if self.is_variant {
            self.writer.done();
            self.writer.close();
        }
    }
}

/// JSON knows one type of integer.
macro_rules! integers {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, value: $type) -> Result<(), Error> {
            self.writer.put_integer(self.target, i128::from(value))
        })*
    };
}

impl<'w> Serializer for Into<'w> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'w>;
    type SerializeTuple = Parts<'w>;
    type SerializeTupleStruct = Parts<'w>;
    type SerializeTupleVariant = Parts<'w>;
    type SerializeMap = Parts<'w>;
    type SerializeStruct = Parts<'w>;
    type SerializeStructVariant = Parts<'w>;

    integers! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.writer.put_bool(self.target, value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.writer.put_float(self.target, f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.writer.put_float(self.target, value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.writer.put_text(self.target, value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.writer.put_text(self.target, value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.writer.put_bytes(self.target, value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.writer.put_null(self.target)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.writer.put_null(self.target)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.writer.put_null(self.target)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.writer.put_text(self.target, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut parts = self.object()?;
        parts.entry(variant, value)?;
        parts.finish();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'w>, Error> {
        self.list()
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'w>, Error> {
        self.list()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'w>, Error> {
        self.list()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'w>, Error> {
        self.variant(variant, true)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'w>, Error> {
        self.object()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'w>, Error> {
        self.object()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'w>, Error> {
        self.variant(variant, false)
    }

    fn is_human_readable(&self) -> bool {
        // Types with two forms must use the one that JSON has.
        true
    }
}

/// The traits for lists differ in the names of their methods only.
macro_rules! list_traits {
    ($($trait:ident $method:ident;)*) => {
        $(impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        })*
    };
}

list_traits! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        key.serialize(Into { writer: self.writer, target: Target::Key })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.value(self.writer.pending, value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish();
        Ok(())
    }
}

/// The same for objects whose names are known to the compiler.
macro_rules! struct_traits {
    ($($trait:ident)*) => {
        $(impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.entry(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish();
                Ok(())
            }
        })*
    };
}

struct_traits! { SerializeStruct SerializeStructVariant }
