//! Typed methods over every service that answers with encoded objects.

mod error;
mod parts;
mod writable;

use std::future::Future;
use std::sync::Arc;

use futures_util::StreamExt as _;
use kubestrata_api_types::{
    Accept, Answer, ApiRequest, ApiResponse, Collection, DeleteOptions, Format, GetOptions, Kind,
    ListMeta, ListOptions, ListPart, Object, ObjectKey, Operation, PatchKind, Payload,
    ResourceType, WatchOptions, WatchStream, WriteOptions,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tower::ServiceExt as _;

pub use self::error::ClientError;
pub use self::parts::{Deletion, EncodedService, List, Patch, Write};
pub use self::writable::Writable;
use crate::negotiate::knows;
use crate::{Dynamic, Encoded, Table, Tracked, encode};

/// Get, list, watch and write by Rust type, or by a [`ResourceType`] that is known at run time (`…_dynamic`; what is
/// written knows its type, be it a `K` or a [`Dynamic`]).
///
/// Implemented for every clonable service of encoded answers: a transport, a cached client, and any stack of layers
/// over them. Each call clones the service, so `&self` is enough.
///
/// All futures are cancel-safe in that dropping one drops the request; whether a write was done by then is unknown.
/// Bodies of built-in kinds are protobuf, unless the object has fields that the schema lacks; all others are JSON.
///
/// What is read comes as a [`Tracked<K>`], which is used like a `K`. An object can have fields that `K` lacks, and an
/// `update` with it would remove them: it is refused with [`ClientError::UnknownFields`]. Prefer `patch`, or use
/// [`Dynamic`], which keeps all.
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
    ) -> impl Future<Output = Result<Tracked<K>, ClientError>> + Send {
        let call = self.get_encoded(K::resource(), key, GetOptions::default());
        async move { Ok(Tracked::decode(&call.await?)?) }
    }

    /// Reads one object that need not exist.
    ///
    /// # Errors
    ///
    /// As [`Client::get`], but `Ok(None)` if there is no such object.
    fn get_opt<K: Kind + DeserializeOwned>(
        &self,
        key: &ObjectKey,
    ) -> impl Future<Output = Result<Option<Tracked<K>>, ClientError>> + Send {
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
    ) -> impl Future<Output = Result<Tracked<Dynamic>, ClientError>> + Send {
        let operation = Operation::Get { name: Arc::from(key.name()), options: Default::default() };
        let collection = collection(resource, key.namespace()).accept(Accept::Whole);
        let call = self.send(ApiRequest::new(collection, operation));
        async move { Ok(Dynamic::decode(&call.await?.into_object()?)?) }
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
    ) -> impl Future<Output = Result<List<Tracked<K>>, ClientError>> + Send {
        let call = self.list_encoded(collection(K::resource(), namespace), options);
        async move { Ok(call.await?.decode(Tracked::decode)) }
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
    ) -> impl Future<Output = Result<List<Tracked<Dynamic>>, ClientError>> + Send {
        let collection = collection(resource, namespace).accept(Accept::Whole);
        let call = self.list_encoded(collection, options);
        async move { Ok(call.await?.decode(Dynamic::decode)) }
    }

    /// What the server shows of a collection to people, as `kubectl get` does: one page, if `options` has a limit.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::Undecodable`] from a server that answers with something else than a table.
    fn table(
        &self,
        collection: Collection,
        options: ListOptions,
    ) -> impl Future<Output = Result<Table, ClientError>> + Send {
        let call = self.send(ApiRequest::new(collection.as_table(), Operation::List(options)));
        async move { Ok(Table::decode(&call.await?.into_object()?)?) }
    }

    /// Opens a watch. The future is ready when the server has accepted it.
    ///
    /// # Errors
    ///
    /// [`ClientError`]. The stream's own errors hold a [`Status`](kubestrata_api_types::Status) where the server sent one.
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
    fn create<T: Writable + Sync>(
        &self,
        object: &T,
    ) -> impl Future<Output = Result<Tracked<T>, ClientError>> + Send {
        let call = self.write(object, Write::Create, WriteOptions::default());
        async move { Ok(T::read(&call.await?)?) }
    }

    /// Replaces an object, and gives it as the server stored it. With a `resourceVersion` it succeeds only if the
    /// object still has that version.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::is_conflict`] if the object has changed meanwhile,
    /// [`ClientError::UnknownFields`] if the object that was read had fields that the value lacks.
    fn update<T: Writable + Sync>(
        &self,
        object: &Tracked<T>,
    ) -> impl Future<Output = Result<Tracked<T>, ClientError>> + Send {
        self.update_with(object, Write::Update, WriteOptions::default())
    }

    /// Replaces an object's status; everything else in `object` is ignored by the server.
    ///
    /// # Errors
    ///
    /// As [`Client::update`], where for unknown fields only those of the status and the metadata count.
    fn update_status<T: Writable + Sync>(
        &self,
        object: &Tracked<T>,
    ) -> impl Future<Output = Result<Tracked<T>, ClientError>> + Send {
        self.update_with(object, Write::Status, WriteOptions::default())
    }

    /// Replaces an object or its status, with options.
    ///
    /// # Errors
    ///
    /// As [`Client::update`].
    fn update_with<T: Writable + Sync>(
        &self,
        object: &Tracked<T>,
        write: Write,
        options: WriteOptions,
    ) -> impl Future<Output = Result<Tracked<T>, ClientError>> + Send {
        let checked = writable::check(object, write);
        let call = self.write(&**object, write, options);
        async move {
            checked?;
            Ok(T::read(&call.await?)?)
        }
    }

    /// Creates or replaces an object, or its status, and gives the answer encoded. Whether the value holds all of the
    /// object that it replaces is for the caller to know: [`Client::update_with`] looks.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    fn write<T: Writable>(
        &self,
        object: &T,
        write: Write,
        options: WriteOptions,
    ) -> impl Future<Output = Result<Encoded, ClientError>> + Send {
        let resource = T::resource_of(object);
        let body = body_of(object, resource);
        let name: Arc<str> = Arc::from(object.name());
        let collection = collection(resource, object.namespace()).accept(T::ACCEPT);
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
    ) -> impl Future<Output = Result<Tracked<K>, ClientError>> + Send {
        let patch = Patch::new(kind, patch);
        let call = self.patch_encoded(K::resource(), key, None, patch, WriteOptions::default());
        async move { Ok(Tracked::decode(&call.await?)?) }
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
    ) -> impl Future<Output = Result<Tracked<K>, ClientError>> + Send {
        let patch = Patch::new(kind, patch);
        let options = WriteOptions::default();
        let call = self.patch_encoded(K::resource(), key, Some("status"), patch, options);
        async move { Ok(Tracked::decode(&call.await?)?) }
    }

    /// Server-side apply: makes or changes an object so that it has the fields of `object`, in the name of
    /// `field_manager`. With `force`, fields that others own are taken over.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::is_conflict`] if others own a field and `force` is not set.
    fn apply<T: Writable + Sync>(
        &self,
        object: &T,
        field_manager: &str,
        force: bool,
    ) -> impl Future<Output = Result<Tracked<T>, ClientError>> + Send {
        let resource = T::resource_of(object);
        let body = encode(object, resource, Format::Json).map_err(ClientError::Encode);
        let patch = Patch { kind: PatchKind::Apply, body: body.map(|body| body.bytes) };
        let options = WriteOptions {
            field_manager: Some(field_manager.to_owned()),
            force,
            ..WriteOptions::default()
        };
        let key = object.key();
        async move {
            let call = self.patch_encoded(resource, &key, None, patch, options);
            Ok(T::read(&call.await?)?)
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
