//! A large custom resource: its definition, its objects and its Rust type.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_api_types::{ResourceType, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::NAMESPACE;

/// A custom resource of about 40 KB.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Widget {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Debug, Deserialize, Serialize)]
struct Spec {
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    name: String,
    enabled: bool,
    weight: i32,
    description: String,
    hosts: Vec<String>,
    matches: Vec<Match>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Match {
    path: String,
    header_value: String,
    port: u16,
}

/// What its objects are of.
pub(super) fn resource() -> ResourceType {
    ResourceType::new("bench.example", "v1", "Widget", "widgets", Scope::Namespaced)
}

/// Its definition.
pub(super) fn definition() -> Value {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "metadata": { "name": "widgets.bench.example" },
        "spec": {
            "group": "bench.example",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open } } },
            }],
        },
    })
}

/// One of its objects.
pub(super) fn widget(index: u32) -> Value {
    let rule = |number: u32| {
        let matches = (0..4).map(|port| {
            json!({ "path": format!("/api/v{port}/items/{number}"), "port": 8000 + port,
                    "headerValue": format!("tenant-{number}; \"quoted\" and {{braced}}") })
        });
        json!({
            "name": format!("rule-{number}"), "enabled": !number.is_multiple_of(3), "weight": number,
            "description": "Routes what fits to the hosts below, in turn, by weight.",
            "hosts": (0..4).map(|host| format!("host-{host}.rule-{number}.example")).collect::<Vec<_>>(),
            "matches": matches.collect::<Vec<_>>(),
        })
    };
    json!({
        "metadata": {
            "name": format!("widget-{index}"), "namespace": NAMESPACE,
            "labels": { "app": format!("app-{index}"), "tier": "edge" },
        },
        "spec": { "rules": (0..64).map(rule).collect::<Vec<_>>() },
    })
}
