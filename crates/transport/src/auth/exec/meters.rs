//! What plugins do, as metrics under client-go's names.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::Timestamp;
use kubestrata_telemetry::{Descriptor, Gauge, Histogram, Provider};

const CALLS: Descriptor = Descriptor {
    name: "rest_client_exec_plugin_call_total",
    help: "Number of runs of credential plugins, by exit code and how they went.",
};
const TTL: Descriptor = Descriptor {
    name: "rest_client_exec_plugin_ttl_seconds",
    help: "Time until the client certificate of a credential plugin expires, negative if it has; as of its last use.",
};
const ROTATION_AGE: Descriptor = Descriptor {
    name: "rest_client_exec_plugin_certificate_rotation_age",
    help: "Seconds from the beginning of a certificate's validity until a credential plugin replaced it.",
};
/// client-go's buckets: from ten minutes to four years.
const AGES: [f64; 11] = [
    600.0,
    1_800.0,
    3_600.0,
    14_400.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
    124_416_000.0,
];

/// How a run of a plugin went (client-go `plugin/pkg/client/auth/exec/metrics.go`).
#[derive(Debug, Clone, Copy)]
pub(super) enum Run {
    /// It ended with code 0, whatever it printed.
    Done,
    /// It ended with this code; -1 for a signal.
    Failed(i32),
    /// It cannot be started.
    NotFound,
    /// It was killed because it took too long or printed too much, or could not be told what it has to know.
    GivenUp,
}

/// Where it is told.
pub(crate) struct Meters {
    provider: Arc<dyn Provider>,
    ttl: Gauge,
    rotation_age: Histogram,
}

impl Meters {
    pub(crate) fn new(provider: Arc<dyn Provider>) -> Self {
        let ttl = provider.gauge(TTL, &[]);
        let rotation_age = provider.histogram(ROTATION_AGE, &[], &AGES);
        Self { provider, ttl, rotation_age }
    }

    pub(super) fn ran(&self, run: Run) {
        let (code, status) = match run {
            Run::Done => (0, "no_error"),
            Run::Failed(code) => (code, "plugin_execution_error"),
            Run::NotFound => (1, "plugin_not_found_error"),
            Run::GivenUp => (1, "client_internal_error"),
        };
        let labels = [("code", &*code.to_string()), ("call_status", status)];
        self.provider.counter(CALLS, &labels).increment();
    }

    /// A certificate is used that expires then.
    pub(crate) fn used(&self, expires: Timestamp) {
        self.ttl.set(expires.duration_since(Timestamp::now()).as_secs_f64());
    }

    /// A certificate that was valid from then on is replaced.
    pub(crate) fn replaced(&self, valid_from: Timestamp) {
        self.rotation_age.observe(Timestamp::now().duration_since(valid_from).as_secs_f64());
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters")
    }
}
