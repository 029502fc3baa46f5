//! What a reflector reports.

use std::time::Duration;

use kubestrata_api_types::ResourceVersion;
use kubestrata_telemetry::{Counter, Descriptor, Gauge, Histogram, Labels, Provider};

use crate::status::Checked;
use crate::{During, Failure, Recovery, ReflectorError};

const LISTS: Descriptor =
    Descriptor { name: "reflector_lists_total", help: "Plain lists begun, without their pages." };
const LIST_SECONDS: Descriptor = Descriptor {
    name: "reflector_list_duration_seconds",
    help: "Time that lists took, plain and streaming ones, well or not.",
};
const LIST_ITEMS: Descriptor = Descriptor {
    name: "reflector_items_per_list",
    help: "Objects that lists brought, plain and streaming ones, well or not.",
};
const WATCH_SECONDS: Descriptor = Descriptor {
    name: "reflector_watch_duration_seconds",
    help: "Time that accepted watches lived, with the streaming lists that they began as.",
};
const WATCH_ITEMS: Descriptor = Descriptor {
    name: "reflector_items_per_watch",
    help: "Events that accepted watches brought, with those of the streaming lists that they began as.",
};
const LAST_VERSION: Descriptor = Descriptor {
    name: "reflector_last_resource_version",
    help: "The last 15 digits of the version up to which the consumer has everything.",
};
const REWINDS: Descriptor = Descriptor {
    name: "reflector_rewinds_total",
    help: "Times the server had lost what it had told: new epochs.",
};
const CHECKS: Descriptor = Descriptor {
    name: "reflector_consistency_checks_total",
    help: "Comparisons of a streamed state with a list, by result.",
};
const STREAMING_LISTS: Descriptor =
    Descriptor { name: "reflector_streaming_lists_total", help: "Streaming lists begun." };
const WATCHES: Descriptor =
    Descriptor { name: "reflector_watches_total", help: "Watches begun, without streaming lists." };
const SHORT_WATCHES: Descriptor = Descriptor {
    name: "reflector_short_watches_total",
    help: "Watches that ended within a second without any event.",
};
const RELISTS: Descriptor = Descriptor {
    name: "reflector_relists_total",
    help: "Times a live watch was given up, by reason.",
};
const FALLBACKS: Descriptor = Descriptor {
    name: "reflector_fallbacks_total",
    help: "Times a plain list was made because a streaming one failed.",
};
const UNREADABLE: Descriptor = Descriptor {
    name: "reflector_unreadable_total",
    help: "Objects whose head could not be read.",
};
const LIVE: Descriptor =
    Descriptor { name: "reflector_live", help: "1 while a watch follows the state, else 0." };

/// Up to the ten minutes that a watch lives.
const SECONDS: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0];
const ITEMS: &[f64] = &[0.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0];
/// A double holds so many digits without loss (client-go `informer_store_resource_version`).
const VERSION_MODULUS: u64 = 1_000_000_000_000_000;

/// Metrics of one reflector. The default records nothing.
///
/// The first names are those of client-go's old reflector metrics, which nothing there feeds any more.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(crate) lists: Counter,
    pub(crate) streaming_lists: Counter,
    pub(crate) watches: Counter,
    pub(crate) short_watches: Counter,
    pub(crate) relists_expired: Counter,
    pub(crate) relists_refused: Counter,
    pub(crate) relists_broken: Counter,
    pub(crate) relists_disordered: Counter,
    pub(crate) relists_inconsistent: Counter,
    pub(crate) list_seconds: Histogram,
    pub(crate) list_items: Histogram,
    pub(crate) watch_seconds: Histogram,
    pub(crate) watch_items: Histogram,
    pub(crate) last_version: Gauge,
    pub(crate) rewinds: Counter,
    pub(crate) checks_equal: Counter,
    pub(crate) checks_different: Counter,
    pub(crate) checks_unknown: Counter,
    pub(crate) fallbacks: Counter,
    pub(crate) unreadable: Counter,
    pub(crate) live: Gauge,
}

impl Metrics {
    /// Metrics `reflector_…`. The reasons of relists are `expired` (410), `refused` (any other status), `disordered` (the
    /// watch went back to a lower version), `inconsistent` (the streamed state was wrong) and `broken`.
    pub fn new(provider: &dyn Provider, labels: Labels<'_>) -> Self {
        let relists = |reason| {
            let labels: Vec<_> = labels.iter().copied().chain([("reason", reason)]).collect();
            provider.counter(RELISTS, &labels)
        };
        let checks = |result| {
            let labels: Vec<_> = labels.iter().copied().chain([("result", result)]).collect();
            provider.counter(CHECKS, &labels)
        };
        Self {
            list_seconds: provider.histogram(LIST_SECONDS, labels, SECONDS),
            list_items: provider.histogram(LIST_ITEMS, labels, ITEMS),
            watch_seconds: provider.histogram(WATCH_SECONDS, labels, SECONDS),
            watch_items: provider.histogram(WATCH_ITEMS, labels, ITEMS),
            last_version: provider.gauge(LAST_VERSION, labels),
            rewinds: provider.counter(REWINDS, labels),
            checks_equal: checks("equal"),
            checks_different: checks("different"),
            checks_unknown: checks("unknown"),
            relists_disordered: relists("disordered"),
            relists_inconsistent: relists("inconsistent"),
            lists: provider.counter(LISTS, labels),
            streaming_lists: provider.counter(STREAMING_LISTS, labels),
            watches: provider.counter(WATCHES, labels),
            short_watches: provider.counter(SHORT_WATCHES, labels),
            relists_expired: relists("expired"),
            relists_refused: relists("refused"),
            relists_broken: relists("broken"),
            fallbacks: provider.counter(FALLBACKS, labels),
            unreadable: provider.counter(UNREADABLE, labels),
            live: provider.gauge(LIVE, labels),
        }
    }

    pub(crate) fn failed(&self, failure: &Failure) {
        if let Some(ReflectorError::VeryShort(_)) = failure.finding() {
            self.short_watches.increment();
        }
        if failure.recovery == Recovery::FallBack {
            self.fallbacks.increment();
        }
        let given_up = matches!(failure.during, During::Watch | During::Comparison);
        if given_up && matches!(failure.recovery, Recovery::Relist(_)) {
            match (failure.finding(), failure.status()) {
                (Some(ReflectorError::WentBack { .. }), _) => self.relists_disordered.increment(),
                (Some(ReflectorError::Inconsistent { .. }), _) => {
                    self.relists_inconsistent.increment();
                }
                (_, Some(status)) if status.is_expired() => self.relists_expired.increment(),
                (_, Some(_)) => self.relists_refused.increment(),
                (_, None) => self.relists_broken.increment(),
            }
        }
    }

    /// A list or watch is over.
    pub(crate) fn over(&self, during: During, lasted: Duration, items: u64) {
        let (seconds, count) = match during {
            During::Watch => (&self.watch_seconds, &self.watch_items),
            _ => (&self.list_seconds, &self.list_items),
        };
        seconds.observe(lasted.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "metrics are doubles")]
        count.observe(items as f64);
    }

    pub(crate) fn version(&self, version: &ResourceVersion) {
        if let Some(version) = version.as_u64() {
            #[expect(clippy::cast_precision_loss, reason = "the modulus is below 2^53")]
            self.last_version.set((version % VERSION_MODULUS) as f64);
        }
    }

    pub(crate) fn checked(&self, found: &Checked) {
        match found {
            Checked::Equal(_) => self.checks_equal.increment(),
            Checked::Differs(_) => self.checks_different.increment(),
            Checked::Unknown(_) => self.checks_unknown.increment(),
        }
    }
}
