//! Subresources that are not a part of the object, and kinds that are only asked.

use kubestrata_api_types::Status;
use serde_json::{Value, json};

use crate::answer::{self, Answer};
use crate::dispatch::{Call, not_allowed, not_implemented};
use crate::failure::{Cause, Outcome, bad_request, conflict, invalid_object, not_found};
use crate::record::Item;
use crate::write::change::Subject;
use crate::write::delete::{Options, remove};
use crate::write::metadata::{Part, now};
use crate::write::{Object, body};

/// POST of a subresource.
pub(crate) async fn create_subresource(
    call: &Call<'_>,
    name: &str,
    subresource: &str,
) -> Outcome<Answer> {
    match subresource {
        "binding" => bind(call, name).await,
        "eviction" => evict(call, name).await,
        "status" | "scale" | "finalize" | "approval" => Err(not_allowed()),
        _ => Err(not_implemented()),
    }
}

fn created(call: &Call<'_>) -> Answer {
    let status = Status { status: "Success".to_owned(), code: 201, ..Status::default() };
    answer::status(&status, call.media.format)
}

/// Assigns a pod to a node, once.
async fn bind(call: &Call<'_>, name: &str) -> Outcome<Answer> {
    let binding = body::any(call)?;
    if super::meta_text(&binding, "name") != name {
        return Err(bad_request("name in URL does not match name in Binding object"));
    }
    let target = binding.get("target").and_then(|target| target.get("name")?.as_str());
    let node = target.filter(|node| !node.is_empty()).ok_or_else(|| {
        let cause = Cause::required("target.name", "");
        invalid_object(&call.resource.ty, name, &[cause])
    })?;
    let subject = subject(call, name);
    let at = now(&*call.core.world);
    subject
        .change(|old| {
            let taken = old.get("spec").and_then(|spec| spec.get("nodeName")?.as_str());
            if let Some(taken) = taken.filter(|taken| !taken.is_empty()) {
                let problem = format!("pod {name} is already assigned to node {taken:?}");
                return Err(conflict(&call.resource.ty, name, &problem));
            }
            let mut pod = old.clone();
            if let Value::Object(spec) = pod.entry("spec").or_insert_with(|| json!({})) {
                spec.insert("nodeName".to_owned(), node.into());
            }
            let condition =
                json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": at});
            if let Value::Object(status) = pod.entry("status").or_insert_with(|| json!({})) {
                let conditions = status.entry("conditions").or_insert_with(|| json!([]));
                if let Value::Array(conditions) = conditions {
                    conditions.retain(|condition| condition["type"] != "PodScheduled");
                    conditions.push(condition);
                }
            }
            Ok(pod)
        })
        .await?;
    Ok(created(call))
}

/// Deletes a pod; disruption budgets are not looked at.
async fn evict(call: &Call<'_>, name: &str) -> Outcome<Answer> {
    let (core, resource) = (&**call.core, &*call.resource);
    remove(core, resource, call.namespace(), name, &Options::default()).await?;
    Ok(created(call))
}

fn subject<'a>(call: &'a Call<'_>, name: &'a str) -> Subject<'a> {
    Subject::whole(call.core, &call.resource, call.namespace(), name)
}

// === scale ===

/// Where a kind keeps what `Scale` shows.
struct ScalePaths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

fn scale_paths(call: &Call<'_>) -> ScalePaths {
    let path = |text: &str| text.trim_start_matches('.').split('.').map(str::to_owned).collect();
    match &call.resource.info.scale {
        Some(scale) => ScalePaths {
            spec: path(&scale.spec),
            status: path(&scale.status),
            selector: scale.selector.as_deref().map(path),
        },
        None => ScalePaths {
            spec: path("spec.replicas"),
            status: path("status.replicas"),
            selector: Some(path("spec.selector")),
        },
    }
}

fn lookup<'a>(object: &'a Object, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(first)?, |value, field| value.get(field))
}

fn scale_of(call: &Call<'_>, item: &Item) -> Value {
    let object = item.value();
    let paths = scale_paths(call);
    let number = |path: &[String]| lookup(&object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut metadata = Object::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut status = json!({"replicas": number(&paths.status)});
    let selector = paths.selector.and_then(|path| lookup(&object, &path).map(selector_text));
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        status["selector"] = selector.into();
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": number(&paths.spec)},
        "status": status,
    })
}

/// A selector as text, from text, from labels or from a `LabelSelector`.
fn selector_text(selector: &Value) -> String {
    let labels = match selector {
        Value::String(text) => return text.clone(),
        Value::Object(map) => match map.get("matchLabels") {
            Some(labels) => labels.as_object(),
            None if map.contains_key("matchExpressions") => None,
            None => Some(map),
        },
        _ => None,
    };
    let mut terms: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array);
        let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        terms.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.join(",")
}

/// GET of a scale.
pub(crate) fn get_scale(call: &Call<'_>, item: &Item) -> Outcome<Answer> {
    Ok(answer::json(200, &scale_of(call, item)))
}

/// PUT of a scale.
pub(crate) async fn put_scale(call: &Call<'_>, name: &str) -> Outcome<Answer> {
    let wanted = body::any(call)?;
    set_scale(call, name, &|scale| {
        *scale = Value::Object(wanted.clone());
        Ok(())
    })
    .await
}

/// PATCH of a scale.
pub(crate) async fn patch_scale(
    call: &Call<'_>,
    name: &str,
    change: &(dyn Fn(&mut Value) -> Outcome<()> + Sync),
) -> Outcome<Answer> {
    set_scale(call, name, change).await
}

async fn set_scale(
    call: &Call<'_>,
    name: &str,
    change: &(dyn Fn(&mut Value) -> Outcome<()> + Sync),
) -> Outcome<Answer> {
    let store = call.resource.store()?;
    let key = store.key(call.namespace(), name);
    let entry = call.core.storage.get(&key).await?;
    let entry = entry.ok_or_else(|| not_found(&call.resource.ty, name))?;
    let mut scale = scale_of(call, &entry.value);
    change(&mut scale)?;
    let replicas = scale["spec"].get("replicas").and_then(Value::as_i64).unwrap_or(0);
    if replicas < 0 {
        let cause = Cause::invalid(
            "spec.replicas",
            &replicas.to_string(),
            "must be greater than or equal to 0",
        );
        return Err(invalid_object(&call.resource.ty, name, &[cause]));
    }
    let version = scale["metadata"].get("resourceVersion").and_then(Value::as_str);
    let version = version.unwrap_or_default().to_owned();
    let paths = scale_paths(call);
    let subject = Subject { part: Part::Main, ..subject(call, name) };
    let item = subject
        .change(|old| {
            let mut object = old.clone();
            let metadata = super::metadata_mut(&mut object)?;
            if version.is_empty() {
                metadata.remove("resourceVersion");
            } else {
                metadata.insert("resourceVersion".to_owned(), version.as_str().into());
            }
            set_path(&mut object, &paths.spec, replicas.into())?;
            Ok(object)
        })
        .await?;
    Ok(answer::json(200, &scale_of(call, &item)))
}

fn set_path(object: &mut Object, path: &[String], value: Value) -> Outcome<()> {
    match path {
        [] => Err(bad_request("the resource has no path of its replicas")),
        [last] => {
            object.insert(last.clone(), value);
            Ok(())
        }
        [first, rest @ ..] => match object.entry(first.clone()).or_insert_with(|| json!({})) {
            Value::Object(inner) => set_path(inner, rest, value),
            _ => Err(bad_request("the path of the replicas leads through no object")),
        },
    }
}

// === reviews ===

/// Answers a kind that is only asked. Everything is allowed, as to a member of `system:masters`.
pub(crate) fn review(call: &Call<'_>) -> Outcome<Answer> {
    let mut object = body::object(call)?;
    let user =
        json!({"username": "kubestrata", "groups": ["system:masters", "system:authenticated"]});
    let status = match &*call.resource.ty.kind {
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({"allowed": true, "reason": "the embedded server allows everything"})
        }
        "SelfSubjectReview" => json!({"userInfo": user}),
        "TokenReview" => json!({"authenticated": true, "user": user}),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => return Err(not_implemented()),
    };
    object.insert("status".to_owned(), status);
    object.insert("kind".to_owned(), (*call.resource.ty.kind).into());
    object.insert("apiVersion".to_owned(), (*call.resource.ty.api_version()).into());
    object.entry("metadata").or_insert_with(|| json!({}));
    Ok(answer::json(201, &Value::Object(object)))
}
