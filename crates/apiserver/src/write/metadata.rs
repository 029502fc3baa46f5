//! What the server decides of an object: identity, times, generation, status (apiserver `BeforeCreate`, `BeforeUpdate`).

use kubestrata_api_types::{Timestamp, World};
use serde_json::{Value, json};

use crate::catalog::Resource;
use crate::failure::{Cause, Outcome, conflict, invalid_object};
use crate::record::canonical;
use crate::write::{Object, finalizers, is_terminating, meta_text, metadata_mut, names};

/// Which part of an object an endpoint writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status, where that has an endpoint of its own.
    Main,
    /// The status.
    Status,
    /// `spec.finalizers` of a namespace.
    Finalize,
    /// The object as it is given: approvals, resizes, bindings.
    Whole,
}

/// The wall clock in whole seconds, as the API writes it.
pub(crate) fn now(world: &dyn World) -> String {
    after(world, 0)
}

/// So many seconds after now.
pub(crate) fn after(world: &dyn World, seconds: i64) -> String {
    let second = world.wall().as_second().saturating_add(seconds);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX).to_string()
}

/// Whether the kind counts its generations.
pub(crate) fn has_generation(resource: &Resource) -> bool {
    if !resource.info.builtin {
        return true;
    }
    match (&*resource.ty.group, &*resource.ty.plural) {
        ("", plural) => matches!(plural, "pods" | "replicationcontrollers" | "podtemplates"),
        ("apps", plural) => plural != "controllerrevisions",
        ("networking.k8s.io", plural) => {
            matches!(plural, "ingresses" | "ingressclasses" | "networkpolicies")
        }
        ("storage.k8s.io", plural) => plural == "csidrivers",
        ("discovery.k8s.io", plural) => plural == "endpointslices",
        (
            "batch"
            | "autoscaling"
            | "policy"
            | "scheduling.k8s.io"
            | "admissionregistration.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "resource.k8s.io"
            | "apiextensions.k8s.io",
            _,
        ) => true,
        _ => false,
    }
}

/// Whether a PUT without a version is refused (`AllowUnconditionalUpdate`).
pub(crate) fn needs_version(resource: &Resource) -> bool {
    if !resource.info.builtin {
        return true;
    }
    match (&*resource.ty.group, &*resource.ty.plural) {
        (
            "coordination.k8s.io"
            | "admissionregistration.k8s.io"
            | "apiextensions.k8s.io"
            | "storagemigration.k8s.io",
            _,
        ) => true,
        ("policy", plural) => plural == "poddisruptionbudgets",
        ("node.k8s.io", plural) => plural == "runtimeclasses",
        ("storage.k8s.io", plural) => matches!(
            plural,
            "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments"
        ),
        ("certificates.k8s.io", plural) => plural != "certificatesigningrequests",
        _ => false,
    }
}

/// Whether a PUT of what is not there creates it (`AllowCreateOnUpdate`).
pub(crate) fn creates_on_update(resource: &Resource) -> bool {
    let plural = &*resource.ty.plural;
    resource.info.builtin
        && match &*resource.ty.group {
            "" => matches!(plural, "events" | "endpoints" | "services" | "limitranges"),
            "events.k8s.io" | "coordination.k8s.io" | "rbac.authorization.k8s.io" => true,
            "node.k8s.io" => plural == "runtimeclasses",
            _ => false,
        }
}

/// Makes a new object what the server wants it to be. Its name is set.
pub(crate) fn for_create(
    resource: &Resource,
    object: &mut Object,
    world: &dyn World,
) -> Outcome<()> {
    let tracked = has_generation(resource);
    let uid = world.uid();
    let created = now(world);
    let metadata = metadata_mut(object)?;
    for field in [
        "selfLink",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    ] {
        metadata.remove(field);
    }
    drop_empty(metadata);
    metadata.insert("uid".to_owned(), uid.into());
    metadata.insert("creationTimestamp".to_owned(), created.into());
    if tracked {
        metadata.insert("generation".to_owned(), 1.into());
    }
    if resource.has_status() && !resource.is("", "nodes") {
        object.remove("status");
    }
    // In the forms in which it will be stored, so that a later write finds the same to be filled in.
    *object = canonical(object, resource)?;
    crate::defaults::apply(resource, object);
    check_labels(resource, object)?;
    admit(resource, object)
}

/// Prunes, defaults and checks a custom resource by its schema.
fn admit(resource: &Resource, object: &mut Object) -> Outcome<()> {
    let Some(schema) = &resource.info.schema else { return Ok(()) };
    let causes = schema.admit(object);
    if causes.is_empty() {
        return Ok(());
    }
    let name = meta_text(object, "name").to_owned();
    Err(invalid_object(&resource.ty, &name, &causes))
}

/// Go leaves out what is empty.
fn drop_empty(metadata: &mut Object) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    });
}

/// Makes a changed object what the server wants it to be, from the old one and what the client wants.
pub(crate) fn for_update(
    resource: &Resource,
    part: Part,
    old: &Object,
    mut new: Object,
) -> Outcome<Object> {
    if part == Part::Status {
        new = status_only(resource, old, &new);
    } else if part == Part::Finalize {
        let wanted = new.get("spec").and_then(|spec| spec.get("finalizers")).cloned();
        new = old.clone();
        if let Some(Value::Object(spec)) = new.get_mut("spec") {
            spec.insert("finalizers".to_owned(), wanted.unwrap_or_else(|| json!([])));
        }
    } else if part == Part::Main && resource.has_status() {
        match old.get("status") {
            Some(status) => new.insert("status".to_owned(), status.clone()),
            None => new.remove("status"),
        };
    }
    if part == Part::Main && resource.is("", "namespaces") {
        keep_namespace_finalizers(old, &mut new);
    }
    let name = meta_text(old, "name").to_owned();
    let namespace = Some(meta_text(old, "namespace")).filter(|namespace| !namespace.is_empty());
    let key = resource.store()?.key(namespace, &name);
    check_uid(resource, &key, &name, &new, meta_text(old, "uid"))?;
    let old_metadata = old.get("metadata").and_then(Value::as_object);
    let metadata = metadata_mut(&mut new)?;
    metadata.remove("selfLink");
    metadata.remove("managedFields");
    for field in [
        "name",
        "generateName",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        match old_metadata.and_then(|metadata| metadata.get(field)) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    drop_empty(metadata);
    check_finalizers(resource, old, &new, &name)?;
    check_labels(resource, &new)?;
    // Compared in the forms in which they are stored: one quantity can be written in many ways.
    let mut new = canonical(&new, resource)?;
    if part == Part::Main {
        crate::defaults::apply_update(resource, &mut new);
    }
    let counts = has_generation(resource) && !matches!(part, Part::Status | Part::Whole);
    admit(resource, &mut new)?;
    if counts && desires_differ(resource, old, &new) {
        let generation = old["metadata"].get("generation").and_then(Value::as_i64).unwrap_or(0);
        metadata_mut(&mut new)?.insert("generation".to_owned(), (generation + 1).into());
    }
    Ok(new)
}

/// The UID that an object is written with is a precondition. `uid` is the one it has; empty if it is not there.
pub(crate) fn check_uid(
    resource: &Resource,
    key: &str,
    name: &str,
    object: &Object,
    uid: &str,
) -> Outcome<()> {
    let wanted = meta_text(object, "uid");
    if wanted.is_empty() || wanted == uid {
        return Ok(());
    }
    let problem = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
    );
    Err(conflict(&resource.ty, name, &problem))
}

/// The old object with the new status. Built-in kinds take annotations and finalizers along, and but for those of
/// `apps` labels; custom ones nothing.
fn status_only(resource: &Resource, old: &Object, new: &Object) -> Object {
    let mut merged = old.clone();
    match new.get("status") {
        Some(status) => merged.insert("status".to_owned(), status.clone()),
        None => merged.remove("status"),
    };
    let carried = ["resourceVersion", "uid", "annotations", "finalizers", "labels"];
    let carried = match &*resource.ty.group {
        _ if !resource.info.builtin => &carried[..2],
        "apps" => &carried[..4],
        _ => &carried[..],
    };
    if let (Some(Value::Object(to)), Some(Value::Object(from))) =
        (merged.get_mut("metadata"), new.get("metadata"))
    {
        for field in carried {
            match from.get(*field) {
                Some(value) => to.insert((*field).to_owned(), value.clone()),
                None => to.remove(*field),
            };
        }
    }
    merged
}

/// `spec.finalizers` of a namespace belong to its `finalize` endpoint.
fn keep_namespace_finalizers(old: &Object, new: &mut Object) {
    let kept = old.get("spec").and_then(|spec| spec.get("finalizers")).cloned();
    let spec = new.entry("spec").or_insert_with(|| json!({}));
    if let (Some(kept), Value::Object(spec)) = (kept, spec) {
        spec.insert("finalizers".to_owned(), kept);
    }
}

fn check_labels(resource: &Resource, object: &Object) -> Outcome<()> {
    let labels = object.get("metadata").and_then(|metadata| metadata.get("labels")?.as_object());
    let causes: Vec<Cause> = labels
        .into_iter()
        .flatten()
        .flat_map(|(key, value)| names::label_causes(key, value))
        .collect();
    if causes.is_empty() {
        return Ok(());
    }
    Err(invalid_object(&resource.ty, meta_text(object, "name"), &causes))
}

fn check_finalizers(resource: &Resource, old: &Object, new: &Object, name: &str) -> Outcome<()> {
    if !is_terminating(old) {
        return Ok(());
    }
    let before = finalizers(old);
    let added: Vec<String> = finalizers(new)
        .into_iter()
        .filter(|finalizer| !before.contains(finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    Err(invalid_object(&resource.ty, name, &[Cause::forbidden("metadata.finalizers", &detail)]))
}

/// Whether the desired state differs: all but metadata, and but the status where that has an endpoint of its own.
fn desires_differ(resource: &Resource, old: &Object, new: &Object) -> bool {
    let status = resource.has_status();
    let desired = |object: &Object| {
        let fields = object.iter().filter(|(field, _)| match field.as_str() {
            "metadata" | "kind" | "apiVersion" => false,
            field => field != "status" || !status,
        });
        fields.map(|(field, value)| (field.clone(), value.clone())).collect::<Object>()
    };
    let annotations = |object: &Object| object["metadata"].get("annotations").cloned();
    desired(old) != desired(new)
        || (resource.is("apps", "deployments") && annotations(old) != annotations(new))
}
