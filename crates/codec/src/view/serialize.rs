//! Picks the values at a path while an object serializes, and builds nothing of the rest.

use std::fmt::Display;

use kubestrata_api_types::Segment;
use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// An object's `Serialize` failed. What it said may quote contents, and is dropped.
#[derive(Debug, thiserror::Error)]
#[error("the object does not serialize")]
pub(crate) struct Failed;

impl serde::ser::Error for Failed {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

/// Calls `out` for each value at `path`.
pub(crate) fn pick<K: Serialize>(
    object: &K,
    path: &[Segment],
    out: &mut dyn FnMut(&str),
) -> Result<(), Failed> {
    object.serialize(Pick { path, out })
}

/// One value, at the start of `path`.
struct Pick<'a> {
    path: &'a [Segment],
    out: &'a mut dyn FnMut(&str),
}

impl<'a> Pick<'a> {
    fn scalar(self, text: &str) {
        if self.path.is_empty() {
            (self.out)(text);
        }
    }

    fn inside(self) -> Inside<'a> {
        Inside { path: self.path, out: self.out, fits: false }
    }

    /// What is inside the only member of an object, as an enum's variant is written.
    fn inside_variant(self, variant: &str) -> Inside<'a> {
        match self.path.split_first() {
            Some((segment, path)) if fits(segment, variant) => {
                Inside { path, out: self.out, fits: false }
            }
            _ => Inside { path: &[], out: self.out, fits: false },
        }
    }
}

fn fits(segment: &Segment, name: &str) -> bool {
    match segment {
        Segment::Field(field) => **field == *name,
        _ => true,
    }
}

/// The elements of a list or the members of an object. With an empty path none of them counts.
struct Inside<'a> {
    path: &'a [Segment],
    out: &'a mut dyn FnMut(&str),
    /// The key seen last is the one that the path names.
    fits: bool,
}

impl Inside<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        match self.path.split_first() {
            Some((Segment::All, path)) => value.serialize(Pick { path, out: self.out }),
            _ => Ok(()),
        }
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Failed> {
        match self.path.split_first() {
            Some((segment, path)) if fits(segment, name) => {
                value.serialize(Pick { path, out: self.out })
            }
            _ => Ok(()),
        }
    }
}

macro_rules! scalars {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<(), Failed> {
            if self.path.is_empty() {
                self.scalar(&value.to_string());
            }
            Ok(())
        })*
    };
}

impl<'a> Serializer for Pick<'a> {
    type Ok = ();
    type Error = Failed;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Inside<'a>;
    type SerializeTupleVariant = Inside<'a>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Inside<'a>;

    scalars! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_char: char
    }

    fn serialize_f32(self, value: f32) -> Result<(), Failed> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Failed> {
        // As JSON writes it; what JSON cannot write is null there.
        if let Some(number) = serde_json::Number::from_f64(value) {
            self.scalar(&number.to_string());
        }
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Failed> {
        self.scalar(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Failed> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Failed> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failed> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Failed> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Failed> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Failed> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        self.inside().member(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>, Failed> {
        Ok(self.inside())
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>, Failed> {
        Ok(self.inside())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Failed> {
        Ok(self.inside())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Failed> {
        Ok(self.inside_variant(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>, Failed> {
        Ok(self.inside())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Failed> {
        Ok(self.inside())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Failed> {
        Ok(self.inside_variant(variant))
    }
}

/// A compound of elements.
macro_rules! elements {
    ($($trait:ident::$method:ident)*) => {
        $(impl $trait for Inside<'_> {
            type Ok = ();
            type Error = Failed;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
                self.element(value)
            }

            fn end(self) -> Result<(), Failed> {
                Ok(())
            }
        })*
    };
}

elements! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}

/// A compound of members whose names are known to the compiler.
macro_rules! members {
    ($($trait:ident)*) => {
        $(impl $trait for Inside<'_> {
            type Ok = ();
            type Error = Failed;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Failed> {
                self.member(name, value)
            }

            fn end(self) -> Result<(), Failed> {
                Ok(())
            }
        })*
    };
}

members! { SerializeStruct SerializeStructVariant }

impl SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        let Some(segment) = self.path.first() else { return Ok(()) };
        // A key is a scalar: it is picked by the empty path.
        let mut found = false;
        key.serialize(Pick { path: &[], out: &mut |name| found = fits(segment, name) })?;
        self.fits = found;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        match self.path.split_first() {
            Some((_, path)) if self.fits => value.serialize(Pick { path, out: self.out }),
            _ => Ok(()),
        }
    }

    fn end(self) -> Result<(), Failed> {
        Ok(())
    }
}
