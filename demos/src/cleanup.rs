//! Deletes what the demo made, object by object.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kubestrata_controller::api_types::{ApiRequest, Collection, Format, Operation, WriteOptions};
use kubestrata_controller::codec::{EncodedService, encode};
use kubestrata_controller::prelude::*;
use serde_json::json;

/// Deletes at once, at most.
const CONCURRENCY: usize = 32;

/// Something may be left on the server.
#[derive(Debug)]
pub struct Leftover {
    pub namespace: String,
    pub error: BoxError,
    /// What went wrong before.
    pub first: Option<BoxError>,
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(first) = &self.first {
            write!(f, "{first}; and then ")?;
        }
        write!(f, "namespace {} could not be cleaned up, delete it by hand", self.namespace)
    }
}

impl std::error::Error for Leftover {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

/// Deletes the demo's objects and its namespace. No controller may run any more.
pub async fn all(service: &impl EncodedService, namespace: &str) -> Result<(), BoxError> {
    // Owners first, so that nobody can take their pods for missing ones.
    every::<ReplicaSet>(service, namespace).await?;
    every::<Pod>(service, namespace).await?;
    every::<ServiceAccount>(service, namespace).await?;
    every::<ConfigMap>(service, namespace).await?;
    let key = ObjectKey::cluster(namespace);
    gone(service.delete::<Namespace>(&key, DeleteOptions::default()).await.map(drop))?;
    // Without a kube-controller-manager nobody else finishes the deletion of a namespace.
    let Some(mut left) = service.get_opt::<Namespace>(&key).await? else { return Ok(()) };
    left.spec.get_or_insert_default().finalizers = Some(Vec::new());
    let body = encode(&left, Namespace::resource(), Format::Json)?;
    let operation =
        Operation::Update { name: namespace.into(), body, options: WriteOptions::default() };
    let collection = Collection::new(Namespace::resource().clone());
    let finalize = ApiRequest::new(collection, operation).subresource("finalize");
    gone(service.send(finalize).await.map(drop))?;
    Ok(())
}

async fn every<K>(service: &impl EncodedService, namespace: &str) -> Result<(), BoxError>
where
    K: Kind,
{
    let collection = Collection::new(K::resource().clone()).in_namespace(namespace);
    let items = service.list_encoded(collection, ListOptions::default()).await?.items;
    let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    stream::iter(items)
        .map(|item| {
            let (service, now) = (service.clone(), now.clone());
            async move { gone(service.delete::<K>(&item.key(), now).await.map(drop)) }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<()>()
        .await?;
    Ok(())
}

fn gone(outcome: Result<(), ClientError>) -> Result<(), ClientError> {
    match outcome {
        Err(error) if error.is_not_found() => Ok(()),
        outcome => outcome,
    }
}

/// Makes the namespace, and the service account that the admission of a real server asks pods for.
pub async fn prepare(service: &impl EncodedService, namespace: &str) -> Result<(), BoxError> {
    let body: Namespace = serde_json::from_value(json!({ "metadata": { "name": namespace } }))?;
    service.create(&body).await?;
    let metadata = json!({ "metadata": { "name": "default", "namespace": namespace } });
    let account: ServiceAccount = serde_json::from_value(metadata)?;
    match service.create(&account).await {
        Err(error) if error.is_already_exists() => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}
