//! What an informer reports, beside what its reflector and queue do.

use std::sync::Arc;

use kubestrata_api_types::{Collection, ResourceVersion};
use kubestrata_store_index::Usage;
use kubestrata_telemetry::{Counter, Descriptor, Gauge, Provider};

const STORE_VERSION: Descriptor = Descriptor {
    name: "informer_store_resource_version",
    help: "Last 15 decimal digits of the store's resource version.",
};
const STORE_OBJECTS: Descriptor =
    Descriptor { name: "informer_store_objects", help: "Objects in the store." };
const STORE_BYTES: Descriptor =
    Descriptor { name: "informer_store_bytes", help: "Bytes of the store, by part." };
const UNREADABLE: Descriptor = Descriptor {
    name: "informer_unreadable_objects_total",
    help: "Objects that were left out because they could not be read.",
};
const INDEX_PROBLEMS: Descriptor = Descriptor {
    name: "informer_index_problems_total",
    help: "Objects that an index could not handle.",
};
const BACKLOG: Descriptor =
    Descriptor { name: "informer_pending_notifications", help: "Changes that wait for a handler." };
const MERGED: Descriptor = Descriptor {
    name: "informer_merged_notifications_total",
    help: "Changes that became one with another while they waited for a handler.",
};
const PANICS: Descriptor =
    Descriptor { name: "informer_handler_panics_total", help: "Panics of a handler." };

/// A version as a double holds it exactly (KEP-4346).
const VERSION_DIGITS: u64 = 1_000_000_000_000_000;

/// The label values of one informer, and where its metrics go.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    provider: Arc<dyn Provider>,
    labels: [(&'static str, String); 4],
}

impl Meter {
    pub(crate) fn new(provider: Arc<dyn Provider>, name: &str, collection: &Collection) -> Self {
        let resource = &collection.resource;
        let labels = [
            ("name", name.to_owned()),
            ("group", resource.group.to_string()),
            ("version", resource.version.to_string()),
            ("resource", resource.plural.to_string()),
        ];
        Self { provider, labels }
    }

    pub(crate) fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    /// The informer's labels, and `more`.
    pub(crate) fn labels<'a>(
        &'a self,
        more: impl IntoIterator<Item = (&'static str, &'a str)>,
    ) -> Vec<(&'static str, &'a str)> {
        self.labels.iter().map(|(name, value)| (*name, value.as_str())).chain(more).collect()
    }
}

/// Metrics of one informer.
#[derive(Debug)]
pub(crate) struct Metrics {
    meter: Meter,
    store_version: Gauge,
    objects: Gauge,
    heads: Gauge,
    bodies: Gauge,
    keys: Gauge,
    pub(crate) unreadable: Counter,
    pub(crate) index_problems: Counter,
}

impl Metrics {
    pub(crate) fn new(meter: Meter) -> Self {
        let (provider, labels) = (meter.provider(), meter.labels([]));
        let bytes = |part| provider.gauge(STORE_BYTES, &meter.labels([("part", part)]));
        Self {
            store_version: provider.gauge(STORE_VERSION, &labels),
            objects: provider.gauge(STORE_OBJECTS, &labels),
            heads: bytes("heads"),
            bodies: bytes("bodies"),
            keys: bytes("keys"),
            unreadable: provider.counter(UNREADABLE, &labels),
            index_problems: provider.counter(INDEX_PROBLEMS, &labels),
            meter,
        }
    }

    /// Publishes the store's version and size.
    #[expect(clippy::cast_precision_loss, reason = "metrics are doubles")]
    pub(crate) fn publish(&self, version: &ResourceVersion, usage: &Usage) {
        if let Some(number) = version.as_u64() {
            self.store_version.set((number % VERSION_DIGITS) as f64);
        }
        self.objects.set(usage.objects as f64);
        self.heads.set(usage.heads as f64);
        self.bodies.set(usage.bodies as f64);
        self.keys.set(usage.keys as f64);
        for index in &usage.indexes {
            // Looked up each time: indexes come and go.
            let part = format!("index {}", index.name);
            let labels = self.meter.labels([("part", part.as_str())]);
            self.meter.provider().gauge(STORE_BYTES, &labels).set(index.bytes as f64);
        }
    }

    pub(crate) fn handler(&self, name: &str) -> HandlerMetrics {
        let labels = self.meter.labels([("handler", name)]);
        let provider = self.meter.provider();
        HandlerMetrics {
            backlog: provider.gauge(BACKLOG, &labels),
            merged: provider.counter(MERGED, &labels),
            panics: provider.counter(PANICS, &labels),
        }
    }
}

/// Metrics of one handler.
#[derive(Debug)]
pub(crate) struct HandlerMetrics {
    pub(crate) backlog: Gauge,
    pub(crate) merged: Counter,
    pub(crate) panics: Counter,
}
