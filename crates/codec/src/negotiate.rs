//! Which encodings are asked for, and which came.

use std::borrow::Cow;

use kubestrata_api_types::{
    Accept, ApiRequest, DeleteOptions, FieldPath, Format, Payload, Propagation, Representation,
    ResourceType, Verb,
};
use serde::Serialize;

use crate::schema;

/// The media type of JSON.
pub const JSON: &str = "application/json";

/// The media type of Kubernetes protobuf.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// What is known of a server, and wished of it, beyond one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Negotiation {
    /// The server's minor version, from `/version`, where it is known. [`Accept::Whole`] asks a server that may be newer
    /// than [`schema::MINOR`] for JSON.
    pub server_minor: Option<u32>,
    /// Ask the server to leave out `metadata.managedFields` where the collection prunes them anyway
    /// (`drop=metadata.managedFields`, KEP-5958). They are most of a plain object. A server that does not know the
    /// parameter ignores it.
    pub drop_managed_fields: bool,
}

impl Negotiation {
    /// Whether each field that the server may send is in the schema.
    fn knows_all(self) -> bool {
        self.server_minor.is_some_and(|minor| minor <= schema::MINOR)
    }
}

/// The `Accept` header of a request.
///
/// [`Accept::Auto`] gives `protobuf,json`, as client-go's generated clients send it, for the kinds that the schema
/// knows and for metadata of any kind; JSON alone for all others, whose server would answer 406. Metadata and tables are
/// asked for as client-go's metadata client and kubectl do; instead of metadata alone the whole object is taken too.
pub fn accept_header(request: &ApiRequest, negotiation: &Negotiation) -> Cow<'static, str> {
    let collection = &request.collection;
    let metadata = collection.representation == Representation::Metadata;
    let known = metadata || knows(&collection.resource);
    let formats: &[Format] = match collection.accept {
        _ if collection.representation == Representation::Table => &[Format::Json],
        Accept::Only(Format::Protobuf) => &[Format::Protobuf],
        Accept::Auto if known => &[Format::Protobuf, Format::Json],
        Accept::Whole if known && negotiation.knows_all() => &[Format::Protobuf, Format::Json],
        _ => &[Format::Json],
    };
    let many = matches!(request.verb(), Verb::List | Verb::DeleteCollection);
    let kind = match collection.representation {
        Representation::Metadata if many => Some("PartialObjectMetadataList"),
        Representation::Metadata => Some("PartialObjectMetadata"),
        Representation::Table => Some("Table"),
        _ => None,
    };
    let drop = negotiation.drop_managed_fields
        && request.verb().is_read()
        && collection.prune.contains(&FieldPath::managed_fields());
    if kind.is_none() && !drop {
        return Cow::Borrowed(match formats {
            [Format::Protobuf] => PROTOBUF,
            [Format::Protobuf, _] => "application/vnd.kubernetes.protobuf,application/json",
            _ => JSON,
        });
    }
    let drop = if drop { ";drop=metadata.managedFields" } else { "" };
    let mut header = String::new();
    for format in formats {
        let separator = if header.is_empty() { "" } else { "," };
        header.push_str(separator);
        header.push_str(content_type(*format));
        if let Some(kind) = kind {
            header.push_str(&format!(";as={kind};g=meta.k8s.io;v=v1"));
        }
        header.push_str(drop);
    }
    if metadata && formats.len() > 1 {
        header.push_str(&format!(",{JSON}{drop}"));
    }
    Cow::Owned(header)
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
