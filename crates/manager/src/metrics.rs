//! The metrics of a controller, by controller-runtime's names.

use std::time::Duration;

use kubestrata_telemetry::{Counter, Descriptor, Gauge, Histogram, Provider};

/// controller-runtime's, in seconds.
const BUCKETS: [f64; 34] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 10.0, 30.0, 60.0,
];

const TOTAL: Descriptor =
    Descriptor { name: "controller_runtime_reconcile_total", help: "Reconciles, by result" };
const ERRORS: Descriptor = Descriptor {
    name: "controller_runtime_reconcile_errors_total",
    help: "Reconciles that failed",
};
const TERMINAL: Descriptor = Descriptor {
    name: "controller_runtime_terminal_reconcile_errors_total",
    help: "Reconciles that failed and are not tried again",
};
const PANICS: Descriptor = Descriptor {
    name: "controller_runtime_reconcile_panics_total",
    help: "Reconciles that panicked",
};
const TIMEOUTS: Descriptor = Descriptor {
    name: "controller_runtime_reconcile_timeouts_total",
    help: "Reconciles that took longer than the controller allows",
};
const STALE: Descriptor = Descriptor {
    name: "kubestrata_reconcile_stale_total",
    help: "Reconciles put off because the caches lacked what the one before had written",
};
const TIME: Descriptor = Descriptor {
    name: "controller_runtime_reconcile_time_seconds",
    help: "How long reconciles took",
};
const WORKERS: Descriptor = Descriptor {
    name: "controller_runtime_max_concurrent_reconciles",
    help: "Reconciles that may run at once",
};
const ACTIVE: Descriptor =
    Descriptor { name: "controller_runtime_active_workers", help: "Reconciles that run now" };

/// Handles of one controller. Making them makes all series, at 0.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) success: Counter,
    pub(crate) requeue_after: Counter,
    pub(crate) requeue: Counter,
    pub(crate) error: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) stale: Counter,
    time: Histogram,
    pub(crate) active: Gauge,
}

impl Metrics {
    pub(crate) fn new(provider: &dyn Provider, controller: &str, workers: usize) -> Self {
        let labels = [("controller", controller)];
        let result =
            |result| provider.counter(TOTAL, &[("controller", controller), ("result", result)]);
        #[expect(clippy::cast_precision_loss, reason = "metrics are doubles")]
        provider.gauge(WORKERS, &labels).set(workers as f64);
        Self {
            success: result("success"),
            requeue_after: result("requeue_after"),
            requeue: result("requeue"),
            error: result("error"),
            errors: provider.counter(ERRORS, &labels),
            terminal: provider.counter(TERMINAL, &labels),
            panics: provider.counter(PANICS, &labels),
            timeouts: provider.counter(TIMEOUTS, &labels),
            stale: provider.counter(STALE, &labels),
            time: provider.histogram(TIME, &labels, &BUCKETS),
            active: provider.gauge(ACTIVE, &labels),
        }
    }

    pub(crate) fn took(&self, time: Duration) {
        self.time.observe(time.as_secs_f64());
    }
}
