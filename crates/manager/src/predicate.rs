//! Which changes are worth a reconcile.
//!
//! By the names of controller-runtime. Predicates decide what is enqueued, not what is cached: for that there are
//! selectors, in [`CacheOptions`](crate::CacheOptions).

use std::fmt;

use kubestrata_api_types::LabelSelector;

use crate::Inspect;
use crate::inspect::labels;

/// A change of the cache, as predicates see it.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "a predicate must decide for each")]
pub enum Change<'a> {
    /// The object is new in the cache.
    Created {
        /// The object.
        object: &'a dyn Inspect,
        /// Whether it was there when the controller began.
        initial: bool,
    },
    /// The object changed, or was found unchanged by a relist or resync: then both have one version.
    Updated {
        /// The state before.
        old: &'a dyn Inspect,
        /// The state now.
        new: &'a dyn Inspect,
    },
    /// The object is gone.
    Deleted {
        /// The last state that is known.
        last: &'a dyn Inspect,
        /// Whether that is the state in which it was deleted.
        final_state_known: bool,
    },
}

impl<'a> Change<'a> {
    /// The object in its newest state.
    pub fn object(&self) -> &'a dyn Inspect {
        match *self {
            Self::Created { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }

    /// Whether nobody waits for it: an object of the first state, or one that was found unchanged.
    pub fn is_routine(&self) -> bool {
        match *self {
            Self::Created { initial, .. } => initial,
            Self::Updated { old, new } => {
                let version = new.resource_version();
                !version.is_unset() && version == old.resource_version()
            }
            Self::Deleted { .. } => false,
        }
    }
}

impl fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Created { .. } => "Created",
            Self::Updated { .. } => "Updated",
            Self::Deleted { .. } => "Deleted",
        };
        write!(f, "{name}({})", self.object().key())
    }
}

/// Decides whether a change is worth a reconcile. Several on one watch must all agree.
///
/// A panic in one costs that change, which is then lost to the controller; it is counted and reported by the informer.
pub trait Predicate: Send + Sync + 'static {
    /// Whether the change passes.
    fn passes(&self, change: &Change<'_>) -> bool;

    /// Passes what both pass.
    fn and<P: Predicate>(self, other: P) -> And<Self, P>
    where
        Self: Sized,
    {
        And(self, other)
    }

    /// Passes what either passes.
    fn or<P: Predicate>(self, other: P) -> Or<Self, P>
    where
        Self: Sized,
    {
        Or(self, other)
    }

    /// Passes what this one does not.
    fn negate(self) -> Not<Self>
    where
        Self: Sized,
    {
        Not(self)
    }
}

/// See [`Predicate::and`].
#[derive(Debug, Clone)]
pub struct And<A, B>(A, B);

/// See [`Predicate::or`].
#[derive(Debug, Clone)]
pub struct Or<A, B>(A, B);

/// See [`Predicate::negate`].
#[derive(Debug, Clone)]
pub struct Not<P>(P);

impl<A: Predicate, B: Predicate> Predicate for And<A, B> {
    fn passes(&self, change: &Change<'_>) -> bool {
        self.0.passes(change) && self.1.passes(change)
    }
}

impl<A: Predicate, B: Predicate> Predicate for Or<A, B> {
    fn passes(&self, change: &Change<'_>) -> bool {
        self.0.passes(change) || self.1.passes(change)
    }
}

impl<P: Predicate> Predicate for Not<P> {
    fn passes(&self, change: &Change<'_>) -> bool {
        !self.0.passes(change)
    }
}

/// A predicate from a function.
#[derive(Clone)]
pub struct Func<F>(F);

impl<F: Fn(&Change<'_>) -> bool + Send + Sync + 'static> Predicate for Func<F> {
    fn passes(&self, change: &Change<'_>) -> bool {
        (self.0)(change)
    }
}

impl<F> fmt::Debug for Func<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Func")
    }
}

/// A function of the change (controller-runtime `Funcs`).
pub fn on_change<F: Fn(&Change<'_>) -> bool + Send + Sync + 'static>(f: F) -> Func<F> {
    Func(f)
}

/// A function of the object in its newest state (controller-runtime `NewPredicateFuncs`).
pub fn on_object(f: impl Fn(&dyn Inspect) -> bool + Send + Sync + 'static) -> impl Predicate {
    on_change(move |change| f(change.object()))
}

/// A function of old and new state, for updates alone; all else passes.
pub fn on_update(
    f: impl Fn(&dyn Inspect, &dyn Inspect) -> bool + Send + Sync + 'static,
) -> impl Predicate {
    on_change(move |change| match *change {
        Change::Updated { old, new } => f(old, new),
        Change::Created { .. } | Change::Deleted { .. } => true,
    })
}

/// Drops updates that changed nothing: those of relists and resyncs.
pub fn resource_version_changed() -> impl Predicate {
    on_update(|old, new| old.resource_version() != new.resource_version())
}

/// Drops updates that left the desired state as it was: of status, labels, annotations. Kinds without
/// `metadata.generation` never pass an update.
pub fn generation_changed() -> impl Predicate {
    on_update(|old, new| old.generation() != new.generation())
}

/// Drops updates that left the labels as they were.
pub fn label_changed() -> impl Predicate {
    on_update(|old, new| labels(old) != labels(new))
}

/// Drops updates that left the annotations as they were. Where they cannot be read the update passes.
pub fn annotation_changed() -> impl Predicate {
    on_update(|old, new| match (old.annotations(), new.annotations()) {
        (Ok(old), Ok(new)) => old != new,
        _ => true,
    })
}

/// Passes objects that match, in their newest state: an object that stops to match gives no reconcile.
/// [`label_selector_or_left`] is without that hole.
pub fn label_selector(selector: LabelSelector) -> impl Predicate {
    on_object(move |object| selector.matches(|key| object.label(key)))
}

/// As [`label_selector`], but an update passes also if the old state matched.
pub fn label_selector_or_left(selector: LabelSelector) -> impl Predicate {
    on_change(move |change| {
        let matches = |object: &dyn Inspect| selector.matches(|key| object.label(key));
        match *change {
            Change::Updated { old, new } => matches(new) || matches(old),
            Change::Created { .. } | Change::Deleted { .. } => matches(change.object()),
        }
    })
}
