//! `serde::Deserializer` for a value: the part that is compiled for every visitor, and so kept small.

use std::borrow::Cow;

use serde::de::{
    DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::access::{Access, Key, Shape};
use super::error::{Error, Problem};
use super::value::{Source, Text, Value};
use super::wire::Wire;
use crate::schema::Type;

impl Value<'_, '_> {
    #[cold]
    pub(super) fn mismatch(&self, expected: &dyn serde::de::Expected) -> Error {
        let unexpected = match &self.source {
            Source::Bool(value) => Unexpected::Bool(*value),
            Source::Unsigned(_) | Source::Signed(_) => Unexpected::Unsigned(0),
            Source::Float(value) => Unexpected::Float(*value),
            Source::Text(_) => Unexpected::Str(""),
            Source::Null => Unexpected::Unit,
            Source::List(..) => Unexpected::Seq,
            Source::Tree(tree) if tree.is_array() => Unexpected::Seq,
            _ => Unexpected::Map,
        };
        Error::invalid_type(unexpected, expected).or_at(Self::offset(self.context, &self.source))
    }
}

/// JSON knows one type of number.
macro_rules! numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.deserialize_i64(visitor)
        })*
    };
}

impl<'de> serde::Deserializer<'de> for &mut Value<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.resolve()?;
        match &self.source {
            Source::Null => visitor.visit_unit(),
            Source::Bool(value) => visitor.visit_bool(*value),
            Source::Unsigned(value) => visitor.visit_u64(*value),
            Source::Signed(value) => visitor.visit_i64(*value),
            Source::Float(value) => visitor.visit_f64(*value),
            Source::Text(_) => visit_text(self.take_text(), visitor),
            // Straight from the text: most of what asks for anything is a JSON value.
            Source::Json(text) => {
                let context = self.context;
                let problem = |_| context.error(Problem::Json, text);
                let mut json = serde_json::Deserializer::from_slice(text);
                let value =
                    serde::Deserializer::deserialize_any(&mut json, visitor).map_err(problem)?;
                json.end().map_err(problem)?;
                Ok(value)
            }
            // A scalar in a tree becomes one of those above.
            Source::Tree(tree) if !tree.is_array() && !tree.is_object() => {
                self.resolve_json()?;
                self.deserialize_any(visitor)
            }
            _ => {
                let (shape, mut access) = Access::begin_any(self)?;
                match shape {
                    Shape::Scalar => Err(self.mismatch(&visitor)),
                    Shape::List => visitor.visit_seq(&mut access),
                    Shape::Object => visitor.visit_map(&mut access),
                }
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Some(text) = self.plain_text() {
            return visitor.visit_borrowed_str(text);
        }
        self.resolve_json()?;
        match &self.source {
            Source::Text(Text::Stamp(stamp)) => visitor.visit_str(stamp.as_str()),
            Source::Text(_) => visit_text(self.take_text(), visitor),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Source::Wire(Type::Bool, Wire::Varint(value)) = self.source {
            return visitor.visit_bool(value != 0);
        }
        self.resolve_json()?;
        match self.source {
            Source::Bool(value) => visitor.visit_bool(value),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Some(value) = self.plain_integer() {
            return match u64::try_from(value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_i64(value),
            };
        }
        self.resolve_json()?;
        match self.source {
            Source::Unsigned(value) => visitor.visit_u64(value),
            Source::Signed(value) => visitor.visit_i64(value),
            Source::Float(value) => visitor.visit_f64(value),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut begun = Access::begin(self, Shape::List, &visitor);
        match begun {
            Ok(ref mut access) => visitor.visit_seq(access),
            Err(error) => Err(error),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut begun = Access::begin(self, Shape::Object, &visitor);
        match begun {
            Ok(ref mut access) => visitor.visit_map(access),
            Err(error) => Err(error),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.resolve_json()?;
        if let Source::Text(_) = self.source {
            return visitor.visit_enum(Variant::Unit(self));
        }
        let mut begun = Access::begin(self, Shape::Object, &visitor);
        match begun {
            Ok(ref mut access) => visitor.visit_enum(Variant::Entry(access)),
            Err(error) => Err(error),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !self.says_nothing() {
            self.context.ignored.set(self.context.ignored.get() + 1);
        }
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        // Types with two forms must use the one that JSON has.
        true
    }

    forward_to_deserialize_any! {
        i128 u128 bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

fn visit_text<'de, V: Visitor<'de>>(text: Text<'de, '_>, visitor: V) -> Result<V::Value, Error> {
    match text {
        Text::Input(text) => visitor.visit_borrowed_str(text),
        Text::Given(text) => visitor.visit_str(text),
        Text::Stamp(stamp) => visitor.visit_str(stamp.as_str()),
        Text::Made(text) => visitor.visit_string(text),
    }
}

/// A key is text, whatever is asked for.
impl<'de> serde::Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(serde::de::value::CowStrDeserializer::new(self.0))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string identifier bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct ignored_any
    }
}

impl<'de> SeqAccess<'de> for Access<'de, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(value) = self.next_element()? else { return Ok(None) };
        let mut result = seed.deserialize(value).map(Some);
        if let Err(error) = &mut result {
            self.place(error);
        }
        result
    }

    fn size_hint(&self) -> Option<usize> {
        self.left()
    }
}

impl<'de> MapAccess<'de> for Access<'de, '_> {
    type Error = Error;

    fn next_key_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        match self.next_key()? {
            None => Ok(None),
            Some(key) => seed.deserialize(key).map(Some),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        // Changed in place: values are large, and `map_err` would move them.
        let mut result = seed.deserialize(self.current());
        if let Err(error) = &mut result {
            self.place(error);
        }
        result
    }

    fn size_hint(&self) -> Option<usize> {
        self.left()
    }
}

/// An enum of the user's: a string, or an object with one key.
pub(crate) enum Variant<'v, 'de, 'c> {
    Unit(&'v mut Value<'de, 'c>),
    Entry(&'v mut Access<'de, 'c>),
}

impl<'v, 'de, 'c> EnumAccess<'de> for Variant<'v, 'de, 'c> {
    type Error = Error;
    type Variant = Content<'v, 'de, 'c>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self::Variant), Error> {
        match self {
            Self::Unit(value) => Ok((seed.deserialize(value)?, Content(None))),
            Self::Entry(access) => match access.next_key()? {
                None => Err(Error::custom("an empty object where an enum is expected")),
                Some(key) => Ok((seed.deserialize(key)?, Content(Some(access.current())))),
            },
        }
    }
}

/// What stands beside the variant's name.
pub(crate) struct Content<'v, 'de, 'c>(Option<&'v mut Value<'de, 'c>>);

impl<'v, 'de, 'c> Content<'v, 'de, 'c> {
    fn value(self) -> Result<&'v mut Value<'de, 'c>, Error> {
        self.0.ok_or_else(|| Error::custom("a string where an enum with content is expected"))
    }
}

impl<'de> VariantAccess<'de> for Content<'_, 'de, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(Error::custom("an object where a string is expected")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.value()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        serde::Deserializer::deserialize_seq(self.value()?, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        serde::Deserializer::deserialize_map(self.value()?, visitor)
    }
}
