//! The kinds that scenarios use: a built-in one, and a custom one.

use std::collections::BTreeMap;

use api_types::{Format, Kind};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kubestrata_api_types as api_types;
use kubestrata_derive::{Kind, Object};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What the objects of a trial are, and how they travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A ReplicaSet in JSON.
    Json,
    /// A ReplicaSet in protobuf.
    Protobuf,
    /// A custom resource, in JSON.
    Custom,
}

impl Form {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Json, Self::Protobuf, Self::Custom];

    /// For the names of trials.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Protobuf => "protobuf",
            Self::Custom => "custom",
        }
    }

    /// The encoding.
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Json | Self::Custom => Format::Json,
            Self::Protobuf => Format::Protobuf,
        }
    }
}

/// A kind with a number to set, and a number in its status.
pub(crate) trait Sample:
    Kind + Serialize + DeserializeOwned + Clone + std::fmt::Debug + PartialEq
{
    /// An object to create.
    fn sample(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Self;
    /// The metadata.
    fn meta(&mut self) -> &mut ObjectMeta;
    /// `spec.replicas`
    fn replicas(&self) -> i32;
    /// `spec.replicas`
    fn set_replicas(&mut self, replicas: i32);
    /// `status.replicas`, 0 without a status.
    fn observed(&self) -> i32;
    /// `status.replicas`
    fn set_observed(&mut self, replicas: i32);
}

fn metadata(namespace: &str, name: &str, labels: &[(&str, &str)]) -> ObjectMeta {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        labels: (!labels.is_empty()).then_some(labels),
        ..ObjectMeta::default()
    }
}

impl Sample for ReplicaSet {
    fn sample(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Self {
        let selector = BTreeMap::from([("set".to_owned(), name.to_owned())]);
        Self {
            metadata: metadata(namespace, name, labels),
            spec: ReplicaSetSpec {
                replicas: Some(1),
                selector: LabelSelector {
                    match_labels: Some(selector.clone()),
                    ..LabelSelector::default()
                },
                template: Some(PodTemplateSpec {
                    metadata: Some(ObjectMeta { labels: Some(selector), ..ObjectMeta::default() }),
                    spec: Some(PodSpec {
                        containers: vec![Container {
                            name: "main".to_owned(),
                            image: Some("registry.example/main:1".to_owned()),
                            ..Container::default()
                        }],
                        ..PodSpec::default()
                    }),
                }),
                ..ReplicaSetSpec::default()
            },
            status: None,
        }
    }

    fn meta(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or_default()
    }

    fn set_replicas(&mut self, replicas: i32) {
        self.spec.replicas = Some(replicas);
    }

    fn observed(&self) -> i32 {
        self.status.as_ref().map(|status| status.replicas).unwrap_or_default()
    }

    fn set_observed(&mut self, replicas: i32) {
        self.status = Some(ReplicaSetStatus { replicas, ..ReplicaSetStatus::default() });
    }
}

/// A custom resource of this suite, as a user's own struct.
#[derive(Debug, Clone, Default, PartialEq, Serialize, serde::Deserialize, Object, Kind)]
#[kubestrata(
    group = "it.kubestrata.example",
    version = "v1",
    kind = "Widget",
    plural = "widgets",
    scope = "Namespaced"
)]
pub(crate) struct Widget {
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: WidgetSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<WidgetStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, serde::Deserialize)]
pub(crate) struct WidgetSpec {
    #[serde(default)]
    pub(crate) replicas: i32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, serde::Deserialize)]
pub(crate) struct WidgetStatus {
    #[serde(default)]
    pub(crate) replicas: i32,
}

impl Sample for Widget {
    fn sample(namespace: &str, name: &str, labels: &[(&str, &str)]) -> Self {
        Self {
            metadata: metadata(namespace, name, labels),
            spec: WidgetSpec { replicas: 1 },
            status: None,
        }
    }

    fn meta(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn replicas(&self) -> i32 {
        self.spec.replicas
    }

    fn set_replicas(&mut self, replicas: i32) {
        self.spec.replicas = replicas;
    }

    fn observed(&self) -> i32 {
        self.status.as_ref().map(|status| status.replicas).unwrap_or_default()
    }

    fn set_observed(&mut self, replicas: i32) {
        self.status = Some(WidgetStatus { replicas });
    }
}

/// The definition of [`Widget`] for servers that learn kinds from objects.
pub(crate) fn widget_definition() -> serde_json::Value {
    let replicas = serde_json::json!({
        "type": "object",
        "properties": {"replicas": {"type": "integer", "format": "int32"}},
    });
    serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.it.kubestrata.example"},
        "spec": {
            "group": "it.kubestrata.example",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": replicas, "status": replicas},
                }},
            }],
        },
    })
}
