//! How much is open, as metrics.

use kubestrata_telemetry::{Descriptor, Gauge, Histogram};

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

const RESOLVING: Descriptor = Descriptor {
    name: "rest_client_dns_resolution_duration_seconds",
    help: "Time until the name of the server, or of the proxy before it, has addresses, by host of the server.",
};
/// client-go's buckets.
const BUCKETS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0];

pub(super) fn resolving(config: &Config) -> Histogram {
    if !config.observe.resolver {
        return Histogram::noop();
    }
    config.metrics.histogram(RESOLVING, &[("host", host(config))], &BUCKETS)
}
