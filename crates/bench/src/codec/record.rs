//! Makes the recorded objects: creates them on a real server, and keeps what it answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, PodStatus};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_api_types::{
    Accept, Collection, Format, Kind as _, ListOptions, Object as _, ResourceType,
};
use kubestrata_codec::collection::{self, JsonStyle};
use kubestrata_codec::{Client as _, ClientError, Dynamic, Encoded, List, Tracked};
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use super::data::file;
use super::{NAMESPACE, custom};
use crate::Result;
use crate::pods::pod;
use crate::site::Stack;

/// Creates all sets on a server and writes them to `folder`. Objects that are there already stay as they are.
pub(super) async fn record(stack: &Stack, folder: &Path) -> Result {
    let namespaces = [NAMESPACE.to_owned(), format!("{NAMESPACE}-running")];
    for name in &namespaces {
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        created(stack.create(&Namespace { metadata, ..Namespace::default() }).await)?;
    }
    for index in 0..8 {
        created(stack.create(&pod(&namespaces[0], index)).await)?;
        created(stack.create(&config_map(index)).await)?;
        let mut running = pod(&namespaces[1], index);
        created(stack.create(&running).await)?;
        running.status = Some(status(&running, index)?);
        stack.update_status(&Tracked::new(running)).await?;
    }
    for index in 0..4 {
        created(stack.create(&slice(index)?).await)?;
    }
    let definition: CustomResourceDefinition = serde_json::from_value(custom::definition())?;
    created(stack.create(&definition).await)?;
    let resource = Arc::new(custom::resource());
    for index in 0..2 {
        let widget = Dynamic { resource: Arc::clone(&resource), value: custom::widget(index) };
        // The server takes a moment until it serves the new kind.
        let mut attempts = 0;
        while let Err(error) = created(stack.create(&widget).await) {
            attempts += 1;
            if attempts > 50 {
                return Err(error);
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
    let mut sizes = serde_json::Map::new();
    for (name, resource, namespace) in [
        ("pods", Pod::resource(), &namespaces[0]),
        ("running-pods", Pod::resource(), &namespaces[1]),
        ("configmaps", ConfigMap::resource(), &namespaces[0]),
        ("endpointslices", EndpointSlice::resource(), &namespaces[0]),
        ("widgets", &*resource, &namespaces[0]),
    ] {
        for format in [Format::Protobuf, Format::Json] {
            if format == Format::Json || kubestrata_codec::schema::resource(resource).is_some() {
                let bytes = list(stack, resource, namespace, format).await?;
                sizes.insert(file(name, format), bytes.len().into());
                std::fs::write(folder.join(file(name, format)), bytes)?;
            }
        }
    }
    Ok(json!({ "what": "kubestrata codec record", "bytes": sizes }))
}

fn created<T>(result: std::result::Result<T, ClientError>) -> Result<()> {
    match result {
        Err(error) if !error.is_already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}

/// The collection as the server's own list of it, with the items' own bytes.
async fn list(
    stack: &Stack,
    resource: &ResourceType,
    namespace: &str,
    format: Format,
) -> Result<Vec<u8>> {
    let wanted = Collection::new(resource.clone())
        .in_namespace(namespace)
        .accept(Accept::Only(format))
        .prune(Arc::from([]));
    let List { mut items, meta, .. } = stack.list_encoded(wanted, ListOptions::default()).await?;
    // A namespace has a ConfigMap of the cluster's own.
    items.retain(|item| item.name() != "kube-root-ca.crt");
    let (api_version, kind) = (resource.api_version(), format!("{}List", resource.kind));
    let mut out = Vec::new();
    match format {
        Format::Json => {
            let style = match kubestrata_codec::schema::resource(resource) {
                Some(_) => JsonStyle::Typed,
                None => JsonStyle::Unstructured,
            };
            let list = collection::json(style, &api_version, &kind, &meta);
            out.extend_from_slice(&list.head);
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(collection::JSON_SEPARATOR);
                }
                out.extend_from_slice(item.bytes());
            }
            out.extend_from_slice(&list.tail);
        }
        Format::Protobuf => {
            let size = |item: &Encoded| collection::protobuf_item_size(item.bytes().len());
            let bytes = items.iter().map(size).sum();
            out.extend(collection::protobuf_head(&api_version, &kind, &meta, bytes));
            for item in &items {
                out.extend(collection::protobuf_item_head(item.bytes().len()));
                out.extend_from_slice(item.bytes());
            }
            out.extend_from_slice(collection::PROTOBUF_TAIL);
        }
    }
    Ok(out)
}

fn config_map(index: u32) -> ConfigMap {
    let line = "key.of.the.application=some value \"in quotes\" of this line\n";
    let data = (0..4).map(|key| (format!("app-{key}.properties"), line.repeat(8)));
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("config-{index}")),
            namespace: Some(NAMESPACE.to_owned()),
            labels: Some(BTreeMap::from([("app".to_owned(), format!("app-{index}"))])),
            ..ObjectMeta::default()
        },
        data: Some(data.collect()),
        ..ConfigMap::default()
    }
}

/// What a kubelet says of a pod that runs.
fn status(pod: &Pod, index: u32) -> Result<PodStatus> {
    let time = "2026-05-04T03:02:01Z";
    let condition = |name: &str| {
        json!({ "type": name, "status": "True", "lastTransitionTime": time,
                "lastProbeTime": null, "observedGeneration": 1 })
    };
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let containers = containers.map(|container| {
        let digest = format!("{index:064x}");
        json!({
            "name": container.name, "image": container.image, "ready": true, "started": true,
            "restartCount": index, "imageID": format!("registry.example/app/server@sha256:{digest}"),
            "containerID": format!("containerd://{digest}"),
            "state": { "running": { "startedAt": time } }, "lastState": {},
        })
    });
    let conditions =
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    Ok(serde_json::from_value(json!({
        "phase": "Running", "qosClass": "BestEffort", "startTime": time,
        "conditions": conditions.map(condition),
        "hostIP": "10.0.0.7", "hostIPs": [{ "ip": "10.0.0.7" }],
        "podIP": format!("10.244.1.{index}"), "podIPs": [{ "ip": format!("10.244.1.{index}") }],
        "containerStatuses": containers.collect::<Vec<Value>>(),
    }))?)
}

/// A slice of as many endpoints as a large service has.
fn slice(index: u32) -> Result<EndpointSlice> {
    let endpoint = |number: u32| {
        json!({
            "addresses": [format!("10.244.{index}.{number}")],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": format!("node-{number}"), "zone": "zone-a",
            "targetRef": {
                "kind": "Pod", "namespace": NAMESPACE, "name": format!("pod-{number:06}"),
                "uid": format!("00000000-0000-0000-0000-{number:012}"),
            },
        })
    };
    Ok(serde_json::from_value(json!({
        "metadata": { "name": format!("slice-{index}"), "namespace": NAMESPACE,
                      "labels": { "kubernetes.io/service-name": "service" } },
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
        "endpoints": (0..50).map(endpoint).collect::<Vec<Value>>(),
    }))?)
}
