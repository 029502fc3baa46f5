//! Which resources are served, and where each keeps its objects.

use std::sync::Arc;

use bytes::Bytes;
use kubestrata_api_types::ResourceType;
use kubestrata_codec::schema::{self, Message};
use kubestrata_storage::{Change, ChangeKind, Observer, Storage, Subscription};
use kubestrata_watch_cache::WatchCache;
use parking_lot::RwLock;

use crate::crd::Schema;
use crate::failure::Outcome;
use crate::record::Item;
use crate::selectable::Selectable;

/// A subresource, as discovery shows it.
#[derive(Debug, Clone)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) verbs: Vec<String>,
}

/// What is known of a resource beside its type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Info {
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    /// Of Kubernetes itself, so that the codec's schema knows it.
    pub(crate) builtin: bool,
    /// Fields that a selector may name.
    pub(crate) selectable: Arc<Selectable>,
    /// What a custom resource definition says of its objects.
    pub(crate) schema: Option<Arc<Schema>>,
    /// Where a custom resource keeps what `Scale` shows.
    pub(crate) scale: Option<ScalePaths>,
}

/// The paths of `subresources.scale` of a custom resource definition.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// One version of one resource.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) ty: Arc<ResourceType>,
    pub(crate) info: Info,
    /// Its wire schema, if it is of Kubernetes itself.
    pub(crate) message: Option<&'static Message>,
    /// `{"kind":"Pod","apiVersion":"v1",`: what stored JSON lacks.
    pub(crate) type_json: Bytes,
    /// Where its objects are; none for kinds that are only asked, as reviews.
    pub(crate) store: Option<Arc<Store>>,
}

impl Resource {
    fn new(ty: ResourceType, info: Info, store: Option<Arc<Store>>) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let (kind, api_version) = (quoted(&ty.kind), quoted(&ty.api_version()));
        let type_json = if info.builtin {
            format!("{{\"kind\":{kind},\"apiVersion\":{api_version},")
        } else {
            format!("{{\"apiVersion\":{api_version},\"kind\":{kind},")
        };
        let message = info.builtin.then(|| schema::resource(&ty)).flatten();
        Self { ty: Arc::new(ty), info, message, type_json: type_json.into(), store }
    }

    /// The store of a resource that has one.
    pub(crate) fn store(&self) -> Outcome<&Arc<Store>> {
        self.store.as_ref().ok_or_else(crate::failure::no_resource)
    }

    pub(crate) fn has_verb(&self, verb: &str) -> bool {
        self.info.verbs.iter().any(|has| has == verb)
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.info.subresources.iter().find(|subresource| subresource.name == name)
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.ty.group == group && self.ty.plural == plural
    }
}

/// Objects of one resource, all versions of it.
#[derive(Debug)]
pub(crate) struct Store {
    /// `/registry/pods/`
    pub(crate) prefix: String,
    pub(crate) cache: WatchCache<Item>,
    _subscription: Subscription,
}

impl Store {
    /// Reads what is stored under `prefix` and follows it from there.
    pub(crate) async fn open(
        storage: &Arc<dyn Storage<Item>>,
        prefix: String,
        config: kubestrata_watch_cache::Config,
    ) -> Outcome<Self> {
        let delivered = storage.clone();
        let cache = WatchCache::with_progress(config, move || delivered.delivered());
        let follower = Arc::new(Follower(cache.clone()));
        let subscribed = storage.subscribe(&prefix, follower).await?;
        // The memory store reports nothing before `subscribe` returns to a server that nobody has yet,
        // and a new resource has no objects that anybody could write.
        let items = subscribed.state.items.into_iter().map(|entry| (entry.key, entry.value));
        if cache.revision() < subscribed.state.revision || cache.snapshot().items.is_empty() {
            cache.replace(items, subscribed.state.revision);
        }
        Ok(Self { prefix, cache, _subscription: subscribed.subscription })
    }

    /// The prefix of the keys of a namespace, or of all.
    pub(crate) fn scope(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{}{namespace}/", self.prefix),
            None => self.prefix.clone(),
        }
    }

    /// The key of one object.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        let mut key = self.scope(namespace);
        key.push_str(name);
        key
    }
}

/// Carries changes from the storage to the cache.
struct Follower(WatchCache<Item>);

impl Observer<Item> for Follower {
    fn changed(&self, change: &Change<Item>) {
        use kubestrata_watch_cache::Change as Cached;
        let (key, revision) = (change.key.clone(), change.revision);
        let (value, previous) = (change.value.clone(), change.previous.clone());
        self.0.apply(match change.kind {
            ChangeKind::Put => Cached::put(key, revision, value, previous),
            ChangeKind::Delete => Cached::delete(key, revision, value, previous),
        });
    }

    fn progressed(&self, revision: u64) {
        self.0.progress(revision);
    }
}

/// All served resources. Built-in groups come first, in the order of kube-apiserver's discovery.
#[derive(Debug, Default)]
pub(crate) struct Catalog(RwLock<Vec<Arc<Resource>>>);

impl Catalog {
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let resources = self.0.read();
        let found = resources.iter().find(|resource| {
            let ty = &resource.ty;
            ty.plural == plural && ty.group == group && ty.version == version
        });
        found.cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        self.0.read().clone()
    }

    /// Adds a resource, or replaces the one of the same path.
    pub(crate) fn insert(&self, ty: ResourceType, info: Info, store: Option<Arc<Store>>) {
        let resource = Arc::new(Resource::new(ty, info, store));
        let mut resources = self.0.write();
        let same = resources.iter().position(|other| {
            let (a, b) = (&other.ty, &resource.ty);
            a.group == b.group && a.version == b.version && a.plural == b.plural
        });
        match same {
            Some(at) => resources[at] = resource,
            None => resources.push(resource),
        }
    }

    /// Removes resources; gives them.
    pub(crate) fn remove(&self, which: impl Fn(&Resource) -> bool) -> Vec<Arc<Resource>> {
        let mut removed = Vec::new();
        self.0.write().retain(|resource| {
            let gone = which(resource);
            if gone {
                removed.push(resource.clone());
            }
            !gone
        });
        removed
    }
}

/// The resources that kube-apiserver serves by default, in the order of its discovery.
pub(crate) fn builtins() -> Vec<(ResourceType, Info)> {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let lines = schema::resources().iter().map(|line| {
        let ty = line.resource.clone();
        let subresources = line.subresources.iter().map(|subresource| Subresource {
            name: subresource.name.to_owned(),
            kind: subresource.kind.to_owned(),
            group: subresource.group.to_owned(),
            version: subresource.version.to_owned(),
            verbs: owned(subresource.verbs),
        });
        let info = Info {
            singular: line.singular.to_owned(),
            short_names: owned(line.short_names),
            categories: owned(line.categories),
            verbs: owned(line.verbs),
            subresources: subresources.collect(),
            builtin: true,
            selectable: Arc::new(Selectable::builtin(&ty.group, &ty.kind)),
            schema: None,
            scale: None,
        };
        (ty, info)
    });
    lines.collect()
}

/// Verbs of a resource that is declared or defined.
pub(crate) fn all_verbs() -> Vec<String> {
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        .map(str::to_owned)
        .to_vec()
}

/// Where kube-apiserver keeps the objects of a resource in etcd.
pub(crate) fn storage_prefix(ty: &ResourceType, builtin: bool) -> String {
    let (group, plural) = (&*ty.group, &*ty.plural);
    let place = match (group, plural) {
        ("", "nodes") => "minions".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        ("apiextensions.k8s.io" | "apiregistration.k8s.io", plural) => format!("{group}/{plural}"),
        // Two versions, or groups, of one kind that differ in their fields are kept apart: see the README.
        ("autoscaling", plural) if ty.version == "v1" => format!("{plural}.v1"),
        ("events.k8s.io", "events") => "events.k8s.io/events".to_owned(),
        (_, plural) if builtin => plural.to_owned(),
        (group, plural) => format!("{group}/{plural}"),
    };
    format!("/registry/{place}/")
}
