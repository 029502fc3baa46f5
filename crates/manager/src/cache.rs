//! The caches of a manager: one informer for each kind and namespace, in the form that was asked for.

mod kept;
mod options;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubestrata_api_types::{Collection, FieldPath, Representation, ResourceType};
use kubestrata_codec::Encoded;
use kubestrata_informer::{Config, Informer, InformerFactory, InformerStatus, Selection};

use crate::ApiService;

pub use self::kept::owner_index_name;
pub(crate) use self::kept::{Kept, KeptIn};
pub use self::options::CacheOptions;
pub(crate) use self::options::KindOptions;

/// The caches of a manager. A clone shares them.
///
/// A cache begins when a controller watches its kind, or when it is first asked for here; it ends with the manager.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    service: ApiService,
    encoded: InformerFactory<Encoded>,
    /// Configuration of the informers of decoded kinds, without what depends on the item type.
    config: Config<Encoded>,
    namespaces: Vec<String>,
    options: BTreeMap<ResourceType, KindOptions>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    started: bool,
    kept: BTreeMap<(Arc<ResourceType>, Form), ByNamespace>,
}

type ByNamespace = Vec<Arc<dyn Kept>>;

/// What a cache holds of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Whole,
    Metadata,
}

impl Cache {
    pub(crate) fn new(
        service: ApiService,
        config: Config<Encoded>,
        namespaces: Vec<String>,
        options: BTreeMap<ResourceType, KindOptions>,
    ) -> Self {
        let encoded = InformerFactory::new(Arc::new(service.clone()), config.clone());
        let state = Mutex::default();
        Self(Arc::new(Inner { service, encoded, config, namespaces, options, state }))
    }

    /// The informers of the encoded form: what a cached client reads from.
    pub fn factory(&self) -> &InformerFactory<Encoded> {
        &self.0.encoded
    }

    /// The informers of a kind, one for each namespace of the manager, made if there are none. Empty for a kind that is
    /// kept decoded.
    ///
    /// # Panics
    ///
    /// If the manager runs and this is called outside a tokio runtime.
    pub fn informers(&self, resource: impl Into<Arc<ResourceType>>) -> Vec<Informer<Encoded>> {
        let kept = self.kept(&resource.into(), Representation::Object);
        kept.iter()
            .filter_map(|kept| kept.as_any().downcast_ref::<KeptIn<Encoded>>())
            .map(|kept| kept.informer.clone())
            .collect()
    }

    /// The caches of a kind, one for each namespace, made if there are none.
    pub(crate) fn kept(
        &self,
        resource: &Arc<ResourceType>,
        representation: Representation,
    ) -> ByNamespace {
        let form = match representation {
            Representation::Metadata => Form::Metadata,
            _ => Form::Whole,
        };
        let mut state = self.state();
        let started = state.started;
        let make = || {
            let made = self.make(resource, form);
            if started {
                made.iter().for_each(|kept| kept.start());
            }
            made
        };
        state.kept.entry((Arc::clone(resource), form)).or_insert_with(make).clone()
    }

    fn make(&self, resource: &Arc<ResourceType>, form: Form) -> ByNamespace {
        let default = KindOptions::default();
        let options = self.0.options.get(&**resource).unwrap_or(&default);
        let namespaces = options.namespaces.as_ref().unwrap_or(&self.0.namespaces);
        let namespaces = if resource.is_namespaced() { &namespaces[..] } else { &[] };
        let all = [String::new()];
        let namespaces = if namespaces.is_empty() { &all[..] } else { namespaces };
        namespaces
            .iter()
            .map(|namespace| {
                let selection = selection(resource, namespace, form, options);
                match (&options.decoded, form) {
                    (Some(decoded), Form::Whole) => {
                        decoded.informer(&self.0.service, &self.0.config, selection)
                    }
                    _ => Arc::new(KeptIn::new(self.0.encoded.informer(selection))),
                }
            })
            .collect()
    }

    /// Starts all informers, and those that are made later when they are made.
    pub(crate) fn start(&self) {
        let mut state = self.state();
        state.started = true;
        self.0.encoded.start();
        state.kept.values().flatten().for_each(|kept| kept.start());
    }

    /// Stops all informers, and waits for their end.
    pub(crate) async fn stop(&self) {
        let all: Vec<_> = self.state().kept.values().flatten().cloned().collect();
        for kept in all {
            kept.stop().await;
        }
        self.0.encoded.stop().await;
    }

    pub(crate) fn status(&self) -> Vec<(Arc<ResourceType>, InformerStatus)> {
        let mut status = Vec::new();
        for ((resource, _), kept) in &self.state().kept {
            status.extend(kept.iter().map(|kept| (Arc::clone(resource), kept.status())));
        }
        status
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn selection(
    resource: &Arc<ResourceType>,
    namespace: &str,
    form: Form,
    options: &KindOptions,
) -> Selection {
    let mut collection = Collection::new(Arc::clone(resource)).in_namespace(namespace);
    if form == Form::Metadata {
        collection = collection.metadata_only();
    }
    let mut prune = options.prune.clone();
    if !options.keep_managed_fields {
        prune.push(FieldPath::managed_fields());
    }
    Selection::from(collection.prune(prune))
        .labels(options.labels.clone())
        .fields(options.fields.clone())
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let names: Vec<_> = state.kept.keys().map(|(resource, _)| resource.to_string()).collect();
        f.debug_tuple("Cache").field(&names).finish()
    }
}
