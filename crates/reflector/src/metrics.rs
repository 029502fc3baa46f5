//! What a reflector reports.

use kubestrata_telemetry::{Counter, Descriptor, Gauge, Labels, Provider};

use crate::{During, Failure, Recovery, ReflectorError};

const LISTS: Descriptor =
    Descriptor { name: "reflector_lists_total", help: "Plain lists begun, without their pages." };
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
    pub(crate) fallbacks: Counter,
    pub(crate) unreadable: Counter,
    pub(crate) live: Gauge,
}

impl Metrics {
    /// Metrics `reflector_…`. The reasons of relists are `expired` (410), `refused` (any other status) and `broken`.
    pub fn new(provider: &dyn Provider, labels: Labels<'_>) -> Self {
        let relists = |reason| {
            let labels: Vec<_> = labels.iter().copied().chain([("reason", reason)]).collect();
            provider.counter(RELISTS, &labels)
        };
        Self {
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
        let own = failure.error.downcast_ref::<ReflectorError>();
        if matches!(own, Some(ReflectorError::VeryShort(_))) {
            self.short_watches.increment();
        }
        if failure.recovery == Recovery::FallBack {
            self.fallbacks.increment();
        }
        if failure.during == During::Watch && matches!(failure.recovery, Recovery::Relist(_)) {
            match failure.status() {
                Some(status) if status.is_expired() => self.relists_expired.increment(),
                Some(_) => self.relists_refused.increment(),
                None => self.relists_broken.increment(),
            }
        }
    }
}
