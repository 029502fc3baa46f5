//! Which informers answer a read.

use std::sync::Arc;

use kubestrata_api_types::{FieldPath, ObjectKey, Representation, ResourceType, View as _};
use kubestrata_codec::Encoded;
use kubestrata_informer::{Informer, Selection};

/// One informer of a kind, with what it follows.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) selection: Selection,
    pub(crate) informer: Informer<Encoded>,
}

/// All informers of one kind in one representation.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) resource: Arc<ResourceType>,
    pub(crate) representation: Representation,
    /// One for all namespaces, or one for each of some.
    pub(crate) parts: Arc<[Part]>,
}

/// Where a read goes.
#[derive(Debug)]
pub(crate) enum Route {
    /// To the server.
    Live,
    /// To these informers.
    Cached(Vec<Part>),
}

impl Part {
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.selection.collection.namespace.as_deref()
    }

    /// Whether the informer follows a namespace; `None` stands for no namespace or all of them.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.namespace().is_none_or(|own| namespace == Some(own))
    }

    /// Whether the informer's selectors and shard choose an object of a namespace that it covers.
    pub(crate) fn selects(&self, object: &Encoded) -> bool {
        self.selection.labels.matches_object(object)
            && self.selection.shard.as_ref().is_none_or(|shard| shard.matches(object))
            && self.selection.fields.terms().iter().all(|term| {
                let Ok(path) = term.field.parse::<FieldPath>() else { return true };
                let mut found = String::new();
                let read = object.field(&path, &mut |value| value.clone_into(&mut found));
                // What cannot be read here is the server's to decide: then it may be selected.
                read.is_err() || (found == term.value) == term.equal
            })
    }

    /// Whether the object with this key is stored now.
    pub(crate) fn holds(&self, key: &ObjectKey) -> bool {
        self.informer.reader().get(key).is_some()
    }
}

impl Kind {
    pub(crate) fn is(&self, resource: &ResourceType, representation: Representation) -> bool {
        self.representation == representation && *self.resource == *resource
    }

    /// The informers for a read in one namespace or, with `None`, in all that are cached.
    pub(crate) fn parts_for(&self, namespace: Option<&str>) -> Vec<Part> {
        let whole = self.parts.iter().find(|part| part.namespace().is_none());
        match (whole, namespace) {
            (Some(part), _) => vec![part.clone()],
            (None, Some(_)) => {
                self.parts.iter().filter(|part| part.covers(namespace)).cloned().collect()
            }
            (None, None) => self.parts.to_vec(),
        }
    }
}
