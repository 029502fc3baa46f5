//! Which encodings are asked for, and which came.

use std::borrow::Cow;

use kubestrata_api_types::{
    Accept, ApiRequest, DeleteOptions, Format, Payload, Propagation, Representation, ResourceType,
    Verb,
};
use serde::Serialize;

use crate::schema;

/// The media type of JSON.
pub const JSON: &str = "application/json";

/// The media type of Kubernetes protobuf.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The `Accept` header of a request.
///
/// [`Accept::Auto`] gives `protobuf,json`, as client-go's generated clients send it, for the kinds that the schema
/// knows and for metadata of any kind; JSON alone for all others, whose server would answer 406.
pub fn accept_header(request: &ApiRequest) -> Cow<'static, str> {
    let collection = &request.collection;
    let metadata = collection.representation == Representation::Metadata;
    let formats: &[Format] = match collection.accept {
        Accept::Only(Format::Protobuf) => &[Format::Protobuf],
        Accept::Auto if metadata || knows(&collection.resource) => {
            &[Format::Protobuf, Format::Json]
        }
        _ => &[Format::Json],
    };
    if !metadata {
        return Cow::Borrowed(match formats {
            [Format::Protobuf] => PROTOBUF,
            [Format::Protobuf, _] => "application/vnd.kubernetes.protobuf,application/json",
            _ => JSON,
        });
    }
    let kind = match request.verb() {
        Verb::List | Verb::DeleteCollection => "PartialObjectMetadataList",
        _ => "PartialObjectMetadata",
    };
    let parts: Vec<String> = formats
        .iter()
        .map(|format| format!("{};as={kind};g=meta.k8s.io;v=v1", content_type(*format)))
        .collect();
    Cow::Owned(parts.join(","))
}

/// Whether objects of this kind can be read and written as protobuf.
pub(crate) fn knows(resource: &ResourceType) -> bool {
    schema::resource(resource).is_some()
}

/// The `Content-Type` of a body in this format.
pub fn content_type(format: Format) -> &'static str {
    match format {
        Format::Json => JSON,
        Format::Protobuf => PROTOBUF,
    }
}

/// The format that a `Content-Type` header names, whatever its parameters; `None` for any other than the two.
pub fn format_of(content_type: &str) -> Option<Format> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case(JSON) {
        Some(Format::Json)
    } else if media_type.eq_ignore_ascii_case(PROTOBUF) {
        Some(Format::Protobuf)
    } else {
        None
    }
}

/// The body of a delete or delete-collection: `DeleteOptions` as JSON, or `None` where all options are the defaults.
pub fn delete_options_body(options: &DeleteOptions) -> Option<Payload> {
    if *options == DeleteOptions::default() {
        return None;
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        kind: &'static str,
        api_version: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        grace_period_seconds: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        preconditions: Option<Conditions<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        propagation_policy: Option<&'static str>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        dry_run: &'static [&'static str],
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Conditions<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        uid: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        resource_version: Option<String>,
    }
    let conditions = &options.preconditions;
    let body = Body {
        kind: "DeleteOptions",
        api_version: "v1",
        grace_period_seconds: options.grace_period_seconds,
        preconditions: (conditions.uid.is_some() || conditions.resource_version.is_some()).then(
            || Conditions {
                uid: conditions.uid.as_deref(),
                resource_version: conditions.resource_version.as_ref().map(ToString::to_string),
            },
        ),
        propagation_policy: options.propagation.map(|policy| match policy {
            Propagation::Orphan => "Orphan",
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        }),
        dry_run: if options.dry_run { &["All"] } else { &[] },
    };
    let bytes = serde_json::to_vec(&body).expect("strings and numbers serialize");
    Some(Payload::json(bytes))
}
