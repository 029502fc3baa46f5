//! An object of which only the metadata is known.

use serde::{Deserialize, Serialize};

use crate::object::object_by_metadata;
use crate::{FieldPath, ObjectMeta, Segment, View, ViewError};

/// The `PartialObjectMetadata` of `meta.k8s.io/v1`: what metadata-only reads and watches give.
///
/// Its resource type is a value, not a property of the Rust type, so it is no `Kind`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::exhaustive_structs,
    reason = "users write literals of it; its fields are the API's"
)]
pub struct PartialObjectMetadata {
    /// `apiVersion` as sent; the server writes `meta.k8s.io/v1` here, not the object's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// `kind` as sent; the server writes `PartialObjectMetadata` here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

object_by_metadata!({} PartialObjectMetadata, |this| &this.metadata);

impl View for PartialObjectMetadata {
    /// Knows `metadata.name`, `.namespace`, `.uid`, labels and annotations.
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        let mut names = path.segments().iter();
        let mut next = || match names.next() {
            Some(Segment::Field(name)) => Some(&**name),
            _ => None,
        };
        if next() != Some("metadata") {
            return Ok(());
        }
        let meta = &self.metadata;
        let value = match (next(), next()) {
            (Some("name"), None) => meta.name.as_deref(),
            (Some("namespace"), None) => meta.namespace.as_deref(),
            (Some("uid"), None) => meta.uid.as_deref(),
            (Some("labels"), Some(key)) => meta.labels.get(key).map(String::as_str),
            (Some("annotations"), Some(key)) => meta.annotations.get(key).map(String::as_str),
            _ => None,
        };
        if let Some(value) = value {
            out(value);
        }
        Ok(())
    }
}
