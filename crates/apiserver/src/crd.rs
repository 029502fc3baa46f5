//! Custom resource definitions: creating one makes its resources servable, at once.

mod schema;

use std::sync::Arc;

use kubestrata_api_types::{ResourceType, Scope};
use kubestrata_storage::Range;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use self::schema::Schema;
use crate::catalog::{self, Info, Resource, ScalePaths, Subresource};
use crate::failure::{Cause, Outcome, invalid_object};
use crate::namespaces::ignore_missing;
use crate::record::Item;
use crate::selectable::Selectable;
use crate::server::Core;
use crate::write::{self, DeleteOptions, Subject, metadata};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The part of a definition that is looked at.
#[derive(Deserialize)]
struct Spec {
    group: String,
    scope: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    plural: String,
    #[serde(default)]
    singular: String,
    kind: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: String,
    served: bool,
    storage: bool,
    schema: Option<Validation>,
    #[serde(default)]
    subresources: Subresources,
    #[serde(default)]
    selectable_fields: Vec<SelectableField>,
}

#[derive(Deserialize)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    schema: Value,
}

#[derive(Default, Deserialize)]
struct Subresources {
    status: Option<Value>,
    scale: Option<Scale>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scale {
    spec_replicas_path: String,
    status_replicas_path: String,
    label_selector_path: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelectableField {
    json_path: String,
}

fn spec(item: &Item) -> Option<Spec> {
    serde_json::from_value(item.value().get("spec")?.clone()).ok()
}

/// Refuses a definition whose name is not made of what it names, or that lacks a schema.
pub(crate) fn check(resource: &Resource, object: &write::Object) -> Outcome<()> {
    if !is_definition(resource) {
        return Ok(());
    }
    let name = object["metadata"].get("name").and_then(Value::as_str).unwrap_or_default();
    let spec = object.get("spec").cloned().unwrap_or_default();
    let spec: Spec = serde_json::from_value(spec).map_err(|error| {
        let cause = Cause::invalid("spec", "null", &error.to_string());
        invalid_object(&resource.ty, name, &[cause])
    })?;
    let mut causes = Vec::new();
    if name != format!("{}.{}", spec.names.plural, spec.group) {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &format!("{name:?}"), detail));
    }
    for (index, version) in spec.versions.iter().enumerate() {
        if version.schema.is_none() {
            let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(&field, "schemas are required"));
        }
    }
    if spec.versions.iter().filter(|version| version.storage).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", "null", detail));
    }
    if causes.is_empty() { Ok(()) } else { Err(invalid_object(&resource.ty, name, &causes)) }
}

fn is_definition(resource: &Resource) -> bool {
    resource.is(GROUP, PLURAL)
}

/// An object was created.
pub(crate) async fn created(core: &Arc<Core>, resource: &Resource, item: &Item) -> Outcome<()> {
    if !is_definition(resource) || item.revision == 0 {
        return Ok(());
    }
    let Some(spec) = spec(item) else { return Ok(()) };
    serve(core, &spec);
    establish(core, resource, item.key.name(), &spec).await
}

/// An object was changed.
pub(crate) async fn updated(core: &Arc<Core>, resource: &Resource, item: &Item) -> Outcome<()> {
    if is_definition(resource)
        && !write::is_terminating(&item.value())
        && let Some(spec) = spec(item)
    {
        serve(core, &spec);
    }
    Ok(())
}

/// Puts the served versions into the catalogue, and takes out those that are not served any more.
fn serve(core: &Core, spec: &Spec) {
    core.catalog.remove(|resource| {
        resource.is(&spec.group, &spec.names.plural)
            && !resource.info.builtin
            && !spec
                .versions
                .iter()
                .any(|version| version.served && version.name == resource.ty.version)
    });
    let scope = if spec.scope == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
    for version in spec.versions.iter().filter(|version| version.served) {
        let (kind, plural) = (&spec.names.kind, &spec.names.plural);
        let ty = ResourceType::new(&*spec.group, &*version.name, &**kind, &**plural, scope);
        core.serve(ty, info(spec, version));
    }
}

fn info(spec: &Spec, version: &Version) -> Info {
    let part = |name: &str, kind: &str, group: &str, version: &str| Subresource {
        name: name.to_owned(),
        kind: kind.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
    };
    let mut subresources = Vec::new();
    if version.subresources.status.is_some() {
        subresources.push(part("status", &spec.names.kind, &spec.group, &version.name));
    }
    if version.subresources.scale.is_some() {
        subresources.push(part("scale", "Scale", "autoscaling", "v1"));
    }
    let paths = version.selectable_fields.iter().map(|field| field.json_path.as_str());
    let singular = if spec.names.singular.is_empty() {
        spec.names.kind.to_lowercase()
    } else {
        spec.names.singular.clone()
    };
    Info {
        singular,
        short_names: spec.names.short_names.clone(),
        categories: spec.names.categories.clone(),
        verbs: catalog::all_verbs(),
        subresources,
        builtin: false,
        schema: version
            .schema
            .as_ref()
            .and_then(|validation| Schema::parse(&validation.schema))
            .map(Arc::new),
        selectable: Arc::new(Selectable::custom(paths)),
        scale: version.subresources.scale.clone().map(|scale| ScalePaths {
            spec: scale.spec_replicas_path,
            status: scale.status_replicas_path,
            selector: scale.label_selector_path,
        }),
    }
}

/// Says in the status that the definition is in force, and holds it until its objects are gone.
async fn establish(core: &Core, resource: &Resource, name: &str, spec: &Spec) -> Outcome<()> {
    let subject = Subject::whole(core, resource, None, name);
    let at = metadata::now(&*core.world);
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": "True",
            "lastTransitionTime": at,
            "reason": reason,
            "message": message,
        })
    };
    let conditions = json!([
        condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]);
    let stored: Vec<&str> = spec
        .versions
        .iter()
        .filter(|version| version.storage)
        .map(|version| version.name.as_str())
        .collect();
    subject
        .change(|old| {
            let mut object = old.clone();
            let names = object.get("spec").and_then(|spec| spec.get("names")).cloned();
            object.insert(
                "status".to_owned(),
                json!({
                    "conditions": conditions,
                    "acceptedNames": names,
                    "storedVersions": stored,
                }),
            );
            let metadata = write::metadata_mut(&mut object)?;
            if let Value::Array(list) = metadata.entry("finalizers").or_insert_with(|| json!([]))
                && !list.iter().any(|finalizer| finalizer == CLEANUP)
            {
                list.push(CLEANUP.into());
            }
            Ok(object)
        })
        .await?;
    Ok(())
}

/// An object has been marked for deletion. If it is a definition, its objects go first.
pub(crate) async fn marked(core: &Core, resource: &Resource, item: &Item) -> Outcome<()> {
    if !is_definition(resource) {
        return Ok(());
    }
    let Some(spec) = spec(item) else { return Ok(()) };
    let Some(custom) = any_version(core, &spec.group, &spec.names.plural) else {
        return release(core, resource, item.key.name()).await;
    };
    let store = custom.store()?;
    let page = core.storage.range(Range::prefix(&store.prefix)).await?;
    for entry in page.items {
        let (namespace, name) = (entry.value.key.namespace(), entry.value.key.name());
        let options = DeleteOptions::now();
        ignore_missing(write::remove(core, &custom, namespace, name, &options).await)?;
    }
    finish(core, resource, item.key.name(), &custom).await
}

/// An object is gone. If it was the last of a definition that is being deleted, the definition goes too.
pub(crate) async fn instance_gone(core: &Core, custom: &Resource) -> Outcome<()> {
    if custom.info.builtin {
        return Ok(());
    }
    let Some(definitions) = core.catalog.find(GROUP, "v1", PLURAL) else { return Ok(()) };
    let name = format!("{}.{}", custom.ty.plural, custom.ty.group);
    let key = definitions.store()?.key(None, &name);
    match core.storage.get(&key).await? {
        Some(entry) if write::is_terminating(&entry.value.value()) => {
            finish(core, &definitions, &name, custom).await
        }
        _ => Ok(()),
    }
}

fn any_version(core: &Core, group: &str, plural: &str) -> Option<Arc<Resource>> {
    core.catalog.all().into_iter().find(|resource| resource.is(group, plural))
}

/// Ends a definition whose objects are all gone.
async fn finish(core: &Core, definitions: &Resource, name: &str, custom: &Resource) -> Outcome<()> {
    let store = custom.store()?;
    if core.storage.range(Range::prefix(&store.prefix).limit(1)).await?.count > 0 {
        return Ok(());
    }
    let (group, plural) = (&custom.ty.group, &custom.ty.plural);
    let removed =
        core.catalog.remove(|resource| !resource.info.builtin && resource.is(group, plural));
    for resource in removed {
        if let Some(store) = &resource.store {
            store.cache.close();
        }
    }
    release(core, definitions, name).await
}

/// Takes the server's own finalizer off a definition, with which it goes unless it has others.
async fn release(core: &Core, definitions: &Resource, name: &str) -> Outcome<()> {
    let subject = Subject::whole(core, definitions, None, name);
    let changed = subject
        .change(|old| {
            let mut object = old.clone();
            let metadata = write::metadata_mut(&mut object)?;
            if let Some(Value::Array(list)) = metadata.get_mut("finalizers") {
                list.retain(|finalizer| finalizer != CLEANUP);
            }
            Ok(object)
        })
        .await;
    ignore_missing(changed)
}
