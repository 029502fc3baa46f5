//! What everything in a run shares, and the kinds and views that it is about.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubestrata_api_types::{
    Accept, Collection, Format, ResourceType, Scope as ResourceScope, ShardField, ShardSelector,
};
use kubestrata_informer::Selection;
use kubestrata_testkit::FakeWorld;

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

/// What a client keeps of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its bytes.
    Encoded,
    /// The bytes of its metadata, which is all that it asks for.
    Metadata,
    /// A Rust value.
    Decoded,
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
    /// What is kept of them.
    pub(crate) form: Form,
}

impl View {
    /// A view of a kind, in a format; the rest is by chance.
    pub(crate) fn random(world: &FakeWorld, kind: Kind, format: Format) -> Self {
        let one_of = |names: &[&'static str]| {
            names[usize::try_from(world.below(names.len() as u64)).unwrap_or(0)]
        };
        let namespace = world.chance(30).then_some("a");
        let selector = one_of(&Scope::SELECTORS);
        // Not both: hardly an object would be left.
        let (fields, half) = match world.below(10) {
            0..=2 => (one_of(&Scope::FIELDS), None),
            3..=4 => ("", Some(world.below(2))),
            _ => ("", None),
        };
        let form = match world.below(10) {
            0..=1 => Form::Metadata,
            2..=4 => Form::Decoded,
            _ => Form::Encoded,
        };
        Self { kind, scope: Scope { namespace, selector, fields, half }, format, form }
    }

    /// What to follow.
    pub(crate) fn selection(self) -> Selection {
        let mut collection =
            Collection::new(self.kind.resource()).accept(Accept::Only(self.format));
        if let Some(namespace) = self.scope.namespace {
            collection = collection.in_namespace(namespace);
        }
        if self.form == Form::Metadata {
            collection = collection.metadata_only();
        }
        let selection = Selection::from(collection)
            .labels(self.scope.selector.parse().expect("the selectors are valid"))
            .fields(self.scope.fields.parse().expect("the selectors are valid"));
        match self.scope.half {
            None => selection,
            Some(half) => {
                let part = ShardSelector::part(ShardField::Uid, u32::from(half > 0), 2);
                selection.shard(part.expect("two halves have these numbers"))
            }
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
