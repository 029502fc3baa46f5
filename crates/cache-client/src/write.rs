//! One write, followed so that the client's reads show it.

use std::sync::Arc;

use kubestrata_api_types::{
    Answer, ApiRequest, ApiResponse, BoxError, Collection, Object as _, ObjectKey, Operation,
    Payload, Tick,
};
use kubestrata_codec::{Encoded, EncodedService, decode_object};
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::Cache;
use crate::writes::{Record, Writes};

/// Whether a request is a write that reads can show: no dry run, nothing posted to a subresource, no delete-collection.
pub(crate) fn is_tracked(request: &ApiRequest) -> bool {
    match &request.operation {
        // What is posted to a subresource, as an eviction or a token, is no state of the object (cr#3590).
        Operation::Create { options, .. } => !options.dry_run && request.subresource.is_none(),
        Operation::Update { options, .. } | Operation::Patch { options, .. } => !options.dry_run,
        Operation::Delete { options, .. } => !options.dry_run,
        Operation::Get { .. }
        | Operation::List(_)
        | Operation::Watch(_)
        | Operation::DeleteCollection { .. } => false,
    }
}

/// Sends a write and records what the server says. Cancelled, it records nothing: nobody knows what the server did.
pub(crate) async fn send<S: EncodedService>(
    inner: S,
    request: ApiRequest,
    cache: Cache,
    writes: Arc<Writes>,
    origin: Instant,
) -> Result<ApiResponse<Encoded>, BoxError> {
    let collection = request.collection.clone();
    let key = key_of(&request);
    let whole = request.subresource.as_deref().is_none_or(|subresource| subresource == "status");
    let delete = match &request.operation {
        Operation::Delete { options, .. } => Some(options.preconditions.uid.clone()),
        _ => None,
    };
    let guard = writes.begin(&collection.resource, key.clone(), collection.namespace.clone());
    let uid = delete.clone().flatten().or_else(|| cached_uid(&cache, &collection, key.as_ref()));
    let response = inner.oneshot(request).await.map_err(Into::into)?;
    let now = Tick::from_origin(Instant::now().saturating_duration_since(origin));
    match (&response.answer, &delete) {
        (Answer::Object(object), None) => {
            record(&cache, &writes, &collection, object, key, whole);
        }
        // Finalizers or a grace period keep it: this is its state now.
        (Answer::Object(object), Some(_)) if object.deletion_timestamp().is_some() => {
            record(&cache, &writes, &collection, object, key, whole);
        }
        // This was its last state.
        (Answer::Object(object), Some(_)) => {
            if let Some(uid) = object.uid() {
                writes.deleted(&collection.resource, &object.key(), uid, now);
            }
        }
        (Answer::Status(status), Some(_)) if status.is_success() => {
            let told = status.details.as_ref().map(|details| details.uid.as_str());
            let uid = told.filter(|uid| !uid.is_empty()).or(uid.as_deref());
            if let (Some(uid), Some(key)) = (uid, &key) {
                writes.deleted(&collection.resource, key, uid, now);
            }
        }
        _ => {}
    }
    // After recording: a read that waited for the write must find the record.
    drop(guard);
    Ok(response)
}

fn record(
    cache: &Cache,
    writes: &Writes,
    collection: &Collection,
    object: &Encoded,
    key: Option<ObjectKey>,
    whole: bool,
) {
    let version = object.resource_version();
    if version.is_unset() {
        return;
    }
    let key = key.unwrap_or_else(|| object.key());
    let followers = cache.followers(&collection.resource, key.namespace());
    let epochs = followers.iter().map(|part| part.informer.reader().version().epoch);
    let record = Record {
        version,
        epoch: epochs.max().unwrap_or_default(),
        // The answer to a subresource, as a Scale, does not show the object's labels. Without an informer yet, one may come.
        selected: !whole
            || followers.is_empty()
            || followers.iter().any(|part| part.selects(object)),
        held: followers.iter().any(|part| part.holds(&key)),
        key,
    };
    writes.written(&collection.resource, record, |key, version| {
        followers.iter().all(|part| {
            part.covers(key.namespace())
                && part.informer.reader().version().version.is_at_least(version) == Some(true)
        })
    });
}

/// The key of the object that is written. That of a new one stands in the body only.
fn key_of(request: &ApiRequest) -> Option<ObjectKey> {
    let collection = &request.collection;
    let namespace = collection.namespace.as_deref().filter(|_| collection.resource.is_namespaced());
    match &request.operation {
        Operation::Create { body, .. } => {
            let name = name_in(collection, body)?;
            Some(ObjectKey::new(namespace, &name))
        }
        _ => request.name().map(|name| ObjectKey::new(namespace, name)),
    }
}

fn name_in(collection: &Collection, body: &Payload) -> Option<String> {
    match decode_object(collection, body.format, &body.bytes).ok()? {
        Answer::Object(object) => Some(object.name().to_owned()).filter(|name| !name.is_empty()),
        _ => None,
    }
}

fn cached_uid(cache: &Cache, collection: &Collection, key: Option<&ObjectKey>) -> Option<String> {
    let key = key?;
    let followers = cache.followers(&collection.resource, key.namespace());
    let object = followers.iter().find_map(|part| part.informer.reader().get(key))?;
    object.uid().map(str::to_owned)
}
