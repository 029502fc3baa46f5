//! What everything in a run shares, and the kinds and views that it is about.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubestrata_api_types::{Accept, Collection, Format, ResourceType, Scope as ResourceScope};

use crate::log::Log;
use crate::truth::{Scope, Truth};

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A built-in kind, which travels in JSON and in protobuf.
    Map,
    /// A custom kind, which travels in JSON.
    Widget,
}

/// All kinds.
pub(crate) const KINDS: [Kind; 2] = [Kind::Map, Kind::Widget];

impl Kind {
    /// Its resource.
    pub(crate) fn resource(self) -> ResourceType {
        let namespaced = ResourceScope::Namespaced;
        match self {
            Self::Map => ResourceType::new("", "v1", "ConfigMap", "configmaps", namespaced),
            Self::Widget => ResourceType::new("sim.example", "v1", "Widget", "widgets", namespaced),
        }
    }

    /// `apiVersion`.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Map => "v1",
            Self::Widget => "sim.example/v1",
        }
    }

    /// `kind`.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Map => "ConfigMap",
            Self::Widget => "Widget",
        }
    }

    /// The path of a collection, or of an object in it.
    pub(crate) fn path(self, namespace: &str, name: &str) -> String {
        let (root, plural) = match self {
            Self::Map => ("/api/v1", "configmaps"),
            Self::Widget => ("/apis/sim.example/v1", "widgets"),
        };
        let slash = if name.is_empty() { "" } else { "/" };
        format!("{root}/namespaces/{namespace}/{plural}{slash}{name}")
    }
}

/// What one client follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// The kind.
    pub(crate) kind: Kind,
    /// Which of its objects.
    pub(crate) scope: Scope,
    /// How they travel.
    pub(crate) format: Format,
}

impl View {
    /// The collection to follow.
    pub(crate) fn collection(self) -> Collection {
        let collection = Collection::new(self.kind.resource()).accept(Accept::Only(self.format));
        match self.scope.namespace {
            Some(namespace) => collection.in_namespace(namespace),
            None => collection,
        }
    }
}

/// What everything in a run shares.
pub(crate) struct Sim {
    /// What happened.
    pub(crate) log: Log,
    truths: [Mutex<Truth>; 2],
}

impl Sim {
    /// A run that begins with a server at `revision`.
    pub(crate) fn new(log: Log, revision: u64) -> Arc<Self> {
        let truths = KINDS.map(|_| Mutex::new(Truth::new(revision)));
        Arc::new(Self { log, truths })
    }

    /// The history of a kind. Not to be held across a wait.
    pub(crate) fn truth(&self, kind: Kind) -> MutexGuard<'_, Truth> {
        self.truths[kind as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
