//! serde_json with a note of every field that the Rust type passes over.
//!
//! A deserializer around a deserializer: all calls go through, except that of a type for a value it does not want. The
//! place of a value is a chain of references on the stack, so that an object that loses nothing allocates nothing here.
//!
//! Not seen is what a type drops on its own: serde buffers the contents of `flatten`ed structs and of untagged and
//! internally tagged enums, and picks from the buffer what it knows.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};

use crate::limits::Limits;

/// What a string that is longer than [`Limits::string_bytes`] ends a decode with.
pub(crate) const STRING_TOO_LONG: &str = "a string longer than the limit";

/// How many lost fields are named: enough to tell a person.
pub(crate) const NAMES_MAX: usize = 16;

/// What one decode notes.
#[derive(Debug)]
pub(crate) struct Notes<'de> {
    ignored: Cell<usize>,
    /// The names of ignored fields, where they are asked for.
    names: Option<RefCell<Vec<String>>>,
    /// The string visited last: right after a key was read, the key.
    last: Cell<&'de str>,
    string_bytes: usize,
}

impl Notes<'_> {
    /// Notes that only count.
    pub(crate) fn counting(limits: &Limits) -> Self {
        Self {
            ignored: Cell::new(0),
            names: None,
            last: Cell::new(""),
            string_bytes: limits.string_bytes,
        }
    }

    /// Notes that keep the paths of the first fields too.
    pub(crate) fn naming(limits: &Limits) -> Self {
        Self { names: Some(RefCell::default()), ..Self::counting(limits) }
    }

    /// How many fields were passed over.
    pub(crate) fn ignored(&self) -> usize {
        self.ignored.get()
    }

    /// The paths of the first of them.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names.map(RefCell::into_inner).unwrap_or_default()
    }

    #[cold]
    fn note(&self, place: &Place<'_>) {
        if place.is_told_elsewhere() {
            return;
        }
        self.ignored.set(self.ignored.get() + 1);
        if let Some(names) = &self.names {
            let mut names = names.borrow_mut();
            if names.len() < NAMES_MAX {
                names.push(place.to_string());
            }
        }
    }

    fn check<E: Error>(&self, text: &str) -> Result<(), E> {
        if text.len() > self.string_bytes { Err(E::custom(STRING_TOO_LONG)) } else { Ok(()) }
    }
}

/// Decodes one JSON text.
pub(crate) fn from_slice<'de, K: Deserialize<'de>>(
    text: &'de [u8],
    notes: &Notes<'de>,
) -> Result<K, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = K::deserialize(Noting { inner: &mut reader, notes, place: &Place::Root })?;
    reader.end()?;
    Ok(value)
}

/// Where a value is in its object.
#[derive(Debug, Clone, Copy)]
enum Place<'p> {
    Root,
    Key(&'p Self, &'p str),
    Index(&'p Self, usize),
}

impl Place<'_> {
    /// Fields whose loss changes nothing: an object's type, which is known beside it and written again, and the two
    /// fields of the metadata that a server keeps by itself in an update that lacks them.
    fn is_told_elsewhere(&self) -> bool {
        match self {
            Place::Key(Place::Root, key) => matches!(*key, "apiVersion" | "kind"),
            Place::Key(Place::Key(Place::Root, "metadata"), key) => {
                matches!(*key, "managedFields" | "selfLink")
            }
            _ => false,
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            // A key that has escapes is not at hand.
            Place::Key(parent, key) => {
                let key = if key.is_empty() { "?" } else { key };
                match parent {
                    Place::Root => f.write_str(key),
                    _ => write!(f, "{parent}.{key}"),
                }
            }
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Anything of serde's with the notes beside it.
struct Noting<'p, 'de, T> {
    inner: T,
    notes: &'p Notes<'de>,
    place: &'p Place<'p>,
}

impl<'p, 'de, T> Noting<'p, 'de, T> {
    fn with<U>(&self, inner: U) -> Noting<'p, 'de, U> {
        Noting { inner, notes: self.notes, place: self.place }
    }
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($argument: $type,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$method($($argument,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Noting<'_, 'de, D> {
    type Error = D::Error;

    forward! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        if self.inner.deserialize_option(SaysSomething)? {
            self.notes.note(self.place);
        }
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Whether an ignored value is anything but null. An empty string, list or object may mean something.
struct SaysSomething;

impl<'de> Visitor<'de> for SaysSomething {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_none<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|IgnoredAny| true)
    }
}

macro_rules! scalars {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Noting<'_, 'de, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    scalars! {
        visit_bool: bool,
        visit_i8: i8,
        visit_i16: i16,
        visit_i32: i32,
        visit_i64: i64,
        visit_i128: i128,
        visit_u8: u8,
        visit_u16: u16,
        visit_u32: u32,
        visit_u64: u64,
        visit_u128: u128,
        visit_f32: f32,
        visit_f64: f64,
        visit_char: char,
        visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8],
        visit_byte_buf: Vec<u8>,
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.notes.check(text)?;
        self.inner.visit_str(text)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.notes.check(text)?;
        self.notes.last.set(text);
        self.inner.visit_borrowed_str(text)
    }

    fn visit_string<E: Error>(self, text: String) -> Result<V::Value, E> {
        self.notes.check(&text)?;
        self.inner.visit_string(text)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        let list = Elements { list, notes: self.notes, place: self.place, index: 0 };
        self.inner.visit_seq(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let map = Members { map, notes: self.notes, place: self.place, key: "" };
        self.inner.visit_map(map)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        let data = self.with(data);
        self.inner.visit_enum(data)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Noting<'_, 'de, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.deserialize(deserializer)
    }
}

struct Elements<'p, 'de, A> {
    list: A,
    notes: &'p Notes<'de>,
    place: &'p Place<'p>,
    index: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, 'de, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let place = Place::Index(self.place, self.index);
        self.index += 1;
        self.list.next_element_seed(Noting { inner: seed, notes: self.notes, place: &place })
    }

    fn size_hint(&self) -> Option<usize> {
        self.list.size_hint()
    }
}

struct Members<'p, 'de, A> {
    map: A,
    notes: &'p Notes<'de>,
    place: &'p Place<'p>,
    key: &'de str,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'_, 'de, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.notes.last.set("");
        let seed = Noting { inner: seed, notes: self.notes, place: self.place };
        let key = self.map.next_key_seed(seed)?;
        self.key = self.notes.last.get();
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let place = Place::Key(self.place, self.key);
        self.map.next_value_seed(Noting { inner: seed, notes: self.notes, place: &place })
    }

    fn size_hint(&self) -> Option<usize> {
        self.map.size_hint()
    }
}

impl<'p, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Noting<'p, 'de, A> {
    type Error = A::Error;
    type Variant = Noting<'p, 'de, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (notes, place) = (self.notes, self.place);
        let seed = self.with(seed);
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Noting { inner: variant, notes, place }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Noting<'_, 'de, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.with(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.tuple_variant(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}
