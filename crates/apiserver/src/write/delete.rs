//! Delete, of one object and of a collection.

use kubestrata_api_types::{Status, StatusDetails};
use kubestrata_storage::{Expected, WriteError};
use serde_json::Value;

use crate::answer::{self, Answer};
use crate::catalog::Resource;
use crate::dispatch::{Call, not_allowed};
use crate::failure::{
    Cause, Failure, Outcome, forbidden, invalid, modified, not_found, precondition,
};
use crate::options::ListOptions;
use crate::read::{self, Selection};
use crate::record::{Draft, Item};
use crate::render::ListHead;
use crate::server::Core;
use crate::write::{
    Object, answer_object, body, dry_run, finalizers, is_terminating, meta_text, metadata,
    metadata_mut,
};

const ORPHAN: &str = "orphan";
/// Namespaces that stay (kube-apiserver admission plugin `NamespaceLifecycle`).
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
const FOREGROUND: &str = "foregroundDeletion";

/// `DeleteOptions`, as far as they are obeyed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Options {
    grace: Option<i64>,
    uid: String,
    version: String,
    propagation: String,
    dry: bool,
}

impl Options {
    /// At once, whatever the grace.
    pub(crate) fn now() -> Self {
        Self { grace: Some(0), ..Self::default() }
    }

    /// From the body, and where that is silent from the query.
    fn parse(call: &Call<'_>) -> Outcome<Self> {
        let body = if call.body.is_empty() { Object::new() } else { body::any(call)? };
        let text = |value: Option<&Value>| {
            value.and_then(Value::as_str).map(str::to_owned).unwrap_or_default()
        };
        let preconditions = body.get("preconditions");
        let text_of =
            |field: &str| text(preconditions.and_then(|preconditions| preconditions.get(field)));
        let mut propagation = text(body.get("propagationPolicy"));
        if propagation.is_empty() {
            call.query.text("propagationPolicy").clone_into(&mut propagation);
        }
        let orphan = body.get("orphanDependents").and_then(Value::as_bool);
        let orphan = orphan.or_else(|| call.query.flag("orphanDependents"));
        let mut causes = Vec::new();
        if !propagation.is_empty() && orphan.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::invalid("propagationPolicy", &format!("{propagation:?}"), detail));
        }
        if !matches!(propagation.as_str(), "" | "Orphan" | "Background" | "Foreground") {
            let supported = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";
            causes.push(Cause::unsupported("propagationPolicy", &propagation, supported));
        }
        if !causes.is_empty() {
            return Err(invalid("meta.k8s.io", "DeleteOptions", "", &causes));
        }
        if orphan == Some(true) {
            "Orphan".clone_into(&mut propagation);
        }
        let grace = body.get("gracePeriodSeconds").and_then(Value::as_i64);
        let in_body =
            body.get("dryRun").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        Ok(Self {
            grace: grace
                .map_or_else(|| call.query.integer("gracePeriodSeconds"), |g| Ok(Some(g)))?,
            uid: text_of("uid"),
            version: text_of("resourceVersion"),
            propagation,
            dry: in_body || dry_run(call, "DeleteOptions")?,
        })
    }

    fn check(&self, resource: &Resource, object: &Object, name: &str) -> Outcome<()> {
        let (uid, version) = (meta_text(object, "uid"), meta_text(object, "resourceVersion"));
        if !self.uid.is_empty() && self.uid != uid {
            let problem = format!(
                "the UID in the precondition ({}) does not match the UID in record ({uid}). The object might have been deleted and then recreated",
                self.uid
            );
            return Err(precondition(&resource.ty, name, &problem));
        }
        if !self.version.is_empty() && self.version != version {
            let problem = format!(
                "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({version}). The object might have been modified",
                self.version
            );
            return Err(precondition(&resource.ty, name, &problem));
        }
        Ok(())
    }
}

/// What a delete did.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone; its last state.
    Gone(Item),
    /// The object stays until its finalizers or its grace are over.
    Waits(Item),
}

impl Deleted {
    fn item(&self) -> &Item {
        match self {
            Self::Gone(item) | Self::Waits(item) => item,
        }
    }
}

/// DELETE of an object.
pub(crate) async fn delete(call: &Call<'_>, name: &str) -> Outcome<Answer> {
    if !call.resource.has_verb("delete") {
        return Err(not_allowed());
    }
    let options = Options::parse(call)?;
    let (core, resource) = (&**call.core, &*call.resource);
    match remove(core, resource, call.namespace(), name, &options).await? {
        Deleted::Gone(item) if !returns_object(resource) => Ok(success(call, &item)),
        deleted => Ok(answer_object(call, deleted.item(), 200)),
    }
}

/// DELETE of a collection: each matching object by itself, and the list of them.
pub(crate) async fn delete_collection(call: &Call<'_>) -> Outcome<Answer> {
    if !call.resource.has_verb("deletecollection") {
        return Err(not_allowed());
    }
    let options = Options::parse(call)?;
    let list = ListOptions::parse(call.query, call.core.config.gates)?;
    let selection = Selection::new(&call.resource, call.namespace(), None, &list)?;
    let store = call.resource.store()?;
    let mut deleted = Vec::new();
    for item in read::matching_items(store, &selection) {
        let (namespace, name) = (item.key.namespace(), item.key.name());
        match remove(call.core, &call.resource, namespace, name, &options).await {
            Ok(_) => deleted.push(item),
            // Somebody else was faster.
            Err(Failure::Status(status)) if status.is_not_found() => {}
            Err(failure) => return Err(failure),
        }
    }
    let head = ListHead { revision: store.cache.revision(), ..ListHead::default() };
    Ok(read::respond(call.core, call.renderer(), deleted.into_iter(), head))
}

/// Deletes one object, or marks it for deletion (apiserver `BeforeDelete` and `Store.Delete`).
pub(crate) async fn remove(
    core: &Core,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
    options: &Options,
) -> Outcome<Deleted> {
    if resource.is("", "namespaces") && IMMORTAL.contains(&name) {
        return Err(forbidden(&resource.ty, name, "this namespace may not be deleted"));
    }
    let key = resource.store()?.key(namespace, name);
    for _ in 0..=core.config.write_retries {
        let entry = core.storage.get(&key).await?;
        let entry = entry.ok_or_else(|| not_found(&resource.ty, name))?;
        let old = entry.value.value();
        options.check(resource, &old, name)?;
        let marked = mark(core, resource, &old, options)?;
        if options.dry {
            return Ok(Deleted::Gone(entry.value));
        }
        let written = match &marked {
            Some(object) => {
                let draft = Draft::new(object, resource)?;
                if entry.value.same_content(&draft) {
                    return Ok(Deleted::Waits(entry.value));
                }
                let make = |revision: u64| draft.at(revision);
                core.storage.put(&key, Expected::Revision(entry.revision), &make).await
            }
            None => {
                let last_state = last_state(core, resource, &entry.value, &old)?;
                let last = |revision: u64| last_state.at(revision);
                core.storage.delete(&key, entry.revision, &last).await
            }
        };
        match written {
            Ok(written) if marked.is_none() => {
                Box::pin(core.object_gone(resource, namespace)).await?;
                return Ok(Deleted::Gone(written.value));
            }
            Ok(written) => {
                Box::pin(core.object_marked(resource, &written.value)).await?;
                return Ok(Deleted::Waits(written.value));
            }
            Err(WriteError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(modified(&resource.ty, name))
}

/// The object with its marks of deletion, if it has to stay for now.
fn mark(
    core: &Core,
    resource: &Resource,
    old: &Object,
    options: &Options,
) -> Outcome<Option<Object>> {
    let grace = grace(resource, old, options);
    let mut object = old.clone();
    set_propagation(&mut object, &options.propagation)?;
    let waits_for_content = resource.is("", "namespaces") && {
        let finalizers = object.get("spec").and_then(|spec| spec.get("finalizers"));
        finalizers.and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    if grace == 0 && finalizers(&object).is_empty() && !waits_for_content {
        return Ok(None);
    }
    let terminating = is_terminating(old);
    let before = old["metadata"].get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    // A grace can only be shortened.
    if !terminating || before.is_some_and(|before| grace < before) {
        set_marks(core, &mut object, grace, !terminating)?;
    }
    if waits_for_content && let Some(Value::Object(status)) = object.get_mut("status") {
        status.insert("phase".to_owned(), "Terminating".into());
    }
    Ok(Some(object))
}

/// What watchers see last. A pod that goes at once carries the marks of its deletion all the same.
fn last_state(core: &Core, resource: &Resource, item: &Item, old: &Object) -> Outcome<Item> {
    if !resource.is("", "pods") || is_terminating(old) {
        return Ok(item.clone());
    }
    let mut object = old.clone();
    set_marks(core, &mut object, 0, true)?;
    Ok(Draft::new(&object, resource)?.at(item.revision))
}

fn set_marks(core: &Core, object: &mut Object, grace: i64, first: bool) -> Outcome<()> {
    let metadata = metadata_mut(object)?;
    let at = metadata::after(&*core.world, grace);
    metadata.insert("deletionTimestamp".to_owned(), at.into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
    if first && let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
        metadata.insert("generation".to_owned(), (generation + 1).into());
    }
    Ok(())
}

/// Only pods on a node that still run have a grace.
fn grace(resource: &Resource, object: &Object, options: &Options) -> i64 {
    if !resource.is("", "pods") {
        return 0;
    }
    let text = |part: &str, field: &str| {
        object.get(part).and_then(|part| part.get(field)?.as_str()).unwrap_or_default()
    };
    let over = matches!(text("status", "phase"), "Succeeded" | "Failed");
    if text("spec", "nodeName").is_empty() || over {
        return 0;
    }
    let own =
        object.get("spec").and_then(|spec| spec.get("terminationGracePeriodSeconds")?.as_i64());
    options.grace.or(own).unwrap_or(30).max(0)
}

/// Sets the finalizers of the garbage collector, by the policy.
fn set_propagation(object: &mut Object, policy: &str) -> Outcome<()> {
    let finalizer = match policy {
        "Orphan" => Some(ORPHAN),
        "Foreground" => Some(FOREGROUND),
        "Background" => None,
        _ => return Ok(()),
    };
    let mut list: Vec<Value> = finalizers(object)
        .into_iter()
        .filter(|name| !matches!(*name, ORPHAN | FOREGROUND))
        .map(Value::from)
        .collect();
    list.extend(finalizer.map(Value::from));
    let metadata = metadata_mut(object)?;
    if list.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), list.into());
    }
    Ok(())
}

/// Kinds whose delete answers with the object (`ReturnDeletedObject`).
fn returns_object(resource: &Resource) -> bool {
    if !resource.info.builtin {
        return false;
    }
    match (&*resource.ty.group, &*resource.ty.plural) {
        ("", plural) => matches!(
            plural,
            "pods"
                | "services"
                | "namespaces"
                | "serviceaccounts"
                | "persistentvolumes"
                | "persistentvolumeclaims"
                | "resourcequotas"
                | "podtemplates"
        ),
        ("storage.k8s.io", plural) => matches!(
            plural,
            "storageclasses"
                | "csidrivers"
                | "csinodes"
                | "volumeattachments"
                | "volumeattributesclasses"
        ),
        ("resource.k8s.io", _) => true,
        _ => false,
    }
}

fn success(call: &Call<'_>, item: &Item) -> Answer {
    let resource = &call.resource;
    let details = StatusDetails {
        name: item.key.name().to_owned(),
        group: resource.ty.group.to_string(),
        kind: resource.ty.plural.to_string(),
        uid: meta_text(&item.value(), "uid").to_owned(),
        ..StatusDetails::default()
    };
    let status =
        Status { status: "Success".to_owned(), details: Some(details), ..Status::default() };
    answer::status(&status, call.media.format)
}
