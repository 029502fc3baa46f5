//! `serde::Deserializer` for a value: the part that is compiled for every visitor, and so kept small.

use serde::de::{
    DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use super::access::Access;
use super::error::{Error, Problem};
use super::value::{Source, Text, Value};

impl<'de, 'c> Value<'de, 'c> {
    #[cold]
    fn mismatch(&self, expected: &dyn serde::de::Expected) -> Error {
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

    fn walk(self) -> Result<Result<Access<'de, 'c>, Self>, Error> {
        let (context, depth) = (self.context, self.depth);
        Ok(Access::open(context, depth, self.source)?.map_err(|source| Self {
            context,
            depth,
            source,
        }))
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

impl<'de> serde::Deserializer<'de> for Value<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.resolve()?;
        match self.source {
            Source::Null => visitor.visit_unit(),
            Source::Bool(value) => visitor.visit_bool(value),
            Source::Unsigned(value) => visitor.visit_u64(value),
            Source::Signed(value) => visitor.visit_i64(value),
            Source::Float(value) => visitor.visit_f64(value),
            Source::Text(text) => visit_text(text, visitor),
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
            source => {
                self.source = source;
                self.resolve_json()?;
                match self.walk()? {
                    Ok(access) if access.is_list() => visitor.visit_seq(access),
                    Ok(access) => visitor.visit_map(access),
                    Err(value) => Err(value.mismatch(&visitor)),
                }
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.resolve()?;
        match self.source {
            Source::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.resolve_json()?;
        match self.source {
            Source::Text(text) => visit_text(text, visitor),
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

    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.resolve_json()?;
        match self.source {
            Source::Bool(value) => visitor.visit_bool(value),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
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

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.resolve_json()?;
        match self.walk()? {
            Ok(access) if access.is_list() => visitor.visit_seq(access),
            Ok(_) => Err(Error::invalid_type(Unexpected::Map, &visitor)),
            Err(value) => Err(value.mismatch(&visitor)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.resolve_json()?;
        match self.walk()? {
            Ok(access) if !access.is_list() => visitor.visit_map(access),
            Ok(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
            Err(value) => Err(value.mismatch(&visitor)),
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
        mut self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.resolve_json()?;
        match self.source {
            Source::Text(_) => visitor.visit_enum(Variant::Unit(self)),
            _ => match self.walk()? {
                Ok(access) if !access.is_list() => visitor.visit_enum(Variant::Entry(access)),
                Ok(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
                Err(value) => Err(value.mismatch(&visitor)),
            },
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

impl<'de> SeqAccess<'de> for Access<'de, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        match self.next_element()? {
            None => Ok(None),
            Some(value) => seed.deserialize(value).map(Some).map_err(|error| self.placed(error)),
        }
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
        let value = self.next_value();
        seed.deserialize(value).map_err(|error| self.placed(error))
    }

    fn size_hint(&self) -> Option<usize> {
        self.left()
    }
}

/// An enum of the user's: a string, or an object with one key.
pub(crate) enum Variant<'de, 'c> {
    Unit(Value<'de, 'c>),
    Entry(Access<'de, 'c>),
}

impl<'de, 'c> EnumAccess<'de> for Variant<'de, 'c> {
    type Error = Error;
    type Variant = Content<'de, 'c>;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self::Variant), Error> {
        match self {
            Self::Unit(value) => Ok((seed.deserialize(value)?, Content(None))),
            Self::Entry(mut access) => match access.next_key()? {
                None => Err(Error::custom("an empty object where an enum is expected")),
                Some(key) => Ok((seed.deserialize(key)?, Content(Some(access)))),
            },
        }
    }
}

/// What stands beside the variant's name.
pub(crate) struct Content<'de, 'c>(Option<Access<'de, 'c>>);

impl<'de, 'c> Content<'de, 'c> {
    fn value(self) -> Result<Value<'de, 'c>, Error> {
        match self.0 {
            Some(mut access) => Ok(access.next_value()),
            None => Err(Error::custom("a string where an enum with content is expected")),
        }
    }
}

impl<'de> VariantAccess<'de> for Content<'de, '_> {
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
