//! The pods of the benchmarks: the same, field by field, as those that the peers create.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, EnvVarSource, ExecAction, ObjectFieldSelector, Pod, PodSpec,
    Probe,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// Pod number `index`: label `app=app-0..99`, node `node-0..49`, two containers.
pub(crate) fn pod(namespace: &str, index: u32) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("pod-{index:06}")),
            namespace: Some(namespace.to_owned()),
            labels: Some(strings(&[
                ("app", format!("app-{}", index % 100)),
                ("tier", format!("t{}", index % 4)),
                ("pod-template-hash", format!("{:08x}", u64::from(index) * 40_503)),
            ])),
            annotations: Some(strings(&[
                ("owner", format!("team-{}", index % 10)),
                ("kubernetes.io/config.source", "api".to_owned()),
            ])),
            owner_references: Some(vec![OwnerReference {
                api_version: "apps/v1".to_owned(),
                kind: "ReplicaSet".to_owned(),
                name: format!("rs-{}", index / 10),
                uid: "00000000-0000-0000-0000-000000000001".to_owned(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: (0..2).map(container).collect(),
            node_name: Some(format!("node-{}", index % 50)),
            ..PodSpec::default()
        }),
        status: None,
    }
}

fn container(index: i32) -> Container {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let value = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..EnvVar::default()
    };
    let node = EnvVar {
        name: "NODE".to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: "spec.nodeName".to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    };
    Container {
        name: format!("c{index}"),
        image: Some("registry.example/app/server:v1.2.3".to_owned()),
        args: Some(owned(&["--listen=:8080", "--config=/etc/app/config.yaml", "--log-level=info"])),
        env: Some(vec![value("A", "1"), value("B", "two"), node]),
        ports: Some(vec![ContainerPort {
            name: Some(format!("http{index}")),
            container_port: 8080 + index,
            ..ContainerPort::default()
        }]),
        liveness_probe: Some(Probe {
            exec: Some(ExecAction { command: Some(owned(&["/bin/true"])) }),
            ..Probe::default()
        }),
        ..Container::default()
    }
}

fn strings(pairs: &[(&str, String)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}
