//! Update: PUT of an object or of its status.

use crate::answer::Answer;
use crate::dispatch::{Call, not_allowed, not_implemented};
use crate::failure::{Outcome, not_found};
use crate::write::change::{Subject, identify, version_missing};
use crate::write::metadata::{self, Part};
use crate::write::{answer_object, body, dry_run, meta_text};

/// Which part of the object a subresource writes.
pub(crate) fn part(subresource: Option<&str>) -> Option<Part> {
    match subresource {
        None => Some(Part::Main),
        Some("status") => Some(Part::Status),
        Some("finalize") => Some(Part::Finalize),
        Some("ephemeralcontainers" | "resize" | "approval") => Some(Part::Whole),
        Some(_) => None,
    }
}

/// PUT.
pub(crate) async fn update(
    call: &Call<'_>,
    name: &str,
    subresource: Option<&str>,
) -> Outcome<Answer> {
    if !call.resource.has_verb("update") {
        return Err(not_allowed());
    }
    if subresource == Some("scale") {
        return super::subresource::put_scale(call, name).await;
    }
    let part = part(subresource).ok_or_else(not_implemented)?;
    let dry = dry_run(call, "UpdateOptions")?;
    let mut object = body::object(call)?;
    identify(&mut object, call.namespace(), name)?;
    let (core, resource, namespace) = (&**call.core, &*call.resource, call.namespace());
    let subject = Subject { core, resource, namespace, name, part, dry };
    let present = core.storage.get(&subject.key()?).await?.is_some();
    if !present {
        if part != Part::Main || !metadata::creates_on_update(resource) {
            return Err(not_found(&resource.ty, name));
        }
        metadata::check_uid(resource, &subject.key()?, name, &object, "")?;
        super::metadata_mut(&mut object)?.remove("resourceVersion");
        let item = super::insert(core, resource, namespace, object, dry).await?;
        return Ok(answer_object(call, &item, 201));
    }
    let unversioned = meta_text(&object, "resourceVersion").is_empty();
    if unversioned && metadata::needs_version(resource) {
        return Err(version_missing(resource, name));
    }
    let item = subject.change(|_| Ok(object.clone())).await?;
    crate::crd::updated(call.core, resource, &item).await?;
    Ok(answer_object(call, &item, 200))
}
