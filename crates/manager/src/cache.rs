//! The caches of a manager: one informer for each kind and namespace, in the form that was asked for.

mod kept;
mod lister;
mod options;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubestrata_api_types::{Collection, FieldPath, Representation, ResourceType};
use kubestrata_cache_client::OnMissing;
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
    /// The encoded kinds, and which of them answer a client's reads.
    encoded: kubestrata_cache_client::Cache,
    /// Configuration of the informers of decoded kinds, without what depends on the item type.
    config: Config<Encoded>,
    namespaces: Vec<String>,
    options: BTreeMap<ResourceType, KindOptions>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    started: bool,
    kept: BTreeMap<ResourceType, Forms>,
}

/// The caches of one kind, by what they hold of each object.
#[derive(Default)]
struct Forms {
    whole: Option<ByNamespace>,
    metadata: Option<ByNamespace>,
}

/// One cache for all namespaces, or one for each.
type ByNamespace = Arc<[Arc<dyn Kept>]>;

impl Forms {
    fn all(&self) -> impl Iterator<Item = &Arc<dyn Kept>> {
        self.whole.iter().chain(&self.metadata).flat_map(|kept| kept.iter())
    }
}

impl Cache {
    pub(crate) fn new(
        service: ApiService,
        config: Config<Encoded>,
        namespaces: Vec<String>,
        options: BTreeMap<ResourceType, KindOptions>,
    ) -> Self {
        let factory = InformerFactory::new(Arc::new(service.clone()), config.clone());
        // Which kinds are cached, and how, is decided here: the client's reads come by `kept` first.
        let reads = kubestrata_cache_client::Config {
            on_missing: OnMissing::Fail,
            prune: Arc::from([]),
            ..kubestrata_cache_client::Config::default()
        };
        let encoded = kubestrata_cache_client::Cache::new(factory, reads);
        let state = Mutex::default();
        Self(Arc::new(Inner { service, encoded, config, namespaces, options, state }))
    }

    /// What a cached client reads from.
    pub(crate) fn reads(&self) -> &kubestrata_cache_client::Cache {
        &self.0.encoded
    }

    /// The informers of a kind, one for each namespace of the manager, made if there are none. Empty for a kind that is
    /// kept decoded.
    ///
    /// # Panics
    ///
    /// If the manager runs and this is called outside a tokio runtime.
    pub fn informers(&self, resource: &ResourceType) -> Vec<Informer<Encoded>> {
        let kept = self.kept(resource, Representation::Object);
        kept.iter()
            .filter_map(|kept| kept.as_any().downcast_ref::<KeptIn<Encoded>>())
            .map(|kept| kept.informer.clone())
            .collect()
    }

    /// The caches of a kind, one for each namespace, made if there are none.
    pub(crate) fn kept(
        &self,
        resource: &ResourceType,
        representation: Representation,
    ) -> ByNamespace {
        let metadata = representation == Representation::Metadata;
        let mut state = self.state();
        let started = state.started;
        if let Some(forms) = state.kept.get(resource)
            && let Some(kept) = if metadata { &forms.metadata } else { &forms.whole }
        {
            return Arc::clone(kept);
        }
        let made: ByNamespace = self.make(resource, metadata).into();
        if started {
            made.iter().for_each(|kept| kept.start());
        }
        let forms = state.kept.entry(resource.clone()).or_default();
        let form = if metadata { &mut forms.metadata } else { &mut forms.whole };
        Arc::clone(form.insert(made))
    }

    /// The caches of a kind that are there, in any form, and have the objects of a namespace.
    pub(crate) fn following(
        &self,
        resource: &ResourceType,
        namespace: Option<&str>,
    ) -> Vec<Arc<dyn Kept>> {
        let state = self.state();
        let all = state.kept.get(resource).into_iter().flat_map(Forms::all);
        let follows = |kept: &&Arc<dyn Kept>| match kept.namespace() {
            None => true,
            Some(follows) => namespace == Some(&*follows),
        };
        all.filter(follows).cloned().collect()
    }

    fn make(&self, resource: &ResourceType, metadata: bool) -> Vec<Arc<dyn Kept>> {
        let default = KindOptions::default();
        let options = self.0.options.get(resource).unwrap_or(&default);
        let namespaces = options.namespaces.as_ref().unwrap_or(&self.0.namespaces);
        let namespaces = if resource.is_namespaced() { &namespaces[..] } else { &[] };
        let all = [String::new()];
        let namespaces = if namespaces.is_empty() { &all[..] } else { namespaces };
        let resource = Arc::new(resource.clone());
        namespaces
            .iter()
            .map(|namespace| {
                let selection = selection(&resource, namespace, metadata, options);
                match &options.decoded {
                    Some(decoded) if !metadata => {
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
        state.kept.values().flat_map(Forms::all).for_each(|kept| kept.start());
    }

    /// Stops all informers, and waits for their end.
    pub(crate) async fn stop(&self) {
        let all: Vec<_> = self.state().kept.values().flat_map(Forms::all).cloned().collect();
        for kept in all {
            kept.stop().await;
        }
    }

    /// How the caches are doing, by kind; one entry for each namespace and form of a kind.
    pub fn status(&self) -> Vec<(ResourceType, InformerStatus)> {
        let mut status = Vec::new();
        for (resource, forms) in &self.state().kept {
            status.extend(forms.all().map(|kept| (resource.clone(), kept.status())));
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
    metadata: bool,
    options: &KindOptions,
) -> Selection {
    let mut collection = Collection::new(Arc::clone(resource)).in_namespace(namespace);
    if metadata {
        collection = collection.metadata_only();
    }
    let mut prune = options.prune.clone();
    if !options.keep_managed_fields {
        prune.push(FieldPath::managed_fields());
    }
    let mut selection = Selection::from(collection.prune(prune))
        .labels(options.labels.clone())
        .fields(options.fields.clone());
    selection.shard.clone_from(&options.shard);
    selection
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let names: Vec<_> = state.kept.keys().map(ToString::to_string).collect();
        f.debug_tuple("Cache").field(&names).finish()
    }
}
