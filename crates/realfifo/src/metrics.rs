//! What a queue reports.

use kubestrata_telemetry::{Descriptor, Gauge, Histogram, Labels, Provider};

/// Bounds of the latency buckets, in seconds; client-go's.
const LATENCY_BUCKETS: &[f64] =
    &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

const QUEUED_ITEMS: Descriptor = Descriptor {
    name: "informer_queued_items",
    help: "Changes that wait in the queue; a whole state counts its objects.",
};
const QUEUED_BYTES: Descriptor =
    Descriptor { name: "informer_queued_bytes", help: "Weight of the changes that wait." };
const PROCESSING_LATENCY: Descriptor = Descriptor {
    name: "informer_processing_latency_seconds",
    help: "Time to apply one batch and tell the handlers.",
};

/// Metrics of one queue (KEP-4346). The default records nothing.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(crate) queued_items: Gauge,
    pub(crate) queued_bytes: Gauge,
    pub(crate) processing_latency: Histogram,
}

impl Metrics {
    /// Metrics `informer_queued_items`, `informer_queued_bytes` and `informer_processing_latency_seconds`.
    ///
    /// client-go's labels are `name`, `group`, `version` and `resource`.
    pub fn new(provider: &dyn Provider, labels: Labels<'_>) -> Self {
        Self {
            queued_items: provider.gauge(QUEUED_ITEMS, labels),
            queued_bytes: provider.gauge(QUEUED_BYTES, labels),
            processing_latency: provider.histogram(PROCESSING_LATENCY, labels, LATENCY_BUCKETS),
        }
    }
}
