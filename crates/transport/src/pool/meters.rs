//! How much is open, as metrics.

use kubestrata_telemetry::{Descriptor, Gauge};

use crate::config::Config;

const CONNECTIONS: Descriptor = Descriptor {
    name: "rest_client_open_connections",
    help: "Open connections to the server, by host.",
};
const STREAMS: Descriptor = Descriptor {
    name: "rest_client_open_streams",
    help: "Requests and watches whose answers are not read to the end, by kind and host.",
};

fn host(config: &Config) -> &str {
    config.server.authority().map_or("", |authority| authority.as_str())
}

pub(super) fn connections(config: &Config) -> Gauge {
    config.metrics.gauge(CONNECTIONS, &[("host", host(config))])
}

/// `kind` is `request` or `watch`.
pub(super) fn streams(config: &Config, kind: &'static str) -> Gauge {
    config.metrics.gauge(STREAMS, &[("kind", kind), ("host", host(config))])
}
