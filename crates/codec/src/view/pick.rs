//! Picks the values at a path from any `Deserializer`, and skips all else.

use std::collections::BTreeMap;
use std::fmt;

use kubestrata_api_types::Segment;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A seed that appends the text of each value at `path` to `found`.
pub(super) struct Pick<'p, 'f> {
    pub(super) path: &'p [Segment],
    pub(super) found: &'f mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Pick<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Pick<'_, '_> {
    /// A scalar counts where the path has ended.
    fn scalar(self, text: impl FnOnce() -> String) {
        if self.path.is_empty() {
            self.found.push(text());
        }
    }
}

impl<'de> Visitor<'de> for Pick<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.scalar(|| value.to_string());
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(|| value.to_string());
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(|| value.to_string());
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.scalar(|| serde_json::Value::from(value).to_string());
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.scalar(|| value.to_owned());
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        match self.path.split_first() {
            Some((Segment::All, path)) => {
                while list.next_element_seed(Pick { path, found: self.found })?.is_some() {}
            }
            _ => while list.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        match self.path.split_first() {
            Some((Segment::Field(name), path)) => {
                let before = self.found.len();
                while let Some(fits) = map.next_key_seed(KeyIs(name))? {
                    if fits {
                        // Of equal keys the last counts, as for every decoder.
                        self.found.truncate(before);
                        map.next_value_seed(Pick { path, found: self.found })?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Some((_, path)) => {
                // In the order of the keys, as decoded objects have them, and of equal ones the last.
                let mut values = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let mut found = Vec::new();
                    map.next_value_seed(Pick { path, found: &mut found })?;
                    values.insert(key, found);
                }
                self.found.extend(values.into_values().flatten());
            }
            None => while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {},
        }
        Ok(())
    }
}

/// Whether a key is this one.
struct KeyIs<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for KeyIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}
