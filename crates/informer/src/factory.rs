//! One informer for each collection.

use std::fmt;
use std::sync::{Arc, Weak};

use kubestrata_api_types::{Collection, FieldSelector, LabelSelector, ListWatch, ShardSelector};
use kubestrata_reflector as reflector;
use kubestrata_store_index::Stored;
use parking_lot::Mutex;

use crate::informer::Core;
use crate::{Config, Informer};

/// What an informer follows: a collection, and which of its objects.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Selection {
    /// The collection.
    pub collection: Collection,
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these field values.
    pub fields: FieldSelector,
    /// KEP-5866: only objects of this shard; `None` means all. A server that does not know shards sends everything, and
    /// what is not of the shard is left out here; see [`reflector::Config::shard`].
    pub shard: Option<ShardSelector>,
}

impl Selection {
    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, labels: LabelSelector) -> Self {
        self.labels = labels;
        self
    }

    /// Only objects with these field values.
    #[must_use]
    pub fn fields(mut self, fields: FieldSelector) -> Self {
        self.fields = fields;
        self
    }

    /// KEP-5866: only objects of this shard.
    #[must_use]
    pub fn shard(mut self, shard: ShardSelector) -> Self {
        self.shard = Some(shard);
        self
    }

    /// Makes a reflector of [`collection`](Self::collection) follow just these objects, whatever it would have selected
    /// before. An [`InformerFactory`] does so by itself.
    pub fn choose_in(&self, config: &mut reflector::Config) {
        let Self { collection: _, labels, fields, shard } = self;
        config.labels.clone_from(labels);
        config.fields.clone_from(fields);
        config.shard.clone_from(shard);
    }
}

impl From<Collection> for Selection {
    fn from(collection: Collection) -> Self {
        let (labels, fields) = (LabelSelector::default(), FieldSelector::default());
        Self { collection, labels, fields, shard: None }
    }
}

/// Makes informers over one source, one for each selection (client-go `SharedInformerFactory`).
///
/// Who asks for equal selections shares an informer; another namespace, selector, shard, representation or list of pruned
/// fields is another selection.
///
/// It counts references: an informer lives as long as somebody else holds a handle to it, and is made anew when it is
/// asked for after that. A clone is another handle to the same factory.
pub struct InformerFactory<T: Stored>(Arc<Inner<T>>);

struct Inner<T: Stored> {
    source: Arc<dyn ListWatch<T>>,
    config: Config<T>,
    state: Mutex<State<T>>,
}

struct State<T: Stored> {
    started: bool,
    /// Searched in order: a process has some dozens.
    informers: Vec<(Selection, Weak<Core<T>>)>,
}

impl<T: Stored> InformerFactory<T> {
    /// A factory over `source`. `config` holds for each informer, apart from the selectors and the shard of its
    /// reflector, which only the selection says.
    pub fn new(source: Arc<dyn ListWatch<T>>, config: Config<T>) -> Self {
        let state = Mutex::new(State { started: false, informers: Vec::new() });
        Self(Arc::new(Inner { source, config, state }))
    }

    /// The informer of a selection, made if there is none, and started if the factory is.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn informer(&self, selection: impl Into<Selection>) -> Informer<T> {
        self.informer_with(selection, |config| config)
    }

    /// The same, with a configuration changed for this informer, if it has to be made.
    ///
    /// # Panics
    ///
    /// As [`informer`](Self::informer).
    pub fn informer_with(
        &self,
        selection: impl Into<Selection>,
        change: impl FnOnce(Config<T>) -> Config<T>,
    ) -> Informer<T> {
        let selection = selection.into();
        let mut state = self.0.state.lock();
        if let Some(informer) = state.find(&selection) {
            return informer;
        }
        let mut config = change(self.0.config.clone());
        selection.choose_in(&mut config.reflector);
        let source = Arc::clone(&self.0.source);
        let informer = Informer::new(source, selection.collection.clone(), config);
        state.informers.retain(|(other, core)| core.strong_count() > 0 && *other != selection);
        state.informers.push((selection, informer.downgrade()));
        if state.started {
            informer.start();
        }
        informer
    }

    /// The informer of a selection, if there is one.
    pub fn get(&self, selection: &Selection) -> Option<Informer<T>> {
        self.0.state.lock().find(selection)
    }

    /// All informers that live.
    pub fn informers(&self) -> Vec<Informer<T>> {
        let state = self.0.state.lock();
        let live = state.informers.iter().filter_map(|(_, core)| core.upgrade());
        live.map(Informer::from_core).collect()
    }

    /// Starts all informers, and those that are made later when they are made.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn start(&self) {
        self.0.state.lock().started = true;
        for informer in self.informers() {
            informer.start();
        }
    }

    /// Whether it was started.
    pub fn is_started(&self) -> bool {
        self.0.state.lock().started
    }

    /// Stops all informers and waits for their end. Cancel-safe: what was stopped stays so.
    pub async fn stop(&self) {
        for informer in self.informers() {
            informer.stop().await;
        }
    }
}

impl<T: Stored> State<T> {
    fn find(&self, selection: &Selection) -> Option<Informer<T>> {
        let (_, core) = self.informers.iter().find(|(other, _)| other == selection)?;
        Some(Informer::from_core(core.upgrade()?)).filter(|informer| !informer.is_stopped())
    }
}

impl<T: Stored> Clone for InformerFactory<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Stored> fmt::Debug for InformerFactory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerFactory").field("informers", &self.informers()).finish()
    }
}
