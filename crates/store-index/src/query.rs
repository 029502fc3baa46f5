//! Which objects a reader wants.

use std::ops::ControlFlow;

use kubestrata_api_types::{FieldSelector, KeyRef, LabelSelector, ObjectKey, Operator};
use smallvec::SmallVec;

use crate::index::label_index_name;
use crate::index::postings::Term;
use crate::state::State;
use crate::table::Chunks;
use crate::{StoreVersion, Stored};

/// A selection by namespace, labels, fields and indexes: objects that fulfil all of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
    indexes: Vec<(String, String)>,
    limit: Option<usize>,
    ordered: bool,
    after: Option<ObjectKey>,
}

impl Query {
    /// All objects.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only objects of this namespace. An empty one means all.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into()).filter(|namespace| !namespace.is_empty());
        self
    }

    /// Only objects with these labels. Each object that the other parts leave is looked at, except where an index over a
    /// label narrows it down.
    #[must_use]
    pub fn labels(mut self, labels: LabelSelector) -> Self {
        self.labels = labels;
        self
    }

    /// Only objects with these field values. Terms must be equalities, and each field needs an index of its name, apart
    /// from `metadata.name` and `metadata.namespace`.
    #[must_use]
    pub fn fields(mut self, fields: FieldSelector) -> Self {
        self.fields = fields;
        self
    }

    /// Only objects that have `value` in the index `name`.
    #[must_use]
    pub fn index(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.indexes.push((name.into(), value.into()));
        self
    }

    /// At most so many objects: any, or with [`ordered`](Self::ordered) the first.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Only objects whose key is greater, sorted by key: the next page of a list that ended with `key`. Pages are each of
    /// an instant of their own: an object is in none twice, and one that is there all the time is in one of them.
    #[must_use]
    pub fn after(mut self, key: ObjectKey) -> Self {
        self.after = Some(key);
        self.ordered()
    }

    /// Sorted by key, as a server lists. Without it the order is not specified.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }
}

/// The objects of a query, at one instant.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Selected<T> {
    /// The objects.
    pub objects: Vec<T>,
    /// Whether the limit has cut more of them off.
    pub more: bool,
    /// The store's version at that instant.
    pub version: StoreVersion,
    /// Objects for which an index of the query could not be computed: they may be missing.
    pub unindexed: usize,
}

/// A query that the store cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// There is no index of this name.
    #[error("there is no index {name:?}")]
    NoIndex {
        /// The name.
        name: String,
    },
    /// A term of the field selector is no equality.
    #[error("field {field:?} can be selected by equality only")]
    NotExact {
        /// The field.
        field: String,
    },
}

/// What of a query the indexes have answered, under the lock. The rest is done without it.
#[derive(Debug)]
pub(crate) struct Found<T> {
    chunks: Chunks<T>,
    /// The slots to look at; all if there are none.
    slots: Option<Vec<u32>>,
    /// `metadata.name` must be this.
    name: Option<String>,
    version: StoreVersion,
    unindexed: usize,
}

impl<T: Stored> State<T> {
    /// Lets the indexes answer: starts with the smallest set and asks the other terms about each of its members.
    pub(crate) fn find_query(&self, query: &Query) -> Result<Found<T>, QueryError> {
        let mut found = Found {
            chunks: self.table.share(),
            slots: None,
            name: None,
            version: self.version.clone(),
            unindexed: 0,
        };
        let Some(terms) = self.terms(query, &mut found)? else {
            found.slots = Some(Vec::new());
            return Ok(found);
        };
        if let (Some(name), Some(namespace)) = (&found.name, &query.namespace) {
            // The whole key is known, unless the kind has no namespaces, and then nothing matches.
            let slot = self.find(KeyRef::new(Some(namespace), name));
            let slots = slot.into_iter().filter(|slot| terms.iter().all(|term| term.has(*slot)));
            found.slots = Some(slots.collect());
        } else if let Some(smallest) = (0..terms.len()).min_by_key(|at| terms[*at].len()) {
            let others = || terms.iter().enumerate().filter(|(at, _)| *at != smallest);
            let mut slots: Vec<u32> = terms[smallest]
                .slots()
                .filter(|slot| others().all(|(_, term)| term.has(*slot)))
                .collect();
            if terms[smallest].ids.len() > 1 {
                slots.sort_unstable();
                slots.dedup();
            }
            found.slots = Some(slots);
        }
        Ok(found)
    }

    /// The terms that indexes can answer; `None` if one of them has no object.
    fn terms(
        &self,
        query: &Query,
        found: &mut Found<T>,
    ) -> Result<Option<SmallVec<[Term<'_>; 4]>>, QueryError> {
        let mut terms = SmallVec::new();
        let mut add = |postings, ids: SmallVec<[u32; 4]>| {
            let some = !ids.is_empty();
            terms.push(Term { postings, ids });
            some
        };
        let mut possible = true;
        if let Some(namespace) = &query.namespace {
            let postings = self.namespaces();
            possible &= add(postings, postings.find(namespace).into_iter().collect());
        }
        let named = query.indexes.iter().map(|(name, value)| (name, value, true));
        let fields = query.fields.terms().iter().map(|term| (&term.field, &term.value, term.equal));
        for (name, value, equal) in named.chain(fields) {
            if !equal {
                return Err(QueryError::NotExact { field: name.clone() });
            }
            if name == "metadata.name" {
                possible &= found.name.as_ref().is_none_or(|other| other == value);
                found.name = Some(value.clone());
                continue;
            }
            let no_index = || QueryError::NoIndex { name: name.clone() };
            let postings = self.index(name).ok_or_else(no_index)?;
            found.unindexed += postings.unindexed();
            possible &= add(postings, postings.find(value).into_iter().collect());
        }
        for requirement in query.labels.requirements() {
            if requirement.operator != Operator::In || self.indexes.len() == 1 {
                continue;
            }
            if let Some(postings) = self.index(&label_index_name(&requirement.key)) {
                let ids = requirement.values.iter().filter_map(|value| postings.find(value));
                possible &= add(postings, ids.collect());
            }
        }
        Ok(possible.then_some(terms))
    }
}

impl<T: Stored> Found<T> {
    /// Filters and clones, without any lock.
    pub(crate) fn select(self, query: &Query) -> Selected<T> {
        let mut objects = Vec::new();
        let more = self.visit(query, &mut |object| {
            objects.push(object.clone());
            ControlFlow::Continue(())
        });
        Selected { objects, more, version: self.version, unindexed: self.unindexed }
    }

    /// Shows each match, until `visit` breaks. Returns whether the limit has cut more of them off.
    pub(crate) fn visit(
        &self,
        query: &Query,
        visit: &mut dyn FnMut(&T) -> ControlFlow<()>,
    ) -> bool {
        let limit = query.limit.unwrap_or(usize::MAX);
        let wanted = |object: &&T| {
            self.name.as_ref().is_none_or(|name| object.name() == name)
                && query.labels.matches_object(*object)
        };
        let some = self.slots.iter().flatten().filter_map(|slot| self.chunks.get(*slot));
        let all = self.slots.is_none().then(|| self.chunks.iter()).into_iter().flatten();
        let mut matches = some.chain(all).filter(wanted);
        if query.ordered {
            let after = query.after.as_ref().map(ObjectKey::borrowed);
            let keyed = matches.map(|object| (object.key_ref(), object));
            let keyed = keyed.filter(|(key, _)| after.is_none_or(|after| *key > after));
            let mut sorted: Vec<(KeyRef<'_>, &T)> = keyed.collect();
            let more = sorted.len() > limit;
            if more {
                // The first page of a large list needs no order of the rest.
                sorted.select_nth_unstable_by(limit, |a, b| a.0.cmp(&b.0));
                sorted.truncate(limit);
            }
            sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            let broken = sorted.into_iter().try_for_each(|(_, object)| visit(object)).is_break();
            return more && !broken;
        }
        let broken = matches.by_ref().take(limit).try_for_each(visit).is_break();
        !broken && matches.next().is_some()
    }
}
