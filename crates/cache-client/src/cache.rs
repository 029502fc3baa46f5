//! The informers from which reads are answered.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::{Collection, Representation, ResourceType};
use kubestrata_codec::{Encoded, Item};
use kubestrata_informer::{Informer, InformerFactory, Selection};
use parking_lot::RwLock;

use crate::route::{Kind, Part, Route};
use crate::{CacheError, Config, Lister, OnMissing};

/// The informers from which reads are answered, and which of them to start when. A clone is another handle.
///
/// It keeps the informers that it uses running until they are [removed](Self::remove) or its last handle is dropped.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    factory: InformerFactory<Encoded>,
    config: Config,
    kinds: RwLock<Vec<Kind>>,
}

impl Cache {
    /// A cache over the informers of a factory.
    pub fn new(factory: InformerFactory<Encoded>, config: Config) -> Self {
        Self(Arc::new(Inner { factory, config, kinds: RwLock::new(Vec::new()) }))
    }

    /// Starts the factory, and so all its informers. Reads before that fail.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn start(&self) {
        self.0.factory.start();
    }

    /// Uses an informer for its kind and namespace from now on, made if the factory has none. Reads see only what it
    /// selects. A selection of all namespaces takes precedence over those of single ones.
    ///
    /// The configured fields are pruned unless the collection names some.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn informer(&self, selection: impl Into<Selection>) -> Informer<Encoded> {
        let selection = self.pruned(selection.into());
        let mut kinds = self.0.kinds.write();
        self.add(&mut kinds, selection)
    }

    /// The informer that answers reads of a collection, if there is exactly one by now. Starts none.
    pub fn peek(&self, collection: &Collection) -> Option<Informer<Encoded>> {
        let kinds = self.0.kinds.read();
        let kind = find(&kinds, &collection.resource, collection.representation)?;
        match &kind.parts_for(scope_of(collection))[..] {
            [part] => Some(part.informer.clone()),
            _ => None,
        }
    }

    /// Lets go of all informers of a kind; those that nobody else holds stop. Returns how many.
    pub fn remove(&self, resource: &ResourceType) -> usize {
        let mut removed = Vec::new();
        self.0.kinds.write().retain(|kind| {
            let keep = *kind.resource != *resource;
            if !keep {
                removed.push(kind.clone());
            }
            keep
        });
        removed.iter().map(|kind| kind.parts.len()).sum()
    }

    /// Typed reads of all objects of a kind, from one informer, which is started if the configuration says so.
    ///
    /// # Errors
    ///
    /// [`CacheError`] as for a read by request, apart from the waits: a lister reads what is there.
    /// A kind that is cached by namespace has no one lister: [`CacheError::OutOfScope`]; make them from its informers.
    pub fn lister<K>(&self) -> Result<Lister<K>, CacheError>
    where
        K: kubestrata_api_types::Kind,
        Encoded: Item<K>,
    {
        let collection = Collection::new(K::resource().clone());
        match self.route(&collection)? {
            Route::Cached(parts) => match &parts[..] {
                [part] if part.namespace().is_none() => Ok(Lister::new(part.informer.reader())),
                _ => Err(CacheError::OutOfScope {
                    resource: collection.resource.to_string(),
                    namespace: String::new(),
                }),
            },
            Route::Live => Err(CacheError::NotCached { resource: collection.resource.to_string() }),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(crate) fn is_live(&self, resource: &ResourceType) -> bool {
        self.0.config.live.iter().any(|live| live == resource)
    }

    /// The informers of a kind, in whatever representation, that follow a namespace. Starts none.
    pub(crate) fn followers(&self, resource: &ResourceType, namespace: Option<&str>) -> Vec<Part> {
        let kinds = self.0.kinds.read();
        let of_kind = kinds.iter().filter(|kind| *kind.resource == *resource);
        of_kind
            .flat_map(|kind| kind.parts.iter())
            .filter(|part| part.covers(namespace))
            .cloned()
            .collect()
    }

    /// Decides where a read goes, and starts informers if need be.
    pub(crate) fn route(&self, collection: &Collection) -> Result<Route, CacheError> {
        // What people are shown is the server's to make.
        let table = collection.representation == Representation::Table;
        if table || self.is_live(&collection.resource) {
            return Ok(Route::Live);
        }
        let (resource, representation) = (&collection.resource, collection.representation);
        let known = find(&self.0.kinds.read(), resource, representation).cloned();
        let kind = match (known, self.0.config.on_missing) {
            (Some(kind), _) => kind,
            (None, OnMissing::Live) => return Ok(Route::Live),
            (None, OnMissing::Fail) => {
                return Err(CacheError::NotCached { resource: resource.to_string() });
            }
            (None, OnMissing::Start) => {
                if !self.0.factory.is_started() {
                    return Err(CacheError::NotStarted);
                }
                self.follow(collection)
            }
        };
        let namespace = scope_of(collection);
        let parts = kind.parts_for(namespace);
        if parts.is_empty() {
            return Err(CacheError::OutOfScope {
                resource: resource.to_string(),
                namespace: namespace.unwrap_or_default().to_owned(),
            });
        }
        if parts.iter().any(|part| !part.informer.is_started()) {
            return Err(CacheError::NotStarted);
        }
        Ok(Route::Cached(parts))
    }

    /// Starts the informers that the configuration has for a kind.
    fn follow(&self, collection: &Collection) -> Kind {
        let (resource, representation) = (&collection.resource, collection.representation);
        let mut all = Collection::new(Arc::clone(resource)).prune(Arc::clone(&self.0.config.prune));
        all.representation = representation;
        let mut kinds = self.0.kinds.write();
        // Another read may have been faster.
        if find(&kinds, resource, representation).is_none() {
            tracing::debug!(%resource, "the first read starts the informer");
            if resource.is_namespaced() && !self.0.config.namespaces.is_empty() {
                for namespace in &self.0.config.namespaces {
                    self.add(&mut kinds, all.clone().in_namespace(namespace).into());
                }
            } else {
                self.add(&mut kinds, all.into());
            }
        }
        let kind = find(&kinds, resource, representation).cloned();
        kind.unwrap_or_else(|| Kind {
            resource: Arc::clone(resource),
            representation,
            parts: Arc::from([]),
        })
    }

    /// Adds the informer to its kind, in place of one for the same namespace.
    fn add(&self, kinds: &mut Vec<Kind>, selection: Selection) -> Informer<Encoded> {
        let informer = self.0.factory.informer(selection.clone());
        let resource = Arc::clone(&selection.collection.resource);
        let representation = selection.collection.representation;
        let part = Part { selection, informer: informer.clone() };
        match kinds.iter_mut().find(|kind| kind.is(&resource, representation)) {
            Some(kind) => {
                let others =
                    kind.parts.iter().filter(|other| other.namespace() != part.namespace());
                kind.parts = others.cloned().chain([part.clone()]).collect();
            }
            None => kinds.push(Kind { resource, representation, parts: Arc::from([part]) }),
        }
        informer
    }

    fn pruned(&self, mut selection: Selection) -> Selection {
        if selection.collection.prune.is_empty() {
            selection.collection.prune = Arc::clone(&self.0.config.prune);
        }
        selection
    }
}

/// Kinds without namespaces ignore the one of a request.
fn scope_of(collection: &Collection) -> Option<&str> {
    collection.namespace.as_deref().filter(|_| collection.resource.is_namespaced())
}

fn find<'a>(
    kinds: &'a [Kind],
    resource: &ResourceType,
    representation: Representation,
) -> Option<&'a Kind> {
    kinds.iter().find(|kind| kind.is(resource, representation))
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.0.kinds.read();
        let names = kinds.iter().map(|kind| kind.resource.to_string());
        f.debug_list().entries(names).finish()
    }
}
