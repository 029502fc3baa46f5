//! The few defaults of built-in kinds that clients look at. The full defaulting of kube-apiserver is not done.

use serde_json::{Value, json};

use crate::catalog::Resource;
use crate::write::Object;

/// Sets what a new object lacks.
pub(crate) fn apply(resource: &Resource, object: &mut Object) {
    if !resource.info.builtin {
        return;
    }
    match (&*resource.ty.group, &*resource.ty.plural) {
        ("", "namespaces") => {
            set(object, "spec", "finalizers", json!(["kubernetes"]));
            set(object, "status", "phase", json!("Active"));
            let name = object["metadata"]["name"].clone();
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                let labels = metadata.entry("labels").or_insert_with(|| json!({}));
                if let Value::Object(labels) = labels {
                    labels.insert("kubernetes.io/metadata.name".to_owned(), name);
                }
            }
        }
        ("", "pods") => set(object, "status", "phase", json!("Pending")),
        ("", "persistentvolumeclaims" | "persistentvolumes") => {
            set(object, "status", "phase", json!("Pending"));
        }
        _ => {}
    }
    apply_update(resource, object);
}

/// Sets what an object lacks after any write.
pub(crate) fn apply_update(resource: &Resource, object: &mut Object) {
    if !resource.info.builtin {
        return;
    }
    match (&*resource.ty.group, &*resource.ty.plural) {
        ("", "pods") => {
            default(object, "spec", "restartPolicy", json!("Always"));
            default(object, "spec", "schedulerName", json!("default-scheduler"));
            default(object, "spec", "terminationGracePeriodSeconds", json!(30));
            default(object, "spec", "dnsPolicy", json!("ClusterFirst"));
            default(object, "spec", "enableServiceLinks", json!(true));
        }
        ("apps", "deployments" | "replicasets" | "statefulsets")
        | ("", "replicationcontrollers") => default(object, "spec", "replicas", json!(1)),
        ("batch", "jobs") => {
            default(object, "spec", "completions", json!(1));
            default(object, "spec", "parallelism", json!(1));
        }
        ("", "secrets") => {
            object.entry("type").or_insert_with(|| json!("Opaque"));
        }
        ("", "services") => {
            default(object, "spec", "type", json!("ClusterIP"));
            default(object, "spec", "sessionAffinity", json!("None"));
        }
        _ => {}
    }
}

fn set(object: &mut Object, part: &str, field: &str, value: Value) {
    if let Value::Object(part) = object.entry(part).or_insert_with(|| json!({})) {
        part.insert(field.to_owned(), value);
    }
}

fn default(object: &mut Object, part: &str, field: &str, value: Value) {
    if let Some(Value::Object(part)) = object.get_mut(part) {
        part.entry(field).or_insert(value);
    }
}
