//! Whole exchanges: over a service in the same process with a paused clock, and over sockets on loopback.

mod clock;
mod server;

mod cancel;
mod certificates;
mod credentials;
mod deadlines;
mod exchange;
mod failures;
mod farewell;
mod names;
mod places;
mod plugins;
mod proxies;
mod rotation;
mod sockets;
mod unpolled;

use kubestrata_api_types::{ApiRequest, Collection, Operation, ResourceType, Scope};

/// Pods of namespace `d`.
pub(crate) fn pods() -> Collection {
    Collection::new(ResourceType::from_static("", "v1", "Pod", "pods", Scope::Namespaced))
        .in_namespace("d")
}

pub(crate) fn get(name: &str) -> ApiRequest {
    let options = kubestrata_api_types::GetOptions::default();
    ApiRequest::new(pods(), Operation::Get { name: name.into(), options })
}

pub(crate) fn create() -> ApiRequest {
    let body = kubestrata_api_types::Payload::json(pod("a", 0));
    let options = kubestrata_api_types::WriteOptions::default();
    ApiRequest::new(pods(), Operation::Create { name: None, body, options })
}

/// A pod as JSON.
pub(crate) fn pod(name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"d","uid":"u-{name}","resourceVersion":"{version}"}}}}"#
    )
}

/// One frame of a watch.
pub(crate) fn frame(event: &str, object: &str) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
}
