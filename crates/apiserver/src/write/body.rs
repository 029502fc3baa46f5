//! From the body of a request to an object.

use serde_json::Value;

use crate::catalog::Resource;
use crate::dispatch::Call;
use crate::failure::{Outcome, bad_request, unsupported_media};
use crate::write::Object;

const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The media type without its parameters.
pub(crate) fn mime(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Decodes the body of a create or an update of a resource.
pub(crate) fn object(call: &Call<'_>) -> Outcome<Object> {
    let mut object = any(call)?;
    check_type(&call.resource, &mut object)?;
    Ok(object)
}

/// Decodes a body of any kind.
pub(crate) fn any(call: &Call<'_>) -> Outcome<Object> {
    match mime(call.content_type()) {
        "" | "application/json" => json(&call.body),
        "application/yaml" => yaml(&call.body),
        _ => Err(unsupported_media(ACCEPTED)),
    }
}

/// Decodes JSON.
pub(crate) fn json(body: &[u8]) -> Outcome<Object> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| bad_request(format!("the object provided is unrecognized: {error}")))?;
    into_object(value)
}

/// Decodes YAML, of which JSON is a part.
pub(crate) fn yaml(body: &[u8]) -> Outcome<Object> {
    let text = std::str::from_utf8(body).map_err(|error| bad_request(error.to_string()))?;
    let value = serde_saphyr::from_str(text)
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
