//! Typed reads of one store.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kubestrata_api_types::{ObjectKey, Undecodable};
use kubestrata_codec::{Encoded, Item, Tracked};
use kubestrata_store_index::{Query, QueryError, Reader, Selected, StoreVersion, Stored};

/// Reads a store of items `T` as objects `K` (client-go's Lister). A clone reads the same store.
///
/// Reads are synchronous and never wait. An [`Encoded`] item decodes at each read; a decoded one is shared. Handles leave
/// the decoding to the caller.
pub struct Lister<K, T = Encoded> {
    reader: Reader<T>,
    namespace: Option<Arc<str>>,
    kind: PhantomData<fn() -> K>,
}

/// The objects of a list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Listed<K> {
    /// Those that decode.
    pub items: Vec<Arc<Tracked<K>>>,
    /// Those that do not.
    pub undecodable: Vec<Undecodable>,
    /// Whether the limit has cut more of them off.
    pub more: bool,
    /// The store's version at that instant.
    pub version: StoreVersion,
    /// Objects for which an index of the query could not be computed: they may be missing.
    pub unindexed: usize,
}

impl<K, T: Stored + Item<K>> Lister<K, T> {
    /// A lister over a store whose items are objects of type `K`.
    pub fn new(reader: Reader<T>) -> Self {
        Self { reader, namespace: None, kind: PhantomData }
    }

    /// Only the objects of a namespace. An empty one means all.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        let namespace = (!namespace.is_empty()).then(|| Arc::from(namespace));
        Self { reader: self.reader.clone(), namespace, kind: PhantomData }
    }

    /// One object, if it is there.
    ///
    /// # Errors
    ///
    /// [`Undecodable`] if it is there and does not decode.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Tracked<K>>>, Undecodable> {
        self.handle(key).map(|item| item.get()).transpose()
    }

    /// One object, not decoded, if it is there.
    pub fn handle(&self, key: &ObjectKey) -> Option<T> {
        if self.namespace.is_some() && self.namespace.as_deref() != key.namespace() {
            return None;
        }
        self.reader.get(key)
    }

    /// All objects, in no particular order.
    ///
    /// # Errors
    ///
    /// None, as there is no selector. The type is that of [`select`](Self::select).
    pub fn list(&self) -> Result<Listed<K>, QueryError> {
        self.select(Query::all())
    }

    /// The objects that have `value` in the index `name`.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoIndex`]
    pub fn by_index(&self, name: &str, value: &str) -> Result<Listed<K>, QueryError> {
        self.select(Query::all().index(name, value))
    }

    /// The objects that a query selects. Those that do not decode are named and hide no others.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if the query names a missing index or is more than indexes can answer.
    pub fn select(&self, query: Query) -> Result<Listed<K>, QueryError> {
        let selected = self.handles(query)?;
        let mut listed = Listed {
            items: Vec::with_capacity(selected.objects.len()),
            undecodable: Vec::new(),
            more: selected.more,
            version: selected.version,
            unindexed: selected.unindexed,
        };
        for item in &selected.objects {
            match item.get() {
                Ok(object) => listed.items.push(object),
                Err(error) => listed.undecodable.push(error),
            }
        }
        Ok(listed)
    }

    /// The same objects, not decoded.
    ///
    /// # Errors
    ///
    /// As [`select`](Self::select).
    pub fn handles(&self, query: Query) -> Result<Selected<T>, QueryError> {
        let query = match &self.namespace {
            Some(namespace) => query.in_namespace(&**namespace),
            None => query,
        };
        self.reader.select(&query)
    }

    /// The store's reader: counts, versions and waits.
    pub fn reader(&self) -> &Reader<T> {
        &self.reader
    }
}

impl<K, T> Clone for Lister<K, T> {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone(), namespace: self.namespace.clone(), kind: PhantomData }
    }
}

impl<K, T> fmt::Debug for Lister<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
