//! Create.

use kubestrata_api_types::Status;
use kubestrata_api_types::reason;
use kubestrata_storage::{Expected, WriteError};

use crate::answer::Answer;
use crate::catalog::Resource;
use crate::dispatch::{Call, not_allowed};
use crate::failure::{
    self, Cause, Outcome, already_exists, invalid_object, name_exhausted, not_found, unclassified,
};
use crate::record::{Draft, Item};
use crate::server::Core;
use crate::write::change::place;
use crate::write::{
    Object, answer_object, body, dry_run, meta_text, metadata, metadata_mut, names,
};

/// POST of a collection.
pub(crate) async fn create(call: &Call<'_>) -> Outcome<Answer> {
    if !call.resource.has_verb("create") {
        return Err(not_allowed());
    }
    if call.resource.store.is_none() {
        return super::subresource::review(call);
    }
    if call.resource.ty.is_namespaced() && call.namespace().is_none() {
        return Err(not_allowed());
    }
    let dry = dry_run(call, "CreateOptions")?;
    let object = body::object(call)?;
    crate::crd::check(&call.resource, &object)?;
    let item = insert(call.core, &call.resource, call.namespace(), object, dry).await?;
    crate::crd::created(call.core, &call.resource, &item).await?;
    let item = if call.resource.is("apiextensions.k8s.io", "customresourcedefinitions") && !dry {
        newest(call, &item).await?
    } else {
        item
    };
    Ok(answer_object(call, &item, 201))
}

/// The object as it is now.
async fn newest(call: &Call<'_>, item: &Item) -> Outcome<Item> {
    let key = call.resource.store()?.key(call.namespace(), item.key.name());
    let entry = call.core.storage.get(&key).await?;
    Ok(entry.map_or_else(|| item.clone(), |entry| entry.value))
}

/// Creates an object, by its name or by the prefix of one.
pub(crate) async fn insert(
    core: &Core,
    resource: &Resource,
    namespace: Option<&str>,
    mut object: Object,
    dry: bool,
) -> Outcome<Item> {
    if !meta_text(&object, "resourceVersion").is_empty() {
        return Err(unclassified("resourceVersion should not be set on objects to be created"));
    }
    place(&mut object, namespace)?;
    check_namespace(core, resource, namespace).await?;
    let prefix = meta_text(&object, "generateName").to_owned();
    let given = meta_text(&object, "name").to_owned();
    if given.is_empty() && prefix.is_empty() {
        let cause = Cause::required("metadata.name", "name or generateName is required");
        return Err(invalid_object(&resource.ty, "", &[cause]));
    }
    let mut tries = if given.is_empty() { core.config.name_retries.max(1) } else { 1 };
    loop {
        let name =
            if given.is_empty() { names::generate(&prefix, &*core.world) } else { given.clone() };
        metadata_mut(&mut object)?.insert("name".to_owned(), name.as_str().into());
        if let Some(cause) = names::check(resource, &name) {
            return Err(invalid_object(&resource.ty, &name, &[cause]));
        }
        let mut object = object.clone();
        metadata::for_create(resource, &mut object, &*core.world)?;
        tries -= 1;
        match store(core, resource, &object, dry).await? {
            Ok(item) => return Ok(item),
            Err(_) if given.is_empty() && tries > 0 => {}
            Err(_) if given.is_empty() => return Err(name_exhausted(&resource.ty, &name)),
            Err(terminating) => return Err(already_exists(&resource.ty, &name, terminating)),
        }
    }
}

/// Writes a new object; the inner error tells that the name is taken, and whether by an object that is being deleted.
async fn store(
    core: &Core,
    resource: &Resource,
    object: &Object,
    dry: bool,
) -> Outcome<Result<Item, bool>> {
    let draft = Draft::new(object, resource)?;
    let key = resource.store()?.key(draft.key.namespace(), draft.key.name());
    let terminating = |item: &Item| super::is_terminating(&item.value());
    if dry {
        let current = core.storage.get(&key).await?;
        return Ok(match current {
            Some(entry) => Err(terminating(&entry.value)),
            None => Ok(draft.unversioned()),
        });
    }
    match core.storage.put(&key, Expected::Absent, &|revision| draft.at(revision)).await {
        Ok(entry) => Ok(Ok(entry.value)),
        Err(WriteError::Conflict { current }) => {
            Ok(Err(current.is_some_and(|entry| terminating(&entry.value))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Nothing is created in a namespace that is not there or is going (admission plugin NamespaceLifecycle).
async fn check_namespace(core: &Core, resource: &Resource, namespace: Option<&str>) -> Outcome<()> {
    let Some(namespace) = namespace else { return Ok(()) };
    let namespaces = core.namespaces()?;
    let key = namespaces.store()?.key(None, namespace);
    let Some(entry) = core.storage.get(&key).await? else {
        return Err(not_found(&namespaces.ty, namespace));
    };
    if !super::is_terminating(&entry.value.value()) {
        return Ok(());
    }
    let message = format!(
        "{} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
        resource.ty
    );
    let mut status = Status::failure(403, reason::FORBIDDEN, message);
    status.details = Some(kubestrata_api_types::StatusDetails {
        group: resource.ty.group.to_string(),
        kind: resource.ty.plural.to_string(),
        causes: vec![kubestrata_api_types::StatusCause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        }],
        ..kubestrata_api_types::StatusDetails::default()
    });
    Err(failure::Failure::from(status))
}
