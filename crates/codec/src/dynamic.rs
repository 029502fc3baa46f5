//! Objects of kinds that are known only at run time.

use std::sync::Arc;

use kubestrata_api_types::{
    FieldPath, Object, OwnerRef, ResourceType, ResourceVersion, Timestamp, Undecodable, View,
    ViewError,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::limits::Limits;
use crate::{Encoded, Tracked, decode, view};

/// An object as a JSON value, of any kind.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "users write literals of it")]
pub struct Dynamic {
    /// The object's type.
    pub resource: Arc<ResourceType>,
    /// The object: a JSON object, with or without `kind` and `apiVersion`, which `resource` knows.
    pub value: Value,
}

impl Dynamic {
    /// Decodes an object of any kind, from either format. From JSON the value holds everything; from protobuf, what the
    /// schema knows.
    ///
    /// # Errors
    ///
    /// [`Undecodable`] if the bytes are malformed.
    pub fn decode(encoded: &Encoded) -> Result<Tracked<Self>, Undecodable> {
        let (value, lost) = decode::object(encoded, &Limits::DEFAULT)?;
        let object = Self { resource: Arc::clone(encoded.resource()), value };
        Ok(Tracked::of(object, lost, encoded))
    }

    fn meta(&self, field: &str) -> Option<&Value> {
        self.value.get("metadata")?.get(field)
    }

    fn meta_str(&self, field: &str) -> Option<&str> {
        self.meta(field)?.as_str().filter(|text| !text.is_empty())
    }
}

/// As the JSON value, without its resource type.
impl Serialize for Dynamic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Object for Dynamic {
    fn name(&self) -> &str {
        self.meta_str("name").unwrap_or_default()
    }

    fn namespace(&self) -> Option<&str> {
        self.meta_str("namespace")
    }

    fn uid(&self) -> Option<&str> {
        self.meta_str("uid")
    }

    fn resource_version(&self) -> ResourceVersion {
        self.meta_str("resourceVersion").map_or(ResourceVersion::UNSET, ResourceVersion::new)
    }

    fn generation(&self) -> Option<i64> {
        self.meta("generation")?.as_i64().filter(|generation| *generation != 0)
    }

    fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.meta_str("deletionTimestamp")?.parse().ok()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.meta("labels")?.get(key)?.as_str()
    }

    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        for (key, value) in self.meta("labels").and_then(Value::as_object).into_iter().flatten() {
            f(key, value.as_str().unwrap_or_default());
        }
    }

    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        for owner in self.meta("ownerReferences").and_then(Value::as_array).into_iter().flatten() {
            let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
            let controller = owner.get("controller").and_then(Value::as_bool).unwrap_or_default();
            f(OwnerRef::new(
                text("apiVersion"),
                text("kind"),
                text("name"),
                text("uid"),
                controller,
            ));
        }
    }
}

impl View for Dynamic {
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        view::value(&self.value, path.segments(), out);
        Ok(())
    }
}
