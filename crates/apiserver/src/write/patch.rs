//! Patch: JSON patch, merge patch, strategic merge patch.

mod bounds;
mod order;
mod strategic;

use serde_json::Value;

use crate::answer::Answer;
use crate::dispatch::{Call, not_allowed, not_implemented};
use crate::failure::{
    Cause, Failure, Outcome, bad_request, invalid, invalid_object, rejected_patch,
    unsupported_media, unsupported_patch,
};
use crate::record::canonical;
use crate::write::change::Subject;
use crate::write::update::part;
use crate::write::{Object, answer_object, body, dry_run, meta_text};

/// Operations of one JSON patch (kube-apiserver `maxJSONPatchOperations`).
const OPERATIONS_MAX: usize = 10_000;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    fn decode(call: &Call<'_>) -> Outcome<Self> {
        let parse = || {
            serde_json::from_slice::<Value>(&call.body)
                .map_err(|_| bad_request("invalid JSON patch"))
        };
        match body::mime(call.content_type()) {
            JSON => {
                let value = parse()?;
                let operations = value.as_array().map_or(0, Vec::len);
                if operations > OPERATIONS_MAX {
                    return Err(too_many(operations));
                }
                let patch = serde_json::from_value(value).map_err(|_| rejected_patch())?;
                Ok(Self::Json(patch))
            }
            MERGE => Ok(Self::Merge(map(parse()?)?)),
            STRATEGIC if call.resource.info.builtin => Ok(Self::Strategic(map(parse()?)?)),
            APPLY if call.resource.info.builtin => {
                Err(unsupported_media(&[JSON, MERGE, STRATEGIC].join(", ")))
            }
            APPLY | STRATEGIC => Err(unsupported_media(&[JSON, MERGE].join(", "))),
            _ => Err(unsupported_patch()),
        }
    }

    fn apply(&self, call: &Call<'_>, old: &Object) -> Outcome<Object> {
        let mut value = old.clone();
        value.insert("kind".to_owned(), (*call.resource.ty.kind).into());
        value.insert("apiVersion".to_owned(), (*call.resource.ty.api_version()).into());
        let mut value = Value::Object(value);
        let (before, limit) = (value.clone(), call.core.config.body_bytes);
        match self {
            Self::Json(patch) => bounds::apply(&mut value, patch, limit)?,
            Self::Merge(patch) => json_patch::merge(&mut value, patch),
            Self::Strategic(patch) => {
                let message = call.resource.message.ok_or_else(rejected_patch)?;
                strategic::merge(&mut value, patch, message)?;
            }
        }
        bounds::check(&value, &before, limit)?;
        let Value::Object(mut object) = value else { return Err(rejected_patch()) };
        body::check_type(&call.resource, &mut object)?;
        let (uid, wanted) = (meta_text(old, "uid"), meta_text(&object, "uid"));
        if !wanted.is_empty() && wanted != uid {
            let shown = format!("{wanted:?}");
            let cause = Cause::invalid("metadata.uid", &shown, "field is immutable");
            return Err(invalid_object(&call.resource.ty, meta_text(old, "name"), &[cause]));
        }
        // What a patch makes of an object that fits its schema is the patch's fault.
        canonical(&object, &call.resource).map_err(|failure| {
            let cause = Cause::invalid("patch", "\"\"", &failure.status().message);
            invalid("", "", "", &[cause])
        })?;
        Ok(object)
    }
}

/// A merge patch is a map.
fn map(value: Value) -> Outcome<Value> {
    let found = match value {
        Value::Object(_) => return Ok(value),
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    Err(bad_request(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
    )))
}

fn too_many(operations: usize) -> Failure {
    let message = format!(
        "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {operations}"
    );
    let reason = kubestrata_api_types::reason::REQUEST_ENTITY_TOO_LARGE;
    kubestrata_api_types::Status::failure(413, reason, message).into()
}

/// PATCH.
pub(crate) async fn patch(
    call: &Call<'_>,
    name: &str,
    subresource: Option<&str>,
) -> Outcome<Answer> {
    if !call.resource.has_verb("patch") {
        return Err(not_allowed());
    }
    let dry = dry_run(call, "PatchOptions")?;
    if call.query.flag("force").is_some() && body::mime(call.content_type()) != APPLY {
        let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
        return Err(invalid("meta.k8s.io", "PatchOptions", "", &[cause]));
    }
    let patch = Patch::decode(call)?;
    if subresource == Some("scale") {
        return super::subresource::patch_scale(call, name, &|scale| {
            let (Patch::Merge(patch) | Patch::Strategic(patch)) = &patch else {
                return Err(not_implemented());
            };
            json_patch::merge(scale, patch);
            Ok(())
        })
        .await;
    }
    let part = part(subresource).ok_or_else(not_implemented)?;
    let (core, resource, namespace) = (&**call.core, &*call.resource, call.namespace());
    let subject = Subject { core, resource, namespace, name, part, dry };
    let item = subject.change(|old| patch.apply(call, old)).await?;
    crate::crd::updated(call.core, resource, &item).await?;
    Ok(answer_object(call, &item, 200))
}
