//! Changes one object: read, change, compare, write, and again if another write came between.

use kubestrata_storage::{Expected, WriteError};
use serde_json::Value;

use crate::catalog::Resource;
use crate::failure::{self, Outcome, bad_request, modified, not_found};
use crate::record::{Draft, Item};
use crate::server::Core;
use crate::write::metadata::{self, Part};
use crate::write::{Object, finalizers, is_terminating, meta_text, metadata_mut};

/// The object that a change is about.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) core: &'a Core,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) part: Part,
    pub(crate) dry: bool,
}

impl<'a> Subject<'a> {
    /// A change by the server itself, of any part.
    pub(crate) fn whole(
        core: &'a Core,
        resource: &'a Resource,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Self {
        Self { core, resource, namespace, name, part: Part::Whole, dry: false }
    }

    pub(crate) fn key(&self) -> Outcome<String> {
        Ok(self.resource.store()?.key(self.namespace, self.name))
    }

    /// Changes the object. `wanted` gets the object as it is, without its type, and gives what it should be; it is asked
    /// again when another write came between and the wanted object does not name a version.
    ///
    /// What ends in the state that is there already is no write at all. Taking the last finalizer of an object that is
    /// being deleted deletes it.
    pub(crate) async fn change(
        &self,
        mut wanted: impl FnMut(&Object) -> Outcome<Object>,
    ) -> Outcome<Item> {
        let key = self.key()?;
        for _ in 0..=self.core.config.write_retries {
            let entry = self.core.storage.get(&key).await?;
            let entry = entry.ok_or_else(|| not_found(&self.resource.ty, self.name))?;
            let old = entry.value.value();
            let mut new = wanted(&old)?;
            identify(&mut new, self.namespace, self.name)?;
            let version = meta_text(&new, "resourceVersion");
            if !version.is_empty() && version != meta_text(&old, "resourceVersion") {
                return Err(modified(&self.resource.ty, self.name));
            }
            let new = metadata::for_update(self.resource, self.part, &old, new)?;
            let draft = Draft::new(&new, self.resource)?;
            let gone =
                is_terminating(&new) && finalizers(&new).is_empty() && self.may_go(&old, &new);
            if entry.value.same_content(&draft) && !gone {
                return Ok(entry.value);
            }
            if self.dry {
                return Ok(draft.at(entry.revision));
            }
            let make = |revision: u64| draft.at(revision);
            let written = if gone {
                self.core.storage.delete(&key, entry.revision, &make).await
            } else {
                self.core.storage.put(&key, Expected::Revision(entry.revision), &make).await
            };
            match written {
                Ok(entry) => {
                    if gone {
                        Box::pin(self.core.object_gone(self.resource, self.namespace)).await?;
                    }
                    return Ok(entry.value);
                }
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(modified(&self.resource.ty, self.name))
    }

    /// An object that is being deleted goes with its last finalizer, and a pod that still has its grace does not.
    fn may_go(&self, old: &Object, new: &Object) -> bool {
        let spec_finalizers = new.get("spec").and_then(|spec| spec.get("finalizers"));
        if self.resource.is("", "namespaces") {
            return spec_finalizers.and_then(Value::as_array).is_none_or(Vec::is_empty);
        }
        let grace = new["metadata"].get("deletionGracePeriodSeconds").and_then(Value::as_i64);
        grace.unwrap_or(0) == 0 || !finalizers(old).is_empty()
    }
}

/// Namespace and name must be those of the path. A namespace that is left out is filled in, and one that an object
/// cannot have is dropped (`EnsureObjectNamespaceMatchesRequestNamespace`).
pub(crate) fn identify(object: &mut Object, namespace: Option<&str>, name: &str) -> Outcome<()> {
    place(object, namespace)?;
    let given = meta_text(object, "name");
    if given.is_empty() {
        return Err(bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// The part of [`identify`] about the namespace.
pub(crate) fn place(object: &mut Object, namespace: Option<&str>) -> Outcome<()> {
    let metadata = metadata_mut(object)?;
    let Some(namespace) = namespace else {
        metadata.remove("namespace");
        return Ok(());
    };
    match metadata.get("namespace").and_then(Value::as_str) {
        None | Some("") => {
            metadata.insert("namespace".to_owned(), namespace.into());
            Ok(())
        }
        Some(given) if given == namespace => Ok(()),
        Some(_) => Err(bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// 422 for a PUT without a version, of a kind that wants one. The kind it names is the plural.
pub(crate) fn version_missing(resource: &Resource, name: &str) -> failure::Failure {
    let cause =
        failure::Cause::invalid("metadata.resourceVersion", "0", "must be specified for an update");
    failure::invalid(&resource.ty.group, &resource.ty.plural, name, &[cause])
}
