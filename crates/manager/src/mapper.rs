//! From an object to the keys that are to be reconciled.

use std::fmt;

use kubestrata_api_types::{Kind, ObjectKey, ResourceType};

use crate::Inspect;

/// Says which keys a changed object concerns. For an update it is asked for both states, and each key counts once.
pub trait Mapper: Send + Sync + 'static {
    /// Calls `push` with each key.
    fn keys(&self, object: &dyn Inspect, push: &mut dyn FnMut(ObjectKey));
}

/// The object itself (controller-runtime `EnqueueRequestForObject`).
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit")]
pub struct Itself;

impl Mapper for Itself {
    fn keys(&self, object: &dyn Inspect, push: &mut dyn FnMut(ObjectKey)) {
        push(object.key());
    }
}

/// The object's owners of one kind, whatever their version (controller-runtime `EnqueueRequestForOwner`).
#[derive(Debug, Clone)]
pub struct Owner {
    group: String,
    kind: String,
    namespaced: bool,
    controller_only: bool,
}

impl Owner {
    /// The owner of kind `K` that is the managing controller.
    pub fn of<K: Kind>() -> Self {
        Self::of_type(K::resource())
    }

    /// The owner of a type known at run time that is the managing controller.
    pub fn of_type(resource: &ResourceType) -> Self {
        Self {
            group: resource.group.clone().into_owned(),
            kind: resource.kind.clone().into_owned(),
            namespaced: resource.is_namespaced(),
            controller_only: true,
        }
    }

    /// Owners that are not the managing controller too.
    #[must_use]
    pub fn any(mut self) -> Self {
        self.controller_only = false;
        self
    }
}

impl Mapper for Owner {
    fn keys(&self, object: &dyn Inspect, push: &mut dyn FnMut(ObjectKey)) {
        let namespace = object.namespace().filter(|_| self.namespaced);
        object.for_each_owner(&mut |owner| {
            if owner.kind == self.kind
                && owner.group() == self.group
                && (owner.controller || !self.controller_only)
            {
                push(ObjectKey::new(namespace, owner.name));
            }
        });
    }
}

/// A mapper from a function (controller-runtime `EnqueueRequestsFromMapFunc`).
pub(crate) struct MapFn<F>(pub(crate) F);

impl<F: Fn(&dyn Inspect, &mut dyn FnMut(ObjectKey)) + Send + Sync + 'static> Mapper for MapFn<F> {
    fn keys(&self, object: &dyn Inspect, push: &mut dyn FnMut(ObjectKey)) {
        (self.0)(object, push);
    }
}

impl<F> fmt::Debug for MapFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MapFn")
    }
}
