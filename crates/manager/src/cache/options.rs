//! How a kind is kept.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kubestrata_api_types::{
    FieldPath, FieldSelector, Kind, LabelSelector, ResourceType, ShardSelector,
};
use kubestrata_codec::{Decode, DecodeLayer, Decoded, Dynamic, Encoded, Tracked};
use kubestrata_informer::{Config, Informer, Selection, Transform};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tower::Layer as _;

use super::kept::{Kept, KeptIn};
use crate::ApiService;

/// How the objects of a kind are cached. The default is as bytes, whole, without managed fields.
#[must_use]
pub struct CacheOptions<K> {
    pub(crate) resource: ResourceType,
    pub(crate) options: KindOptions,
    kind: PhantomData<fn() -> K>,
}

/// The same without the Rust type.
#[derive(Default)]
pub(crate) struct KindOptions {
    pub(crate) keep_managed_fields: bool,
    pub(crate) prune: Vec<FieldPath>,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) shard: Option<ShardSelector>,
    pub(crate) namespaces: Option<Vec<String>>,
    pub(crate) decoded: Option<Arc<dyn MakeDecoded>>,
}

impl<K: Kind> CacheOptions<K> {
    /// The defaults.
    pub fn new() -> Self {
        Self::of(K::resource().clone())
    }
}

impl<K: Kind> Default for CacheOptions<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl CacheOptions<Dynamic> {
    /// The defaults, for a type known at run time.
    pub fn of_type(resource: ResourceType) -> Self {
        Self::of(resource)
    }
}

impl<K> CacheOptions<K> {
    fn of(resource: ResourceType) -> Self {
        Self { resource, options: KindOptions::default(), kind: PhantomData }
    }

    /// Keep `metadata.managedFields`. They are more than half of a plain object, and a write without them leaves the
    /// server's own untouched, so only code that reads them needs this.
    pub fn keep_managed_fields(mut self) -> Self {
        self.options.keep_managed_fields = true;
        self
    }

    /// Cut out a field as objects arrive. An update with such an object would remove the field on the server, and is
    /// refused: patch.
    pub fn prune(mut self, path: FieldPath) -> Self {
        self.options.prune.push(path);
        self
    }

    /// Only objects with these labels. To the cache's readers all others do not exist.
    pub fn labels(mut self, labels: LabelSelector) -> Self {
        self.options.labels = labels;
        self
    }

    /// Only objects with these field values, of those that the server selects by.
    pub fn fields(mut self, fields: FieldSelector) -> Self {
        self.options.fields = fields;
        self
    }

    /// KEP-5866: only objects of this shard, so that several managers can share the work on a kind. To the cache's readers
    /// all others do not exist. A server that does not know shards sends them all the same; they are left out here.
    pub fn shard(mut self, shard: ShardSelector) -> Self {
        self.options.shard = Some(shard);
        self
    }

    /// Only these namespaces, instead of the manager's. None means all.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.options.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }
}

impl<K: Kind + Serialize + DeserializeOwned> CacheOptions<K> {
    /// Keep objects decoded: reads share a value and cost nothing, memory is that of the Rust type, which is many times
    /// the bytes. For kinds that are few or read very often. Cached client calls do not see them: use the lister.
    pub fn decoded(mut self) -> Self {
        self.options.decoded = Some(Arc::new(Decoding::<K> { transform: None }));
        self
    }

    /// As [`decoded`](Self::decoded), with a function that changes each object as it arrives. An update with such an object
    /// is refused, since it would remove what the function took out: patch. Objects that do not
    /// decode come to nobody's eye but a reader's error, so the function does not see them.
    pub fn transform(mut self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Clone,
    {
        let transform = Transform::new(move |item: Decoded<K>| {
            let Ok(object) = item.object() else { return Some(item) };
            let mut object = Tracked::clone(object);
            transform(&mut object);
            // What the function took out would be missing from an update.
            Some(Decoded::new(object.into_partial()))
        });
        self.options.decoded = Some(Arc::new(Decoding { transform: Some(transform) }));
        self
    }
}

impl<K> fmt::Debug for CacheOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheOptions")
            .field("resource", &format_args!("{}", self.resource))
            .field("keep_managed_fields", &self.options.keep_managed_fields)
            .field("decoded", &self.options.decoded.is_some())
            .finish_non_exhaustive()
    }
}

/// Makes the informer of a kind that is kept decoded, where its Rust type is known no more.
pub(crate) trait MakeDecoded: Send + Sync {
    fn informer(
        &self,
        service: &ApiService,
        config: &Config<Encoded>,
        selection: Selection,
    ) -> Arc<dyn Kept>;
}

struct Decoding<K> {
    transform: Option<Transform<Decoded<K>>>,
}

impl<K: Kind + Serialize + DeserializeOwned> MakeDecoded for Decoding<K> {
    fn informer(
        &self,
        service: &ApiService,
        config: &Config<Encoded>,
        selection: Selection,
    ) -> Arc<dyn Kept> {
        let mut own = Config::<Decoded<K>> {
            name: config.name.clone(),
            reflector: config.reflector.clone(),
            fifo: config.fifo,
            queue: config.queue,
            transform: self.transform.clone(),
            when_gone: config.when_gone,
            recreate_as_update: config.recreate_as_update,
            metrics: Arc::clone(&config.metrics),
            on_problem: config.on_problem.clone(),
        };
        selection.choose_in(&mut own.reflector);
        let source: Decode<ApiService, K> = DecodeLayer::new().layer(service.clone());
        let informer = Informer::new(Arc::new(source), selection.collection, own);
        Arc::new(KeptIn::new(informer))
    }
}
