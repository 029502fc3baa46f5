//! The metrics of a queue, by client-go's names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_telemetry::{Counter, Descriptor, Gauge, Histogram, Provider};

/// As in controller-runtime: 1e-8 s to 1000 s.
const BUCKETS: [f64; 12] =
    [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// As in controller-runtime: further priorities share one series.
const MAX_PRIORITIES: usize = 25;
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

const DEPTH: Descriptor = Descriptor { name: "workqueue_depth", help: "Ready keys, by priority" };
const ADDS: Descriptor =
    Descriptor { name: "workqueue_adds_total", help: "Keys added that were not queued before" };
const RETRIES: Descriptor =
    Descriptor { name: "workqueue_retries_total", help: "Adds with a delay" };
const QUEUE_DURATION: Descriptor = Descriptor {
    name: "workqueue_queue_duration_seconds",
    help: "How long keys were ready before they were handed out",
};
const WORK_DURATION: Descriptor =
    Descriptor { name: "workqueue_work_duration_seconds", help: "How long the work on keys took" };
const UNFINISHED: Descriptor = Descriptor {
    name: "workqueue_unfinished_work_seconds",
    help: "Time spent so far on keys that are being processed, together",
};
const LONGEST: Descriptor = Descriptor {
    name: "workqueue_longest_running_processor_seconds",
    help: "Time spent so far on the key that is processed for longest",
};

/// Handles of one queue.
#[derive(Debug)]
pub(crate) struct Metrics {
    name: String,
    provider: Arc<dyn Provider>,
    depths: BTreeMap<i32, Depth>,
    pub(crate) adds: Counter,
    pub(crate) retries: Counter,
    pub(crate) waited: Histogram,
    pub(crate) worked: Histogram,
    unfinished: Gauge,
    longest: Gauge,
}

#[derive(Debug)]
struct Depth {
    gauge: Gauge,
    last: usize,
}

impl Metrics {
    pub(crate) fn new(name: &str, provider: Arc<dyn Provider>) -> Self {
        let labels = [("name", name)];
        Self {
            adds: provider.counter(ADDS, &labels),
            retries: provider.counter(RETRIES, &labels),
            waited: provider.histogram(QUEUE_DURATION, &labels, &BUCKETS),
            worked: provider.histogram(WORK_DURATION, &labels, &BUCKETS),
            unfinished: provider.gauge(UNFINISHED, &labels),
            longest: provider.gauge(LONGEST, &labels),
            name: name.to_owned(),
            depths: BTreeMap::new(),
            provider,
        }
    }

    /// Handles of a queue without name: they record nothing, as in client-go.
    pub(crate) fn none() -> Self {
        Self::new("", Arc::new(kubestrata_telemetry::Noop))
    }

    /// The number of ready keys of one priority is now `depth`.
    pub(crate) fn depth(&mut self, priority: i32, depth: usize) {
        let known = self.depths.len();
        let entry = self.depths.entry(priority).or_insert_with(|| {
            let text = priority.to_string();
            let label = if known < MAX_PRIORITIES { &text } else { OTHER_PRIORITIES };
            let labels = [("name", &*self.name), ("priority", label)];
            Depth { gauge: self.provider.gauge(DEPTH, &labels), last: 0 }
        });
        #[expect(clippy::cast_precision_loss, reason = "metrics are doubles")]
        entry.gauge.add(depth as f64 - entry.last as f64);
        entry.last = depth;
        // Priorities beyond the limit come and go; only their sum has a series.
        if depth == 0 && known >= MAX_PRIORITIES {
            self.depths.remove(&priority);
        }
    }

    /// The gauges that change while nothing happens.
    pub(crate) fn running(&self, durations: impl Iterator<Item = Duration>) {
        let (sum, longest) = durations.fold((0.0, 0.0_f64), |(sum, longest), duration| {
            let seconds = duration.as_secs_f64();
            (sum + seconds, longest.max(seconds))
        });
        self.unfinished.set(sum);
        self.longest.set(longest);
    }
}
