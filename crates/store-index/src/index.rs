//! What an index is: a name, and a way from an object to its values.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kubestrata_api_types::{FieldPath, Object, ObjectKey, View, ViewError};

pub(crate) mod extract;
pub(crate) mod postings;

/// Name of the index over namespaces, which every store has.
pub(crate) const NAMESPACE: &str = "metadata.namespace";

/// Tells a function index the values of one object.
type Function<T> = dyn Fn(&T, &mut dyn FnMut(&str)) + Send + Sync;

/// An index: objects are found by each of the values that it gives them.
///
/// Values are texts. Equal values of one object count once. A clone is a reference count.
pub struct Index<T> {
    name: Arc<str>,
    source: Source<T>,
}

enum Source<T> {
    Namespace,
    Label(Arc<str>),
    Field(FieldPath),
    Function(Arc<Function<T>>),
}

impl<T> Index<T> {
    /// An index over the values that a function gives.
    ///
    /// The function runs once for each new state of an object, on the writer's task and outside all locks that readers
    /// take, so it may read the store. It need not be pure: the store remembers what it answered.
    /// A panic in it counts as a failure for that object alone.
    pub fn by(
        name: impl Into<Arc<str>>,
        function: impl Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), source: Source::Function(Arc::new(function)) }
    }

    /// An index over a field, named like the path: `spec.nodeName`.
    ///
    /// As in a server's field selector, an object without the field has the empty string.
    pub fn field(path: FieldPath) -> Self {
        Self { name: path.to_string().into(), source: Source::Field(path) }
    }

    /// An index over one label. Queries by label use it by themselves; objects without the label are not in it.
    pub fn label(key: impl AsRef<str>) -> Self {
        let key = key.as_ref();
        Self { name: label_index_name(key).into(), source: Source::Label(key.into()) }
    }

    pub(crate) fn namespace() -> Self {
        Self { name: Arc::from(NAMESPACE), source: Source::Namespace }
    }

    /// The index's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether the two give the same values: the same field, label, or function object.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && match (&self.source, &other.source) {
                (Source::Namespace, Source::Namespace) => true,
                (Source::Label(a), Source::Label(b)) => a == b,
                (Source::Field(a), Source::Field(b)) => a == b,
                (Source::Function(a), Source::Function(b)) => Arc::ptr_eq(a, b),
                _ => false,
            }
    }
}

/// Name of the index over the label `key`: its path.
pub(crate) fn label_index_name(key: &str) -> String {
    format!("metadata.labels['{key}']")
}

impl<T: Object + View> Index<T> {
    /// Calls `out` with each value of `object`.
    pub(crate) fn values(&self, object: &T, out: &mut dyn FnMut(&str)) -> Result<(), IndexFailure> {
        match &self.source {
            Source::Namespace => object.namespace().into_iter().for_each(out),
            Source::Label(key) => object.label(key).into_iter().for_each(out),
            Source::Field(path) => {
                let mut found = false;
                object.field(path, &mut |value| {
                    found = true;
                    out(value);
                })?;
                if !found {
                    out("");
                }
            }
            Source::Function(function) => {
                // Unwind safe: on a panic the caller discards what `out` was given.
                catch_unwind(AssertUnwindSafe(|| function(object, out)))
                    .map_err(|_| IndexFailure::Panicked)?;
            }
        }
        Ok(())
    }
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        let source = match &self.source {
            Source::Namespace => Source::Namespace,
            Source::Label(key) => Source::Label(Arc::clone(key)),
            Source::Field(path) => Source::Field(path.clone()),
            Source::Function(function) => Source::Function(Arc::clone(function)),
        };
        Self { name: Arc::clone(&self.name), source }
    }
}

impl<T> fmt::Debug for Index<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({:?})", self.name)
    }
}

/// Another index has this name and is not the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("another index is named {name:?}")]
#[non_exhaustive]
pub struct NameTaken {
    /// The name.
    pub name: Arc<str>,
}

/// An object is stored, but one index does not find it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("object {key} is not in index {index:?}")]
#[non_exhaustive]
pub struct IndexProblem {
    /// Name of the index.
    pub index: Arc<str>,
    /// The object.
    pub key: ObjectKey,
    /// Why.
    #[source]
    pub failure: IndexFailure,
}

/// Why an object's values could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexFailure {
    /// The field cannot be read.
    #[error("its values cannot be read")]
    View(#[from] ViewError),
    /// The function panicked.
    #[error("the index function panicked")]
    Panicked,
}
