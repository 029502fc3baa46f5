//! Typed methods over every service that answers with encoded objects.

mod error;

use std::future::Future;
use std::sync::Arc;

use futures_util::StreamExt as _;
use kubestrata_api_types::{
    Accept, Answer, ApiRequest, ApiResponse, BoxError, Collection, DeleteOptions, Format,
    GetOptions, Kind, ListMeta, ListOptions, ListPart, Object, ObjectKey, Operation, PatchKind,
    Payload, ResourceType, Status, Undecodable, Unreadable, WatchOptions, WatchStream,
    WriteOptions,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tower::{Service, ServiceExt as _};

pub use self::error::ClientError;
use crate::negotiate::knows;
use crate::{Dynamic, Encoded, encode};

/// A list that was read to its end.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "plain parts of an answer")]
pub struct List<K> {
    /// The objects that decode.
    pub items: Vec<K>,
    /// The objects that do not.
    pub undecodable: Vec<Undecodable>,
    /// The objects whose head cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// Metadata of the last page.
    pub meta: ListMeta,
}

/// What a delete gave.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "the API answers in one of these two ways")]
pub enum Deletion {
    /// The object is gone.
    Gone(Box<Status>),
    /// The object goes once its finalizers or grace period allow: its state now, or its last state.
    Pending(Encoded),
}

/// The service that [`Client`] is implemented for, as one bound.
pub trait EncodedService:
    Service<ApiRequest, Response = ApiResponse<Encoded>, Error: Into<BoxError> + Send, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> EncodedService for S where
    S: Service<
            ApiRequest,
            Response = ApiResponse<Encoded>,
            Error: Into<BoxError> + Send,
            Future: Send,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// Get, list, watch and write by Rust type, or by a [`ResourceType`] that is known at run time (`…_dynamic`).
///
/// Implemented for every clonable service of encoded answers: a transport, a cached client, and any stack of layers
/// over them. Each call clones the service, so `&self` is enough.
///
/// All futures are cancel-safe in that dropping one drops the request; whether a write was done by then is unknown.
/// Bodies of built-in kinds are protobuf, unless the object has fields that the schema lacks; all others are JSON.
///
/// An object read from a newer server can hold fields that `K` lacks, and an `update` with it removes them. Prefer
/// `patch`, or use [`Dynamic`], which keeps all.
pub trait Client: EncodedService {
    /// Sends any request.
    ///
    /// # Errors
    ///
    /// [`ClientError::Status`] where the server refused, [`ClientError::Service`] where no answer came.
    fn send(
        &self,
        request: ApiRequest,
    ) -> impl Future<Output = Result<ApiResponse<Encoded>, ClientError>> + Send {
        let call = self.clone().oneshot(request);
        async move {
            let response = call.await.map_err(|error| ClientError::from_service(error.into()))?;
            match &response.answer {
                Answer::Status(status) if !status.is_success() && status.code >= 400 => {
                    Err(ClientError::Status(status.clone()))
                }
                _ => Ok(response),
            }
        }
    }

    /// Reads one object, encoded.
    ///
    /// # Errors
    ///
    /// As [`Client::get`], but for the decoding.
    fn get_encoded(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        options: GetOptions,
    ) -> impl Future<Output = Result<Encoded, ClientError>> + Send {
        let operation = Operation::Get { name: Arc::from(key.name()), options };
        let call = self.send(ApiRequest::new(collection(resource, key.namespace()), operation));
        async move { Ok(call.await?.into_object()?) }
    }

    /// Reads one object, in its newest state.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::is_not_found`] if there is no such object.
    fn get<K: Kind + DeserializeOwned>(
        &self,
        key: &ObjectKey,
    ) -> impl Future<Output = Result<K, ClientError>> + Send {
        let call = self.get_encoded(K::resource(), key, GetOptions::default());
        async move { Ok(call.await?.decode()?) }
    }

    /// Reads one object that need not exist.
    ///
    /// # Errors
    ///
    /// As [`Client::get`], but `Ok(None)` if there is no such object.
    fn get_opt<K: Kind + DeserializeOwned>(
        &self,
        key: &ObjectKey,
    ) -> impl Future<Output = Result<Option<K>, ClientError>> + Send {
        let call = self.get(key);
        async move { optional(call.await) }
    }

    /// As [`Client::get`], for any kind.
    ///
    /// # Errors
    ///
    /// As [`Client::get`].
    fn get_dynamic(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
    ) -> impl Future<Output = Result<Dynamic, ClientError>> + Send {
        let call = self.get_encoded(resource, key, GetOptions::default());
        async move { Ok(Dynamic::decode(&call.await?)?) }
    }

    /// Lists all objects of a collection, encoded, page by page if `options` has a limit.
    ///
    /// # Errors
    ///
    /// As [`Client::list`], but for the decoding.
    fn list_encoded(
        &self,
        collection: Collection,
        options: ListOptions,
    ) -> impl Future<Output = Result<List<Encoded>, ClientError>> + Send {
        let client = self.clone();
        async move {
            let mut list = List {
                items: Vec::new(),
                undecodable: Vec::new(),
                unreadable: Vec::new(),
                meta: ListMeta::default(),
            };
            let mut options = options;
            loop {
                let request = Operation::List(options.clone());
                let request = ApiRequest::new(collection.clone(), request);
                let mut parts = client.send(request).await?.into_list()?;
                while let Some(part) = parts.next().await {
                    match part.map_err(ClientError::from_service)? {
                        ListPart::Item(item) => list.items.push(item),
                        ListPart::Unreadable(unreadable) => list.unreadable.push(unreadable),
                        ListPart::Meta(meta) => list.meta = meta,
                    }
                }
                match &list.meta.continue_token {
                    // A token carries the version with it; the request must not have one.
                    Some(token) => {
                        options.continue_token = Some(token.clone());
                        options.resource_version = Default::default();
                        options.version_match = None;
                    }
                    None => return Ok(list),
                }
            }
        }
    }

    /// Lists all objects, in one namespace or in all, page by page if `options` has a limit.
    ///
    /// Objects that do not decode are named in the answer, and hide no others. An empty list is no error.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::is_expired`] if a page token became too old: then start again.
    fn list<K: Kind + DeserializeOwned + Send>(
        &self,
        namespace: Option<&str>,
        options: ListOptions,
    ) -> impl Future<Output = Result<List<K>, ClientError>> + Send {
        let call = self.list_encoded(collection(K::resource(), namespace), options);
        async move { Ok(call.await?.decode(Encoded::decode)) }
    }

    /// As [`Client::list`], for any kind.
    ///
    /// # Errors
    ///
    /// As [`Client::list`].
    fn list_dynamic(
        &self,
        resource: &ResourceType,
        namespace: Option<&str>,
        options: ListOptions,
    ) -> impl Future<Output = Result<List<Dynamic>, ClientError>> + Send {
        let call = self.list_encoded(collection(resource, namespace), options);
        async move { Ok(call.await?.decode(Dynamic::decode)) }
    }

    /// Opens a watch. The future is ready when the server has accepted it.
    ///
    /// # Errors
    ///
    /// [`ClientError`]. The stream's own errors hold a [`Status`] where the server sent one.
    fn watch(
        &self,
        collection: Collection,
        options: WatchOptions,
    ) -> impl Future<Output = Result<WatchStream<Encoded>, ClientError>> + Send {
        let call = self.send(ApiRequest::new(collection, Operation::Watch(options)));
        async move { Ok(call.await?.into_watch()?) }
    }

    /// Makes an object, and gives it as the server stored it.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::is_already_exists`] if the name is taken.
    fn create<K: Kind + Serialize + DeserializeOwned + Sync>(
        &self,
        object: &K,
    ) -> impl Future<Output = Result<K, ClientError>> + Send {
        let call = self.write(K::resource(), object, Write::Create, WriteOptions::default());
        async move { Ok(call.await?.decode()?) }
    }

    /// Replaces an object, and gives it as the server stored it. With a `resourceVersion` it succeeds only if the
    /// object still has that version.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::is_conflict`] if the object has changed meanwhile.
    fn update<K: Kind + Serialize + DeserializeOwned + Sync>(
        &self,
        object: &K,
    ) -> impl Future<Output = Result<K, ClientError>> + Send {
        let call = self.write(K::resource(), object, Write::Update, WriteOptions::default());
        async move { Ok(call.await?.decode()?) }
    }

    /// Replaces an object's status; everything else in `object` is ignored by the server.
    ///
    /// # Errors
    ///
    /// As [`Client::update`].
    fn update_status<K: Kind + Serialize + DeserializeOwned + Sync>(
        &self,
        object: &K,
    ) -> impl Future<Output = Result<K, ClientError>> + Send {
        let call = self.write(K::resource(), object, Write::Status, WriteOptions::default());
        async move { Ok(call.await?.decode()?) }
    }

    /// As [`Client::create`], for any kind.
    ///
    /// # Errors
    ///
    /// As [`Client::create`].
    fn create_dynamic(
        &self,
        object: &Dynamic,
    ) -> impl Future<Output = Result<Dynamic, ClientError>> + Send {
        let call = self.write(&object.resource, object, Write::Create, WriteOptions::default());
        async move { Ok(Dynamic::decode(&call.await?)?) }
    }

    /// As [`Client::update`], for any kind.
    ///
    /// # Errors
    ///
    /// As [`Client::update`].
    fn update_dynamic(
        &self,
        object: &Dynamic,
    ) -> impl Future<Output = Result<Dynamic, ClientError>> + Send {
        let call = self.write(&object.resource, object, Write::Update, WriteOptions::default());
        async move { Ok(Dynamic::decode(&call.await?)?) }
    }

    /// As [`Client::update_status`], for any kind.
    ///
    /// # Errors
    ///
    /// As [`Client::update_status`].
    fn update_status_dynamic(
        &self,
        object: &Dynamic,
    ) -> impl Future<Output = Result<Dynamic, ClientError>> + Send {
        let call = self.write(&object.resource, object, Write::Status, WriteOptions::default());
        async move { Ok(Dynamic::decode(&call.await?)?) }
    }

    /// Creates or replaces an object of any kind, or its status, and gives the answer encoded.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    fn write<K: Serialize + Object>(
        &self,
        resource: &ResourceType,
        object: &K,
        write: Write,
        options: WriteOptions,
    ) -> impl Future<Output = Result<Encoded, ClientError>> + Send {
        let body = body_of(object, resource);
        let name: Arc<str> = Arc::from(object.name());
        let collection = collection(resource, object.namespace());
        let client = self.clone();
        async move {
            let body = body?;
            let operation = match write {
                Write::Create => Operation::Create { name: None, body, options },
                Write::Update | Write::Status => Operation::Update { name, body, options },
            };
            let mut request = ApiRequest::new(collection, operation);
            if write == Write::Status {
                request = request.subresource("status");
            }
            Ok(client.send(request).await?.into_object()?)
        }
    }

    /// Changes an object, and gives it as the server stored it. `patch` is serialized as JSON; for
    /// [`PatchKind::Apply`] the options need a field manager, see [`Client::patch_encoded`].
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    fn patch<K: Kind + DeserializeOwned>(
        &self,
        key: &ObjectKey,
        kind: PatchKind,
        patch: &(impl Serialize + Sync),
    ) -> impl Future<Output = Result<K, ClientError>> + Send {
        let patch = Patch::new(kind, patch);
        let call = self.patch_encoded(K::resource(), key, None, patch, WriteOptions::default());
        async move { Ok(call.await?.decode()?) }
    }

    /// Changes an object's status.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    fn patch_status<K: Kind + DeserializeOwned>(
        &self,
        key: &ObjectKey,
        kind: PatchKind,
        patch: &(impl Serialize + Sync),
    ) -> impl Future<Output = Result<K, ClientError>> + Send {
        let patch = Patch::new(kind, patch);
        let options = WriteOptions::default();
        let call = self.patch_encoded(K::resource(), key, Some("status"), patch, options);
        async move { Ok(call.await?.decode()?) }
    }

    /// Server-side apply: makes or changes an object so that it has the fields of `object`, in the name of
    /// `field_manager`. With `force`, fields that others own are taken over.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::is_conflict`] if others own a field and `force` is not set.
    fn apply<K: Kind + Serialize + DeserializeOwned + Sync>(
        &self,
        object: &K,
        field_manager: &str,
        force: bool,
    ) -> impl Future<Output = Result<K, ClientError>> + Send {
        let body = encode(object, K::resource(), Format::Json).map_err(ClientError::Encode);
        let patch = Patch { kind: PatchKind::Apply, body: body.map(|body| body.bytes) };
        let options = WriteOptions {
            field_manager: Some(field_manager.to_owned()),
            force,
            ..WriteOptions::default()
        };
        let key = object.key();
        async move {
            let call = self.patch_encoded(K::resource(), &key, None, patch, options);
            Ok(call.await?.decode()?)
        }
    }

    /// Changes an object of any kind, or a subresource of it, and gives the answer encoded.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    fn patch_encoded(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        subresource: Option<&str>,
        patch: Patch,
        options: WriteOptions,
    ) -> impl Future<Output = Result<Encoded, ClientError>> + Send {
        let name: Arc<str> = Arc::from(key.name());
        let collection = collection(resource, key.namespace());
        let subresource: Option<Arc<str>> = subresource.map(Arc::from);
        let client = self.clone();
        async move {
            let operation = Operation::Patch { name, kind: patch.kind, body: patch.body?, options };
            let mut request = ApiRequest::new(collection, operation);
            request.subresource = subresource;
            Ok(client.send(request).await?.into_object()?)
        }
    }

    /// Removes an object of any kind.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::is_not_found`] if there is none, [`ClientError::is_conflict`] if a precondition
    /// does not hold.
    fn delete_dynamic(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        options: DeleteOptions,
    ) -> impl Future<Output = Result<Deletion, ClientError>> + Send {
        let operation = Operation::Delete { name: Arc::from(key.name()), options };
        let call = self.send(ApiRequest::new(collection(resource, key.namespace()), operation));
        async move {
            match call.await?.answer {
                Answer::Status(status) => Ok(Deletion::Gone(status)),
                other => Ok(Deletion::Pending(ApiResponse::new(other).into_object()?)),
            }
        }
    }

    /// Removes an object.
    ///
    /// # Errors
    ///
    /// As [`Client::delete_dynamic`].
    fn delete<K: Kind>(
        &self,
        key: &ObjectKey,
        options: DeleteOptions,
    ) -> impl Future<Output = Result<Deletion, ClientError>> + Send {
        self.delete_dynamic(K::resource(), key, options)
    }

    /// Removes all objects of a collection that the selectors of `list` choose.
    ///
    /// # Errors
    ///
    /// [`ClientError`]. Some objects may be gone then.
    fn delete_collection(
        &self,
        collection: Collection,
        list: ListOptions,
        options: DeleteOptions,
    ) -> impl Future<Output = Result<(), ClientError>> + Send {
        let operation = Operation::DeleteCollection { list, options };
        let call = self.send(ApiRequest::new(collection, operation));
        async move {
            // Servers answer with a Status or with the list of what was deleted: read it to its end.
            if let Answer::List(mut parts) = call.await?.answer {
                while let Some(part) = parts.next().await {
                    part.map_err(ClientError::from_service)?;
                }
            }
            Ok(())
        }
    }
}

impl<S: EncodedService> Client for S {}

/// How [`Client::write`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these ways")]
pub enum Write {
    /// A new object.
    Create,
    /// All but the status.
    Update,
    /// The status alone.
    Status,
}

/// A patch, encoded; an error of the encoding comes out where it is sent.
#[derive(Debug)]
pub struct Patch {
    kind: PatchKind,
    body: Result<bytes::Bytes, ClientError>,
}

impl Patch {
    /// A patch from a value that serializes to JSON.
    pub fn new(kind: PatchKind, patch: &impl Serialize) -> Self {
        let body = serde_json::to_vec(patch)
            .map(Into::into)
            .map_err(|error| ClientError::Encode(crate::EncodeError::Serialize(error)));
        Self { kind, body }
    }
}

impl List<Encoded> {
    fn decode<K>(self, decode: impl Fn(&Encoded) -> Result<K, Undecodable>) -> List<K> {
        let mut items = Vec::with_capacity(self.items.len());
        let mut undecodable = self.undecodable;
        for item in &self.items {
            match decode(item) {
                Ok(item) => items.push(item),
                Err(error) => undecodable.push(error),
            }
        }
        List { items, undecodable, unreadable: self.unreadable, meta: self.meta }
    }
}

fn collection(resource: &ResourceType, namespace: Option<&str>) -> Collection {
    Collection::new(resource.clone())
        .in_namespace(namespace.unwrap_or_default())
        .accept(Accept::Auto)
}

pub(crate) fn body_of<K: Serialize + Object>(
    object: &K,
    resource: &ResourceType,
) -> Result<Payload, ClientError> {
    // A field that the schema lacks would be lost in protobuf, and is refused there: JSON carries it, and the server decides.
    if knows(resource)
        && let Ok(body) = encode(object, resource, Format::Protobuf)
    {
        return Ok(body);
    }
    encode(object, resource, Format::Json).map_err(ClientError::Encode)
}

fn optional<K>(result: Result<K, ClientError>) -> Result<Option<K>, ClientError> {
    match result {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
