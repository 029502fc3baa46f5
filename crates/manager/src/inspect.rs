//! Objects as predicates and mappers see them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestrata_api_types::{Format, Kind, Object, View, ViewError};
use kubestrata_codec::{Decoded, Encoded, encode};
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

impl<K: Kind + Serialize> Inspect for Decoded<K> {
    fn annotations(&self) -> Result<BTreeMap<String, String>, ViewError> {
        let object = self.object().map_err(|error| view_error(&*error.problem))?;
        let resource = K::resource();
        let payload = encode(&**object, resource, Format::Json)
            .map_err(|_| view_error("the object does not serialize"))?;
        let resource = Arc::new(resource.clone());
        Encoded::read(&resource, payload.format, &payload.bytes, &[])
            .map_err(|error| view_error(error.problem))?
            .annotations()
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
