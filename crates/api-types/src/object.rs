//! What every layer may ask of an object without knowing its Rust type.

use crate::{FieldPath, KeyRef, ObjectKey, ObjectMeta, ResourceType, ResourceVersion, Timestamp};

/// One entry of `metadata.ownerReferences`, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerRef<'a> {
    /// `group/version` of the owner.
    pub api_version: &'a str,
    /// Kind of the owner.
    pub kind: &'a str,
    /// Name of the owner, in the namespace of the owned object or in the cluster.
    pub name: &'a str,
    /// UID of the owner.
    pub uid: &'a str,
    /// Whether this owner is the managing controller.
    pub controller: bool,
}

impl<'a> OwnerRef<'a> {
    /// An owner reference from its parts.
    pub fn new(
        api_version: &'a str,
        kind: &'a str,
        name: &'a str,
        uid: &'a str,
        controller: bool,
    ) -> Self {
        Self { api_version, kind, name, uid, controller }
    }

    /// The API group of the owner, without the version.
    pub fn group(&self) -> &'a str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// An object as the layers see it: its identity and the metadata that they act on.
///
/// Implemented by what flows (`codec::Encoded`, `codec::Decoded<K>`), by [`PartialObjectMetadata`], by structs with the
/// derive, and under the feature `k8s-openapi` by every type of that crate.
/// There is one blanket implementation, and coherence allows no second: a shared object is not `Arc<K>` but `Decoded<K>`.
///
/// An implementer gives borrowed strings and must not compute much: these methods run for every event.
///
/// [`PartialObjectMetadata`]: crate::PartialObjectMetadata
pub trait Object: Send + Sync + 'static {
    /// `metadata.name`; empty if the object has none.
    fn name(&self) -> &str;
    /// `metadata.namespace`; `None` for cluster-scoped objects.
    fn namespace(&self) -> Option<&str>;
    /// `metadata.uid`; `None` if it is empty too: Go has one value for both, and writes neither.
    fn uid(&self) -> Option<&str>;
    /// `metadata.resourceVersion`; unset if the object has none.
    fn resource_version(&self) -> ResourceVersion;
    /// `metadata.generation`; `None` if it is zero too, as of `uid`.
    fn generation(&self) -> Option<i64>;
    /// `metadata.deletionTimestamp`: set once deletion was asked for and finalizers or a grace period remain.
    fn deletion_timestamp(&self) -> Option<Timestamp>;
    /// The value of one label.
    fn label(&self, key: &str) -> Option<&str>;
    /// Calls `f` with key and value of each label.
    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str));
    /// Calls `f` with each owner reference, in order.
    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>));

    /// The object's key. Implementations that hold one already return a clone of it; the others make one.
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }

    /// The object's key, borrowed: to look it up or to compare it without an allocation.
    fn key_ref(&self) -> KeyRef<'_> {
        KeyRef::new(self.namespace(), self.name())
    }
}

/// A field could not be read from an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field {path} cannot be read: {problem}")]
#[non_exhaustive]
pub struct ViewError {
    /// The field asked for.
    pub path: String,
    /// What is wrong with the object, without its contents.
    pub problem: String,
}

impl ViewError {
    /// An error for `path`.
    pub fn new(path: &FieldPath, problem: impl Into<String>) -> Self {
        Self { path: path.to_string(), problem: problem.into() }
    }
}

/// Reads one field without decoding the rest.
pub trait View {
    /// Calls `out` with the text of each value at `path`: strings as they are, numbers and booleans as JSON writes them.
    /// A path that leads nowhere, to null, or to an object or list gives no call and no error.
    ///
    /// # Errors
    ///
    /// [`ViewError`] if the object is malformed on the way to the field. `out` may have been called before.
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError>;
}

/// An object whose resource type is known at compile time.
pub trait Kind: Object {
    /// The resource type of all values of this Rust type.
    fn resource() -> &'static ResourceType;
}

/// What a `metadata` field must offer so that `#[derive(Object)]` can use it.
pub trait Meta {
    /// `name`, or the empty string.
    fn name(&self) -> &str;
    /// `namespace`, if set and not empty.
    fn namespace(&self) -> Option<&str>;
    /// `uid`, if set and not empty.
    fn uid(&self) -> Option<&str>;
    /// `resourceVersion`.
    fn resource_version(&self) -> ResourceVersion;
    /// `generation`, if set and not zero.
    fn generation(&self) -> Option<i64>;
    /// `deletionTimestamp`.
    fn deletion_timestamp(&self) -> Option<Timestamp>;
    /// The value of one label.
    fn label(&self, key: &str) -> Option<&str>;
    /// Each label.
    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str));
    /// Each owner reference.
    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>));
}

impl Meta for ObjectMeta {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|namespace| !namespace.is_empty())
    }

    fn uid(&self) -> Option<&str> {
        self.uid.as_deref().filter(|uid| !uid.is_empty())
    }

    fn resource_version(&self) -> ResourceVersion {
        self.resource_version.clone().unwrap_or_default()
    }

    fn generation(&self) -> Option<i64> {
        self.generation.filter(|generation| *generation != 0)
    }

    fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.deletion_timestamp
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        for (key, value) in &self.labels {
            f(key, value);
        }
    }

    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        for owner in &self.owner_references {
            f(OwnerRef::new(
                &owner.api_version,
                &owner.kind,
                &owner.name,
                &owner.uid,
                owner.controller.unwrap_or_default(),
            ));
        }
    }
}

/// Implements [`Object`] for a type by its field `metadata`, whose type implements [`Meta`].
macro_rules! object_by_metadata {
    ({$($generics:tt)*} $type:ty, |$this:ident| $metadata:expr) => {
        impl<$($generics)*> $crate::Object for $type {
            fn name(&self) -> &str {
                let $this = self;
                $crate::Meta::name($metadata)
            }
            fn namespace(&self) -> Option<&str> {
                let $this = self;
                $crate::Meta::namespace($metadata)
            }
            fn uid(&self) -> Option<&str> {
                let $this = self;
                $crate::Meta::uid($metadata)
            }
            fn resource_version(&self) -> $crate::ResourceVersion {
                let $this = self;
                $crate::Meta::resource_version($metadata)
            }
            fn generation(&self) -> Option<i64> {
                let $this = self;
                $crate::Meta::generation($metadata)
            }
            fn deletion_timestamp(&self) -> Option<$crate::Timestamp> {
                let $this = self;
                $crate::Meta::deletion_timestamp($metadata)
            }
            fn label(&self, key: &str) -> Option<&str> {
                let $this = self;
                $crate::Meta::label($metadata, key)
            }
            fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
                let $this = self;
                $crate::Meta::for_each_label($metadata, f);
            }
            fn for_each_owner(&self, f: &mut dyn FnMut($crate::OwnerRef<'_>)) {
                let $this = self;
                $crate::Meta::for_each_owner($metadata, f);
            }
        }
    };
}
pub(crate) use object_by_metadata;
