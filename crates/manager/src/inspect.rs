//! Objects as predicates and mappers see them.

use std::collections::BTreeMap;

use kubestrata_api_types::{Object, View, ViewError};
use kubestrata_codec::{Decoded, Encoded};
use serde::Serialize;

/// An object in a cache, whatever its kind and representation: its head, its fields by path, and its annotations.
///
/// Implemented for the two item types.
pub trait Inspect: Object + View {
    /// All annotations. They are not in the head: this decodes the metadata.
    ///
    /// # Errors
    ///
    /// [`ViewError`] if the object is malformed.
    fn annotations(&self) -> Result<BTreeMap<String, String>, ViewError>;
}

impl Inspect for Encoded {
    fn annotations(&self) -> Result<BTreeMap<String, String>, ViewError> {
        match self.metadata() {
            Ok(object) => Ok(object.metadata.annotations),
            Err(error) => Err(view_error(error.problem)),
        }
    }
}

impl<K: Object + Serialize> Inspect for Decoded<K> {
    fn annotations(&self) -> Result<BTreeMap<String, String>, ViewError> {
        let object = self.object().map_err(|error| view_error(&*error.problem))?;
        let value = serde_json::to_value(&**object)
            .map_err(|_| view_error("the object does not serialize"))?;
        let annotations =
            value.pointer("/metadata/annotations").and_then(|value| value.as_object());
        let pairs = annotations.into_iter().flatten();
        Ok(pairs
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect())
    }
}

fn view_error(problem: impl Into<String>) -> ViewError {
    let path = "metadata.annotations".parse().expect("a constant path");
    ViewError::new(&path, problem)
}

/// All labels.
pub(crate) fn labels(object: &dyn Inspect) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    object.for_each_label(&mut |key, value| {
        labels.insert(key.to_owned(), value.to_owned());
    });
    labels
}
