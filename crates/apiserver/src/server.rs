//! The server: a builder, a handle, and a `tower::Service`.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use kubestrata_api_types::{BoxError, BoxFuture, ResourceType, SystemWorld, World};
use kubestrata_storage::{Memory, Storage};

use crate::answer;
use crate::body::Body;
use crate::catalog::{self, Catalog, Info, Store, Subresource};
use crate::config::Config;
use crate::dispatch;
use crate::failure::{self, Failure, Outcome};
use crate::media;
use crate::record::Item;
use crate::selectable::Selectable;

mod restart;

pub use self::restart::Backup;

/// What all requests share.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) world: Arc<dyn World>,
    pub(crate) storage: Arc<dyn Storage<Item>>,
    pub(crate) catalog: Catalog,
}

/// An API server. A clone is another handle of the same one; the last handle that goes takes the objects with it.
///
/// It is a `tower::Service` of HTTP requests, so a client's transport can be put on top of it with no socket between.
/// It owns no task: a request is worked on only while its future or body is polled.
#[derive(Clone)]
pub struct Server(Arc<Core>);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("storage", &self.0.storage).finish_non_exhaustive()
    }
}

impl Server {
    /// A server with the built-in resources, the namespaces `default`, `kube-system`, `kube-public` and
    /// `kube-node-lease`, and nothing else.
    pub fn start_default() -> Self {
        Self::builder().start()
    }

    /// A server to be configured.
    pub fn builder() -> Builder {
        Builder {
            config: Config::default(),
            world: Arc::new(SystemWorld::new()),
            declared: Vec::new(),
            namespaces: ["default", "kube-system", "kube-public", "kube-node-lease"]
                .map(str::to_owned)
                .to_vec(),
        }
    }

    /// Serves one resource more, at once: any JSON object of that type, with a status subresource, without a schema.
    ///
    /// Declaring what is already served replaces its description and keeps its objects.
    pub fn declare(&self, resource: ResourceType) {
        self.0.declare(resource);
    }

    /// Serves a resource no more: its watches end, its path is 404, its objects are gone. False if it was not declared;
    /// a built-in resource stays.
    pub async fn undeclare(&self, resource: &ResourceType) -> bool {
        let removed = self.0.catalog.remove(|served| {
            !served.info.builtin
                && served.ty.group == resource.group
                && served.ty.plural == resource.plural
        });
        for served in &removed {
            if let Some(store) = &served.store {
                store.cache.close();
                self.0.clear(store).await;
            }
        }
        !removed.is_empty()
    }

    /// Forgets all history, as compaction and time do: lists of an older version and watches from one are answered with
    /// 410 from now on. For tests of what a client does then.
    pub async fn compact(&self) {
        let Ok(current) = self.0.storage.current().await else { return };
        for resource in self.0.catalog.all() {
            if let Some(store) = &resource.store {
                store.cache.compact(current);
            }
        }
        // A revision that another compaction has passed is as forgotten as it was meant to be.
        let _ = self.0.storage.compact(current).await;
    }

    /// The revision of the last write: the resource version of an object that was just written.
    ///
    /// # Errors
    ///
    /// The storage cannot be reached.
    pub async fn revision(&self) -> Result<u64, BoxError> {
        Ok(self.0.storage.current().await?)
    }
}

/// Configures a [`Server`].
#[derive(Debug)]
pub struct Builder {
    config: Config,
    world: Arc<dyn World>,
    declared: Vec<ResourceType>,
    namespaces: Vec<String>,
}

impl Builder {
    /// Limits and times.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Wall clock, randomness and UIDs; a seeded world makes a run repeatable.
    #[must_use]
    pub fn world(mut self, world: Arc<dyn World>) -> Self {
        self.world = world;
        self
    }

    /// Serves one resource more; see [`Server::declare`].
    #[must_use]
    pub fn declare(mut self, resource: ResourceType) -> Self {
        self.declared.push(resource);
        self
    }

    /// One more namespace that is there from the start.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespaces.push(name.into());
        self
    }

    /// Starts the server, with storage in memory. It serves when this returns.
    pub fn start(self) -> Server {
        let storage: Arc<dyn Storage<Item>> =
            Arc::new(Memory::<Item>::new(self.config.storage.clone()));
        let core = Arc::new(Core {
            config: self.config,
            world: self.world,
            storage,
            catalog: Catalog::default(),
        });
        for (ty, info) in catalog::builtins() {
            core.serve(ty, info);
        }
        for resource in self.declared {
            core.declare(resource);
        }
        let namespaces = self.namespaces;
        let made = core.make_namespaces(&namespaces).now_or_never();
        made.expect("the memory storage answers without waiting")
            .expect("the first namespaces are new and their names valid");
        Server(core)
    }
}

impl Core {
    /// Adds a resource, with a store if its objects are kept.
    pub(crate) fn serve(&self, ty: ResourceType, info: Info) {
        let kept = info.verbs.iter().any(|verb| verb == "watch");
        let existing = self.catalog.all().into_iter().find_map(|other| {
            let same = other.ty.group == ty.group && other.ty.plural == ty.plural;
            let shared = same && !info.builtin && !other.info.builtin;
            if shared { other.store.clone() } else { None }
        });
        let store = existing.or_else(|| kept.then(|| self.open(&ty, info.builtin)));
        self.catalog.insert(ty, info, store);
    }

    fn open(&self, ty: &ResourceType, builtin: bool) -> Arc<Store> {
        let prefix = catalog::storage_prefix(ty, builtin);
        let opened =
            Store::open(&self.storage, prefix, self.config.watch_cache.clone()).now_or_never();
        let store = opened
            .expect("the memory storage answers without waiting")
            .expect("the memory storage is always there");
        Arc::new(store)
    }

    fn declare(&self, resource: ResourceType) {
        let singular = resource.kind.to_lowercase();
        let status = Subresource {
            name: "status".to_owned(),
            kind: resource.kind.to_string(),
            group: resource.group.to_string(),
            version: resource.version.to_string(),
            verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
        };
        let info = Info {
            singular,
            verbs: catalog::all_verbs(),
            subresources: vec![status],
            selectable: Arc::new(Selectable::custom(std::iter::empty())),
            ..Info::default()
        };
        self.serve(resource, info);
    }

    /// Removes all objects of a store, for ever.
    pub(crate) async fn clear(&self, store: &Store) {
        let items = store.cache.snapshot().items.iter_from("", "");
        for (key, item) in items {
            // A conflict means that somebody else has removed it.
            let _ = self.storage.delete(&key, item.revision, &|revision| item.at(revision)).await;
        }
    }
}

impl<B> tower::Service<Request<B>> for Server
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let core = self.0.clone();
        let format = media::status_format(request.headers());
        Box::pin(async move {
            let outcome = answer_to(core, request).await;
            Ok(outcome.unwrap_or_else(|failure| answer::failure(&failure, format)))
        })
    }
}

async fn answer_to<B>(core: Arc<Core>, request: Request<B>) -> Outcome<Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let body = if matches!(parts.method, Method::GET | Method::HEAD) {
        Bytes::new()
    } else {
        read_body(body, core.config.body_bytes).await?
    };
    let head = parts.method == Method::HEAD;
    let mut answer = dispatch::dispatch(&core, &parts, body).await?;
    if head {
        *answer.body_mut() = Body::whole(Bytes::new());
    }
    Ok(answer)
}

async fn read_body<B>(body: B, limit: usize) -> Outcome<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(failure::too_large(limit))
        }
        Err(_) => Err(Failure::from(kubestrata_api_types::Status::failure(
            400,
            kubestrata_api_types::reason::BAD_REQUEST,
            "the body of the request could not be read",
        ))),
    }
}
