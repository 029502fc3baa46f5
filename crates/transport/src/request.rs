//! From a typed request to HTTP: path, query, headers, body.

mod query;

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method, Uri};
use kubestrata_api_types::{
    ApiRequest, FieldValidation, ListOptions, Operation, PatchKind, ResourceVersion, Verb,
    VersionMatch, WatchOptions, WriteOptions,
};
use kubestrata_codec::{accept_header, content_type, delete_options_body};

use self::query::Query;
use crate::config::Config;
use crate::error::TransportError;
use crate::wire::{Call, HttpRequest, Purpose, RequestBody};

/// Makes the request. `compressed` asks for gzip, where that can help: lists and streaming lists.
pub(crate) fn to_http(
    request: &ApiRequest,
    config: &Config,
    compressed: bool,
    call: Call,
) -> Result<HttpRequest, TransportError> {
    if let Operation::DeleteCollection { list: ListOptions { shard: Some(_), .. }, .. } =
        &request.operation
    {
        // A server that does not know shards would delete everything.
        return Err(invalid("a shard cannot be deleted"));
    }
    let mut query = Query::default();
    let (method, body) = operation(&request.operation, &mut query);
    let uri = join(&config.server, &path(request)?, query)?;
    let accept = HeaderValue::from_str(&accept_header(request, &config.negotiation))
        .map_err(|_| invalid("the Accept header cannot be written"))?;
    let mut http =
        http::Request::builder().method(method).uri(uri).header(ACCEPT, accept).extension(call);
    if compressed && compressible(request) {
        http = http.header(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let mut bytes = Bytes::new();
    if let Some((content_type, body)) = body {
        http = http.header(CONTENT_TYPE, HeaderValue::from_static(content_type));
        bytes = body;
    }
    http.body(RequestBody::new(bytes)).map_err(|error| invalid(&error.to_string()))
}

/// A plain GET of a path, which must start with a slash and may have a query.
pub(crate) fn raw_get(path: &str, server: &Uri, call: Call) -> Result<HttpRequest, TransportError> {
    if !path.starts_with('/') {
        return Err(invalid("the path does not start with a slash"));
    }
    let uri = join(server, path, Query::default())?;
    http::Request::builder()
        .method(Method::GET)
        .uri(uri)
        .header(ACCEPT, HeaderValue::from_static("application/json, */*"))
        .extension(call)
        .body(RequestBody::default())
        .map_err(|error| invalid(&error.to_string()))
}

fn invalid(problem: &str) -> TransportError {
    TransportError::Request { problem: problem.to_owned() }
}

pub(crate) fn purpose(request: &ApiRequest) -> Purpose {
    match request.operation {
        Operation::Get { .. } | Operation::List(_) => Purpose::Read,
        Operation::Watch(_) => Purpose::Watch,
        _ => Purpose::Write,
    }
}

/// kube-apiserver compresses lists above 128 KiB and, since KEP-3157, streaming lists; nothing else is worth asking.
fn compressible(request: &ApiRequest) -> bool {
    match &request.operation {
        Operation::List(_) => true,
        Operation::Watch(options) => options.send_initial_events == Some(true),
        _ => false,
    }
}

/// `/api/v1/namespaces/a/pods/b/status`, or `/apis/GROUP/VERSION/…`.
fn path(request: &ApiRequest) -> Result<String, TransportError> {
    let collection = &request.collection;
    let resource = &collection.resource;
    let mut path = String::with_capacity(96);
    if resource.group.is_empty() {
        path.push_str("/api");
    } else {
        path.push_str("/apis");
        segment(&mut path, &resource.group, "group")?;
    }
    segment(&mut path, &resource.version, "version")?;
    match &collection.namespace {
        Some(_) if !resource.is_namespaced() => {
            return Err(invalid(&format!(
                "{resource} is cluster-scoped, and a namespace is given"
            )));
        }
        Some(namespace) => {
            path.push_str("/namespaces");
            segment(&mut path, namespace, "namespace")?;
        }
        None if resource.is_namespaced() && needs_namespace(request.verb()) => {
            return Err(invalid(&format!(
                "{resource} is namespaced, and {} needs a namespace",
                request.verb()
            )));
        }
        None => {}
    }
    segment(&mut path, &resource.plural, "resource")?;
    if let Some(name) = request.name() {
        segment(&mut path, name, "name")?;
    }
    if let Some(subresource) = &request.subresource {
        if request.name().is_none() {
            return Err(invalid("a subresource needs the name of an object"));
        }
        // Some subresources have paths of their own, as in `proxy/metrics`.
        for part in subresource.split('/') {
            segment(&mut path, part, "subresource")?;
        }
    }
    Ok(path)
}

fn needs_namespace(verb: Verb) -> bool {
    !matches!(verb, Verb::List | Verb::Watch)
}

/// One segment. What would change the path's shape is refused, as by client-go's `IsValidPathSegmentName`.
fn segment(path: &mut String, text: &str, what: &str) -> Result<(), TransportError> {
    if text.is_empty() {
        return Err(invalid(&format!("the {what} is empty")));
    }
    if matches!(text, "." | "..") || text.contains(['/', '%']) {
        return Err(invalid(&format!("the {what} {text:?} cannot stand in a path")));
    }
    path.push('/');
    query::escape(text, path);
    Ok(())
}

fn join(server: &Uri, path: &str, query: Query) -> Result<Uri, TransportError> {
    let base = server.path().trim_end_matches('/');
    let mut parts = server.clone().into_parts();
    let text = format!("{base}{path}{query}");
    parts.path_and_query =
        Some(text.parse().map_err(|_| invalid("the path cannot be written as a URL"))?);
    Uri::from_parts(parts).map_err(|_| invalid("the path cannot be written as a URL"))
}

type TypedBody = (&'static str, Bytes);

/// Method and body; fills the query.
fn operation(operation: &Operation, query: &mut Query) -> (Method, Option<TypedBody>) {
    match operation {
        Operation::Get { options, .. } => {
            version(query, &options.resource_version);
            (Method::GET, None)
        }
        Operation::List(options) => {
            list(query, options);
            (Method::GET, None)
        }
        Operation::Watch(options) => {
            watch(query, options);
            (Method::GET, None)
        }
        Operation::Create { body, options, .. } => {
            write(query, options);
            (Method::POST, Some((content_type(body.format), body.bytes.clone())))
        }
        Operation::Update { body, options, .. } => {
            write(query, options);
            (Method::PUT, Some((content_type(body.format), body.bytes.clone())))
        }
        Operation::Patch { kind, body, options, .. } => {
            write(query, options);
            if *kind == PatchKind::Apply && options.force {
                query.add("force", "true");
            }
            (Method::PATCH, Some((patch_type(*kind), body.clone())))
        }
        Operation::Delete { options, .. } => {
            let body = delete_options_body(options);
            (Method::DELETE, body.map(|body| (content_type(body.format), body.bytes)))
        }
        Operation::DeleteCollection { list: which, options } => {
            list(query, which);
            let body = delete_options_body(options);
            (Method::DELETE, body.map(|body| (content_type(body.format), body.bytes)))
        }
    }
}

fn patch_type(kind: PatchKind) -> &'static str {
    match kind {
        PatchKind::Json => "application/json-patch+json",
        PatchKind::Merge => "application/merge-patch+json",
        PatchKind::Strategic => "application/strategic-merge-patch+json",
        PatchKind::Apply => "application/apply-patch+yaml",
    }
}

fn version(query: &mut Query, version: &ResourceVersion) {
    if !version.is_unset() {
        query.add("resourceVersion", &version.to_string());
    }
}

fn version_match(query: &mut Query, version_match: Option<VersionMatch>) {
    if let Some(version_match) = version_match {
        query.add(
            "resourceVersionMatch",
            match version_match {
                VersionMatch::NotOlderThan => "NotOlderThan",
                VersionMatch::Exact => "Exact",
            },
        );
    }
}

fn list(query: &mut Query, options: &ListOptions) {
    if !options.labels.is_empty() {
        query.add("labelSelector", &options.labels.to_string());
    }
    if !options.fields.is_empty() {
        query.add("fieldSelector", &options.fields.to_string());
    }
    if let Some(shard) = &options.shard {
        query.add("shardSelector", &shard.to_string());
    }
    version(query, &options.resource_version);
    version_match(query, options.version_match);
    if let Some(limit) = options.limit {
        query.add("limit", &limit.to_string());
    }
    if let Some(token) = &options.continue_token {
        query.add("continue", token);
    }
}

fn watch(query: &mut Query, options: &WatchOptions) {
    query.add("watch", "true");
    if options.allow_bookmarks {
        query.add("allowWatchBookmarks", "true");
    }
    if !options.labels.is_empty() {
        query.add("labelSelector", &options.labels.to_string());
    }
    if !options.fields.is_empty() {
        query.add("fieldSelector", &options.fields.to_string());
    }
    if let Some(shard) = &options.shard {
        query.add("shardSelector", &shard.to_string());
    }
    version(query, &options.resource_version);
    version_match(query, options.version_match);
    if let Some(initial) = options.send_initial_events {
        query.add("sendInitialEvents", if initial { "true" } else { "false" });
    }
    if let Some(timeout) = options.timeout {
        query.add("timeoutSeconds", &whole_seconds(timeout).to_string());
    }
}

/// Rounded up: a fraction must not become 0, which means the server's own choice.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

fn write(query: &mut Query, options: &WriteOptions) {
    if let Some(manager) = &options.field_manager {
        query.add("fieldManager", manager);
    }
    if options.dry_run {
        query.add("dryRun", "All");
    }
    if let Some(validation) = options.field_validation {
        query.add(
            "fieldValidation",
            match validation {
                FieldValidation::Ignore => "Ignore",
                FieldValidation::Warn => "Warn",
                FieldValidation::Strict => "Strict",
            },
        );
    }
}
