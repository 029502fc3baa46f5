//! From the body of a request to an object.

use http::Method;
use kubestrata_codec::{PROTOBUF, envelope, proto, schema, transcode};
use serde_json::Value;

use crate::catalog::Resource;
use crate::dispatch::Call;
use crate::failure::{Cause, Outcome, bad_request, invalid, unsupported_media};
use crate::write::Object;

const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// What the aliases of a YAML document may stand for, in parser events: enough for files that people write.
const ALIASED_NODES_MAX: usize = 10_000;

/// The media type without its parameters.
pub(crate) fn mime(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Decodes the body of a create or an update of a resource.
pub(crate) fn object(call: &Call<'_>) -> Outcome<Object> {
    validate_fields(call)?;
    let mut object = any(call)?;
    check_type(&call.resource, &mut object)?;
    Ok(object)
}

/// Decodes a body of any kind.
pub(crate) fn any(call: &Call<'_>) -> Outcome<Object> {
    match mime(call.content_type()) {
        "" | "application/json" => json(&call.body),
        "application/yaml" => yaml(&call.body, call.core.config.body_bytes),
        PROTOBUF => protobuf(call),
        _ => Err(unsupported_media(ACCEPTED)),
    }
}

/// Decodes protobuf. The envelope names the kind, which need not be the resource's.
fn protobuf(call: &Call<'_>) -> Outcome<Object> {
    let problem = |problem: &dyn std::fmt::Display| {
        bad_request(format!("the object provided is unrecognized: {problem}"))
    };
    let envelope = envelope::open(&call.body).map_err(|error| problem(&error))?;
    let (api_version, kind) = (envelope.api_version, envelope.kind);
    let message =
        if kind.is_empty() { call.resource.message } else { schema::kind_of(api_version, kind) };
    let message =
        message.ok_or_else(|| problem(&format_args!("no kind {kind:?} in {api_version:?}")))?;
    let options = if kind.is_empty() {
        proto::Options::default()
    } else {
        proto::Options::of(api_version, kind)
    };
    let mut text = Vec::new();
    transcode::to_json(envelope.message, message, &options, &mut text)
        .map_err(|error| problem(&error))?;
    json(&text)
}

/// What the client wants to happen with fields that the schema lacks (`fieldValidation`; the default is to warn).
fn validate_fields(call: &Call<'_>) -> Outcome<()> {
    let strict = match call.query.text("fieldValidation") {
        "" | "Warn" => false,
        "Strict" => true,
        "Ignore" => return Ok(()),
        other => {
            let supported = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
            let cause = Cause::unsupported("fieldValidation", other, supported);
            let kind =
                if call.parts.method == Method::POST { "CreateOptions" } else { "UpdateOptions" };
            return Err(invalid("meta.k8s.io", kind, "", &[cause]));
        }
    };
    let (Some(message), "" | "application/json") =
        (call.resource.message, mime(call.content_type()))
    else {
        return Ok(());
    };
    // What is wrong with the text is said by those who decode it.
    let Ok(notes) = transcode::to_protobuf(&call.body, message, &mut Vec::new()) else {
        return Ok(());
    };
    let unknown = notes.unknown.iter().map(|path| format!("unknown field {path:?}"));
    let duplicate = notes.duplicate.iter().map(|path| format!("duplicate field {path:?}"));
    let problems: Vec<String> = unknown.chain(duplicate).collect();
    if problems.is_empty() {
        return Ok(());
    }
    if strict {
        let (kind, version) = (&call.resource.ty.kind, &call.resource.ty.version);
        return Err(bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
            problems.join(", ")
        )));
    }
    call.warnings.lock().extend(problems);
    Ok(())
}

/// Decodes JSON.
pub(crate) fn json(body: &[u8]) -> Outcome<Object> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| bad_request(format!("the object provided is unrecognized: {error}")))?;
    into_object(value)
}

/// Decodes YAML, of which JSON is a part. With its aliases written out it is no larger than a body may be.
fn yaml(body: &[u8], limit: usize) -> Outcome<Object> {
    let text = std::str::from_utf8(body).map_err(|error| bad_request(error.to_string()))?;
    let mut options = serde_saphyr::Options::default();
    options.alias_limits.max_total_replayed_events = ALIASED_NODES_MAX;
    options.with_snippet = false;
    if let Some(budget) = &mut options.budget {
        budget.max_total_scalar_bytes = limit;
    }
    let value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| bad_request(format!("error converting YAML to JSON: {error}")))?;
    into_object(value)
}

fn into_object(value: Value) -> Outcome<Object> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(bad_request("the object provided is unrecognized: it is no JSON object")),
    }
}

/// Type fields may be absent; where they are there, they must be the endpoint's. They are taken out: what is stored has none.
pub(crate) fn check_type(resource: &Resource, object: &mut Object) -> Outcome<()> {
    let take = |object: &mut Object, field: &str| match object.remove(field) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (kind, api_version) = (take(object, "kind"), take(object, "apiVersion"));
    let want = resource.ty.api_version();
    // Only a kind with a Rust, or Go, type of its own can be told by the endpoint alone.
    let missing = [(&kind, "Kind"), (&api_version, "apiVersion")];
    if let Some((_, field)) = missing.iter().find(|(text, _)| text.is_empty())
        && !resource.info.builtin
    {
        return Err(bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object '{field}' is missing",
            resource.ty.kind
        )));
    }
    if !api_version.is_empty() && api_version != want {
        return Err(bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({want})"
        )));
    }
    if !kind.is_empty() && kind != resource.ty.kind {
        return Err(bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: the kind in the data ({kind}) does not match",
            resource.ty.kind, resource.ty.version, resource.ty.kind
        )));
    }
    Ok(())
}
