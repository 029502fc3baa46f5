//! The few defaults of built-in kinds that clients look at. The full defaulting of kube-apiserver is not done.

use base64::Engine as _;
use serde_json::{Map, Value, json};

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
            if let Some(spec) = object.get_mut("spec") {
                pod_spec(spec);
                default(spec, "enableServiceLinks", json!(true));
            }
        }
        ("apps", "deployments") => with_template(object, |spec| {
            default(spec, "replicas", json!(1));
            default(spec, "revisionHistoryLimit", json!(10));
            default(spec, "progressDeadlineSeconds", json!(600));
            let rolling = json!({"maxUnavailable": "25%", "maxSurge": "25%"});
            default(spec, "strategy", json!({"type": "RollingUpdate", "rollingUpdate": rolling}));
        }),
        ("apps", "replicasets" | "statefulsets") | ("", "replicationcontrollers") => {
            with_template(object, |spec| default(spec, "replicas", json!(1)));
        }
        ("apps", "daemonsets") => with_template(object, |_| {}),
        ("batch", "jobs") => with_template(object, |spec| {
            default(spec, "completions", json!(1));
            default(spec, "parallelism", json!(1));
        }),
        ("", "secrets") => {
            object.entry("type").or_insert_with(|| json!("Opaque"));
            take_string_data(object);
        }
        ("", "services") => {
            if let Some(spec) = object.get_mut("spec") {
                default(spec, "type", json!("ClusterIP"));
                default(spec, "sessionAffinity", json!("None"));
                default(spec, "internalTrafficPolicy", json!("Cluster"));
                for port in list(spec, "ports") {
                    default(port, "protocol", json!("TCP"));
                    let number = port.get("port").cloned().unwrap_or_default();
                    if port.get("targetPort").is_none_or(|target| *target == json!(0)) {
                        port["targetPort"] = number;
                    }
                }
            }
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(object),
        _ => {}
    }
}

/// `stringData` is a way to write `data`, and is not kept.
fn take_string_data(object: &mut Object) {
    let Some(Value::Object(texts)) = object.remove("stringData") else { return };
    if let Value::Object(data) = object.entry("data").or_insert_with(|| json!({})) {
        for (key, text) in texts {
            let text = text.as_str().unwrap_or_default();
            let encoded = base64::engine::general_purpose::STANDARD.encode(text);
            data.insert(key, encoded.into());
        }
    }
}

/// The names that a definition may leave out.
fn definition(object: &mut Object) {
    let Some(spec) = object.get_mut("spec") else { return };
    default(spec, "conversion", json!({"strategy": "None"}));
    let Some(names) = spec.get_mut("names") else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    default(names, "singular", json!(kind.to_lowercase()));
    default(names, "listKind", json!(format!("{kind}List")));
}

fn with_template(object: &mut Object, fill: impl FnOnce(&mut Value)) {
    let Some(spec) = object.get_mut("spec") else { return };
    fill(spec);
    if let Some(pod) = spec.get_mut("template").and_then(|template| template.get_mut("spec")) {
        pod_spec(pod);
    }
}

fn pod_spec(spec: &mut Value) {
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "securityContext", json!({}));
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list(spec, containers) {
            default(container, "terminationMessagePath", json!("/dev/termination-log"));
            default(container, "terminationMessagePolicy", json!("File"));
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            let name = image.rsplit('/').next().unwrap_or_default();
            let latest = !name.contains([':', '@']) || name.ends_with(":latest");
            let policy = if latest { "Always" } else { "IfNotPresent" };
            default(container, "imagePullPolicy", json!(policy));
            for port in list(container, "ports") {
                default(port, "protocol", json!("TCP"));
            }
        }
    }
}

/// The elements of a list.
fn list<'a>(value: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

fn set(object: &mut Object, part: &str, field: &str, value: Value) {
    if let Value::Object(part) = object.entry(part).or_insert_with(|| json!({})) {
        part.insert(field.to_owned(), value);
    }
}

/// Sets a field that is absent, null or an empty object, which is how Go's zero value looks.
fn default(part: &mut Value, field: &str, value: Value) {
    let Value::Object(part) = part else { return };
    let absent = part.get(field).is_none_or(|old| {
        old.is_null() || old.as_object().is_some_and(Map::is_empty) && value.is_object()
    });
    if absent {
        part.insert(field.to_owned(), value);
    }
}
