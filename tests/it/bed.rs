//! What a scenario runs on: one server, one kind, one namespace, and the requests in their plain form.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::apps::v1::ReplicaSet;
use kubestrata_api_types::{
    Accept, Answer, ApiRequest, ApiResponse, BoxError, Collection, DeleteOptions, Event,
    GetOptions, ListMeta, ListOptions, ListPart, ObjectKey, Operation, PatchKind, ResourceType,
    Status, WatchOptions, WatchStream, WriteOptions, cause_ref,
};
use kubestrata_codec::Encoded;
use libtest_mimic::{Failed, Trial};
use tokio::time::timeout;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use crate::kinds::{Form, Sample, Widget};
use crate::target::{Live, Target};

/// Any stack of layers that answers requests.
pub(crate) type Stack = BoxCloneSyncService<ApiRequest, ApiResponse<Encoded>, BoxError>;

/// A whole trial. Far more than any needs, on a busy machine too; it ends one that hangs.
const TRIAL: Duration = Duration::from_secs(600);
/// One step that must happen soon. A busy machine may keep everybody waiting for a while.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A boxed scenario.
pub(crate) type Run = Pin<Box<dyn Future<Output = ()>>>;

/// One trial for each target and form.
pub(crate) fn matrix(
    name: &str,
    built_in: fn(Bed<ReplicaSet>) -> Run,
    custom: fn(Bed<Widget>) -> Run,
) -> Vec<Trial> {
    let mut trials = Vec::new();
    for target in Target::available() {
        for form in Form::ALL {
            let name = format!("{}::{}::{}", short(name), target.name(), form.name());
            trials.push(Trial::test(name, move || {
                trial(TRIAL, async move {
                    match form {
                        Form::Json | Form::Protobuf => {
                            let bed = Bed::new(target, form).await;
                            built_in(bed.clone()).await;
                            bed.clean_up().await;
                        }
                        Form::Custom => {
                            let bed = Bed::new(target, form).await;
                            custom(bed.clone()).await;
                            bed.clean_up().await;
                        }
                    }
                })
            }));
        }
    }
    trials
}

/// A trial that makes its own servers.
pub(crate) fn single(name: &str, run: fn() -> Run) -> Trial {
    Trial::test(short(name), move || trial(TRIAL, async move { run().await }))
}

/// A trial that makes its own servers, has a limit of its own, and begins once `turn` has returned.
pub(crate) fn single_within<G>(
    name: &str,
    limit: Duration,
    turn: fn() -> G,
    run: fn() -> Run,
) -> Trial
where
    G: 'static,
{
    Trial::test(short(name), move || {
        let _turn = turn();
        trial(limit, async move { run().await })
    })
}

fn short(name: &str) -> String {
    name.strip_prefix("it::").unwrap_or(name).to_owned()
}

/// Runs a trial on a runtime of its own. A panic in it is a failure of the trial.
fn trial(limit: Duration, scenario: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime
        .block_on(async { timeout(limit, scenario).await })
        .map_err(|_| Failed::from(format!("still running after {} s", limit.as_secs())))
}

/// Makes the trials of a module from its scenarios.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        vec![$($crate::bed::matrix(
            concat!(module_path!(), "::", stringify!($name)),
            |bed| Box::pin($name(bed)),
            |bed| Box::pin($name(bed)),
        )),*].into_iter().flatten()
    };
}
pub(crate) use scenarios;

/// Makes trials of functions that need no bed.
macro_rules! singles {
    ($($name:ident),* $(,)?) => {
        vec![$($crate::bed::single(
            concat!(module_path!(), "::", stringify!($name)),
            || Box::pin($name()),
        )),*]
    };
}
pub(crate) use singles;

/// One server, one kind, one namespace.
pub(crate) struct Bed<K> {
    /// The server.
    pub(crate) live: Arc<Live>,
    /// What answers requests.
    pub(crate) stack: Stack,
    /// The trial's own namespace.
    pub(crate) namespace: String,
    /// How objects travel.
    pub(crate) form: Form,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Bed<K> {
    fn clone(&self) -> Self {
        Self {
            live: Arc::clone(&self.live),
            stack: self.stack.clone(),
            namespace: self.namespace.clone(),
            form: self.form,
            kind: PhantomData,
        }
    }
}

impl<K: Sample> Bed<K> {
    /// Starts or joins a server, makes the kind known and a namespace.
    pub(crate) async fn new(target: Target, form: Form) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let live = Arc::new(Live::start(target).await);
        if form == Form::Custom {
            live.learn_widgets().await;
        }
        // Relaxed: only the number must be unique.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("it-{}-{number}", std::process::id());
        live.create_namespace(&namespace).await;
        let stack = live.stack.clone();
        Self { live, stack, namespace, form, kind: PhantomData }
    }

    /// The same, with a transport that asks once.
    pub(crate) fn without_retries(&self) -> Self {
        Self { stack: self.live.stack_without_retries(), ..self.clone() }
    }

    /// Removes what a real server would keep.
    async fn clean_up(self) {
        if self.live.target == Target::Real {
            let delete = Operation::DeleteCollection {
                list: ListOptions::default(),
                options: DeleteOptions::default(),
            };
            // Best effort: objects with finalizers stay until the server itself is removed.
            let _ = self.call(delete, None).await;
            self.live.delete_namespace(&self.namespace).await;
        }
    }

    /// The kind, for requests.
    pub(crate) fn resource(&self) -> Arc<ResourceType> {
        Arc::new(K::resource().clone())
    }

    /// All objects of the kind in the namespace, in the trial's format.
    pub(crate) fn collection(&self) -> Collection {
        Collection::new(self.resource())
            .in_namespace(&self.namespace)
            .accept(Accept::Only(self.form.format()))
    }

    /// Key of an object in the namespace.
    pub(crate) fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(&self.namespace, name)
    }

    /// A sample object in the namespace.
    pub(crate) fn sample(&self, name: &str, labels: &[(&str, &str)]) -> K {
        K::sample(&self.namespace, name, labels)
    }

    /// Sends a request.
    pub(crate) async fn call(
        &self,
        operation: Operation,
        subresource: Option<&str>,
    ) -> Result<ApiResponse<Encoded>, BoxError> {
        self.call_on(self.collection(), operation, subresource).await
    }

    /// Sends a request on another collection.
    pub(crate) async fn call_on(
        &self,
        collection: Collection,
        operation: Operation,
        subresource: Option<&str>,
    ) -> Result<ApiResponse<Encoded>, BoxError> {
        let mut request = ApiRequest::new(collection, operation);
        if let Some(subresource) = subresource {
            request = request.subresource(subresource);
        }
        timeout(SOON, self.stack.clone().oneshot(request)).await.map_err(|_| "no answer")?
    }

    async fn object(&self, operation: Operation, subresource: Option<&str>) -> Result<K, BoxError> {
        let object = self.call(operation, subresource).await?.into_object()?;
        assert_eq!(object.format(), self.form.format(), "the answer has the format asked for");
        Ok(object.decode()?)
    }

    pub(crate) async fn create(&self, object: &K) -> Result<K, BoxError> {
        self.create_with(object, WriteOptions::default()).await
    }

    pub(crate) async fn create_with(
        &self,
        object: &K,
        options: WriteOptions,
    ) -> Result<K, BoxError> {
        let body = kubestrata_codec::encode(object, K::resource(), self.form.format())?;
        self.object(Operation::Create { name: None, body, options }, None).await
    }

    pub(crate) async fn get(&self, name: &str) -> Result<K, BoxError> {
        let options = GetOptions::default();
        self.object(Operation::Get { name: name.into(), options }, None).await
    }

    pub(crate) async fn update(&self, object: &K) -> Result<K, BoxError> {
        self.replace(object, None).await
    }

    pub(crate) async fn update_status(&self, object: &K) -> Result<K, BoxError> {
        self.replace(object, Some("status")).await
    }

    async fn replace(&self, object: &K, subresource: Option<&str>) -> Result<K, BoxError> {
        let body = kubestrata_codec::encode(object, K::resource(), self.form.format())?;
        let options = WriteOptions::default();
        let name = object.name().into();
        self.object(Operation::Update { name, body, options }, subresource).await
    }

    pub(crate) async fn patch(
        &self,
        name: &str,
        kind: PatchKind,
        patch: serde_json::Value,
        subresource: Option<&str>,
    ) -> Result<K, BoxError> {
        let body = serde_json::to_vec(&patch)?.into();
        let options = WriteOptions::default();
        self.object(Operation::Patch { name: name.into(), kind, body, options }, subresource).await
    }

    /// Deletes; gives the object where the server answers with it.
    pub(crate) async fn delete_with(
        &self,
        name: &str,
        options: DeleteOptions,
    ) -> Result<Option<K>, BoxError> {
        let answer = self.call(Operation::Delete { name: name.into(), options }, None).await?;
        match answer.answer {
            Answer::Object(object) => Ok(Some(object.decode()?)),
            Answer::Status(status) => {
                assert!(status.is_success(), "{status}");
                Ok(None)
            }
            other => panic!("a delete is answered with {other:?}"),
        }
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<Option<K>, BoxError> {
        self.delete_with(name, DeleteOptions::default()).await
    }

    /// One page, decoded.
    pub(crate) async fn list(&self, options: ListOptions) -> Result<(Vec<K>, ListMeta), BoxError> {
        let (items, meta) = self.list_encoded(self.collection(), options).await?;
        let items = items.iter().map(Encoded::decode).collect::<Result<Vec<K>, _>>()?;
        Ok((items, meta))
    }

    /// One page of a collection.
    pub(crate) async fn list_encoded(
        &self,
        collection: Collection,
        options: ListOptions,
    ) -> Result<(Vec<Encoded>, ListMeta), BoxError> {
        let answer = self.call_on(collection, Operation::List(options), None).await?;
        let mut parts = answer.into_list()?;
        let (mut items, mut meta) = (Vec::new(), None);
        while let Some(part) = timeout(SOON, parts.next()).await? {
            match part? {
                ListPart::Item(item) => items.push(item),
                ListPart::Meta(found) => assert!(meta.replace(found).is_none(), "metadata twice"),
                ListPart::Unreadable(unreadable) => return Err(unreadable.into()),
            }
        }
        Ok((items, meta.expect("a list that ends has metadata")))
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, options: WatchOptions) -> Result<Watch<K>, BoxError> {
        let answer = self.call(Operation::Watch(options), None).await?;
        Ok(Watch { stream: answer.into_watch()?, kind: PhantomData })
    }
}

/// An open watch, with a limit on every wait.
pub(crate) struct Watch<K> {
    stream: WatchStream<Encoded>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Sample> Watch<K> {
    /// The next event, which must come soon.
    pub(crate) async fn event(&mut self) -> Event<K> {
        match timeout(SOON, self.stream.next()).await {
            Ok(Some(Ok(event))) => event.map(|object| object.decode().expect("the object decodes")),
            Ok(Some(Err(error))) => panic!("the watch is broken: {error}"),
            Ok(None) => panic!("the watch ended"),
            Err(_) => panic!("no event within {SOON:?}"),
        }
    }

    /// The next item of the stream, whatever it is.
    pub(crate) async fn raw(&mut self) -> Option<Result<Event<Encoded>, BoxError>> {
        timeout(SOON, self.stream.next()).await.expect("an item, or the end")
    }

    /// The next event as text: `+name`, `~name`, `-name`, `=end` for the end of the initial state. Other bookmarks come when
    /// the server likes, and are passed over.
    pub(crate) async fn text(&mut self) -> String {
        loop {
            return match self.event().await {
                Event::Added(object) => format!("+{}", object.name()),
                Event::Modified(object) => format!("~{}", object.name()),
                Event::Deleted(object) => format!("-{}", object.name()),
                Event::Bookmark(bookmark) if bookmark.initial_events_end => "=end".to_owned(),
                Event::Bookmark(_) => continue,
                Event::Unreadable(unreadable) => panic!("{unreadable}"),
            };
        }
    }
}

/// The server's own words in an error that must hold them.
pub(crate) fn status(error: &BoxError) -> &Status {
    cause_ref::<Status>(error.as_ref())
        .unwrap_or_else(|| panic!("no Status in the chain of {error:?}"))
}

/// Asks `check` again and again until it is true; fails after a while, naming what it waited for.
pub(crate) async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !check().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if timeout(SOON, wait).await.is_err() {
        panic!("after {SOON:?} still not: {what}");
    }
}
