//! The life of namespaces: there from the start, emptied and removed on deletion.
//!
//! kube-apiserver leaves the second half to a controller; here it is done within the request, so that a test need not
//! wait for it. What keeps objects by finalizers keeps the namespace, in phase Terminating, until they are gone.

use std::sync::Arc;

use kubestrata_storage::{Range, WriteError};
use serde_json::Value;

use crate::catalog::Resource;
use crate::failure::{Failure, Outcome, no_resource};
use crate::record::{Draft, Item};
use crate::server::Core;
use crate::write::{self, DeleteOptions};

impl Core {
    /// The resource of namespaces.
    pub(crate) fn namespaces(&self) -> Outcome<Arc<Resource>> {
        self.catalog.find("", "v1", "namespaces").ok_or_else(no_resource)
    }

    /// Makes the first namespaces.
    pub(crate) async fn make_namespaces(&self, names: &[String]) -> Outcome<()> {
        let resource = self.namespaces()?;
        for name in names {
            let object = serde_json::json!({"metadata": {"name": name}});
            let Value::Object(object) = object else { continue };
            write::insert(self, &resource, None, object, false).await?;
        }
        Ok(())
    }

    /// An object has been marked for deletion and stays for now.
    pub(crate) async fn object_marked(&self, resource: &Resource, item: &Item) -> Outcome<()> {
        if resource.is("", "namespaces") {
            self.empty_namespace(item.key.name()).await?;
            return self.finish_namespace(item.key.name()).await;
        }
        crate::crd::marked(self, resource, item).await
    }

    /// An object is gone; it may be what a namespace or a definition has waited for.
    pub(crate) async fn object_gone(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
    ) -> Outcome<()> {
        if let Some(namespace) = namespace {
            self.finish_namespace(namespace).await?;
        }
        crate::crd::instance_gone(self, resource).await
    }

    /// Deletes everything in a namespace.
    async fn empty_namespace(&self, namespace: &str) -> Outcome<()> {
        for resource in self.catalog.all() {
            let (true, Some(store)) = (resource.ty.is_namespaced(), &resource.store) else {
                continue;
            };
            let scope = store.scope(Some(namespace));
            let page = self.storage.range(Range::prefix(&scope)).await?;
            let options = DeleteOptions::now();
            for entry in page.items {
                let name = entry.value.key.name();
                let removed = write::remove(self, &resource, Some(namespace), name, &options).await;
                ignore_missing(removed)?;
            }
        }
        Ok(())
    }

    /// Removes a namespace that is being deleted and has nothing in it any more.
    async fn finish_namespace(&self, name: &str) -> Outcome<()> {
        let resource = self.namespaces()?;
        let key = resource.store()?.key(None, name);
        loop {
            let Some(entry) = self.storage.get(&key).await? else { return Ok(()) };
            let mut object = entry.value.value();
            if !write::is_terminating(&object) || !self.is_empty(name).await? {
                return Ok(());
            }
            if let Some(Value::Object(spec)) = object.get_mut("spec") {
                spec.remove("finalizers");
            }
            if !write::finalizers(&object).is_empty() {
                return Ok(());
            }
            let draft = Draft::new(&object, &resource)?;
            let last = |revision: u64| draft.at(revision);
            match self.storage.delete(&key, entry.revision, &last).await {
                Ok(_) => return Ok(()),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn is_empty(&self, namespace: &str) -> Outcome<bool> {
        for resource in self.catalog.all() {
            let (true, Some(store)) = (resource.ty.is_namespaced(), &resource.store) else {
                continue;
            };
            let scope = store.scope(Some(namespace));
            if self.storage.range(Range::prefix(&scope).limit(1)).await?.count > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What somebody else has removed meanwhile is removed.
pub(crate) fn ignore_missing<T>(outcome: Outcome<T>) -> Outcome<()> {
    match outcome {
        Err(Failure::Status(status)) if status.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}
