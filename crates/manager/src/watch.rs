//! What a controller watches, and what it makes of it.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{Kind, ObjectKey, Representation, ResourceType};
use smallvec::SmallVec;

use crate::Inspect;
use crate::enqueue::Enqueue;
use crate::mapper::{Itself, MapFn, Mapper, Owner};
use crate::predicate::{Change, Predicate};

/// Priority of keys that nobody waits for, as in controller-runtime: of the first state, and of unchanged objects.
pub const LOW_PRIORITY: i32 = -100;

/// A kind to watch, which of its changes count, and which keys they concern.
#[must_use]
pub struct Watch {
    pub(crate) resource: Arc<ResourceType>,
    pub(crate) representation: Representation,
    pub(crate) mapper: Arc<dyn Mapper>,
    pub(crate) predicates: Vec<Arc<dyn Predicate>>,
    pub(crate) priority: Option<i32>,
    /// Whether the cache gets an index of objects by their controller.
    pub(crate) owner_index: bool,
}

impl Watch {
    /// All changes of a kind, each concerning the object itself.
    pub fn of<K: Kind>() -> Self {
        Self::of_type(K::resource().clone())
    }

    /// The same for a type known at run time.
    pub fn of_type(resource: impl Into<Arc<ResourceType>>) -> Self {
        Self {
            resource: resource.into(),
            representation: Representation::Object,
            mapper: Arc::new(Itself),
            predicates: Vec::new(),
            priority: None,
            owner_index: false,
        }
    }

    /// Cache and watch only the metadata. That is a cache of its own beside that of whole objects.
    pub fn metadata_only(mut self) -> Self {
        self.representation = Representation::Metadata;
        self
    }

    /// Each change concerns the owner of kind `K` that is the object's managing controller.
    pub fn owner<K: Kind>(self) -> Self {
        self.mapper(Owner::of::<K>())
    }

    /// Each change concerns the keys that a function gives. It may read other kinds from the cache.
    pub fn map(
        self,
        f: impl Fn(&dyn Inspect, &mut dyn FnMut(ObjectKey)) + Send + Sync + 'static,
    ) -> Self {
        self.mapper(MapFn(f))
    }

    /// Each change concerns the keys that a mapper gives.
    pub fn mapper(mut self, mapper: impl Mapper) -> Self {
        self.mapper = Arc::new(mapper);
        self
    }

    /// Only changes that pass, and pass all other predicates.
    pub fn predicate(mut self, predicate: impl Predicate) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// With this priority, instead of 0, or [`LOW_PRIORITY`] for changes that nobody waits for.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The watch with the place where its keys go.
    pub(crate) fn sink(&self, common: &[Arc<dyn Predicate>], enqueue: Arc<Enqueue>) -> Sink {
        Sink {
            predicates: common.iter().chain(&self.predicates).cloned().collect(),
            mapper: Arc::clone(&self.mapper),
            priority: self.priority,
            enqueue,
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("resource", &format_args!("{}", self.resource))
            .field("predicates", &self.predicates.len())
            .finish_non_exhaustive()
    }
}

/// Where the changes of one watch go.
pub(crate) struct Sink {
    predicates: Vec<Arc<dyn Predicate>>,
    mapper: Arc<dyn Mapper>,
    priority: Option<i32>,
    enqueue: Arc<Enqueue>,
}

impl Sink {
    pub(crate) fn change(&self, change: &Change<'_>) {
        if !self.predicates.iter().all(|predicate| predicate.passes(change)) {
            return;
        }
        let routine = if change.is_routine() { LOW_PRIORITY } else { 0 };
        let priority = self.priority.unwrap_or(routine);
        let mut keys = SmallVec::<[ObjectKey; 2]>::new();
        let mut push = |key| {
            if !keys.contains(&key) {
                keys.push(key);
            }
        };
        if let Change::Updated { old, .. } = *change {
            self.mapper.keys(old, &mut push);
        }
        self.mapper.keys(change.object(), &mut push);
        for key in keys {
            self.enqueue.add(key, priority);
        }
    }
}
