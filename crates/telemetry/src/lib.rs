#![doc = include_str!("../README.md")]
//!
//! ## The key decision
//!
//! Components hold handles ([`Counter`], [`Gauge`], [`Histogram`]) that a [`Provider`] made once; the hot path is one
//! virtual call. The rejected way, a global registry behind macros, gives tests and programs with two controllers one
//! set of numbers that nobody can tell apart.

mod memory;

use std::fmt;
use std::sync::Arc;

pub use self::memory::Memory;

/// Name and help of a metric, by the conventions of Prometheus: base units, `_total` on counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "written as constants by every component")]
pub struct Descriptor {
    /// Full name, as in `workqueue_depth`.
    pub name: &'static str,
    /// One line for people.
    pub help: &'static str,
}

/// Label names and values of one series.
pub type Labels<'a> = &'a [(&'static str, &'a str)];

/// Makes metrics. Asking twice for one descriptor and the same labels gives handles to one series.
pub trait Provider: fmt::Debug + Send + Sync + 'static {
    /// A number that only grows.
    fn counter(&self, descriptor: Descriptor, labels: Labels<'_>) -> Counter;
    /// A number that goes up and down.
    fn gauge(&self, descriptor: Descriptor, labels: Labels<'_>) -> Gauge;
    /// A distribution over `buckets` (upper bounds, ascending).
    fn histogram(&self, descriptor: Descriptor, labels: Labels<'_>, buckets: &[f64]) -> Histogram;
}

/// The recording side of a metric, implemented by providers.
pub trait Recorder: fmt::Debug + Send + Sync + 'static {
    /// Adds to a counter or gauge, or records a value of a histogram.
    fn record(&self, value: f64);
    /// Sets a gauge.
    fn set(&self, value: f64);
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default)]
        pub struct $name(Option<Arc<dyn Recorder>>);

        impl $name {
            /// A handle over a provider's recorder.
            pub fn new(recorder: Arc<dyn Recorder>) -> Self {
                Self(Some(recorder))
            }

            /// A handle that records nothing.
            pub const fn noop() -> Self {
                Self(None)
            }
        }
    };
}

handle!(
    /// A number that only grows. The default records nothing.
    Counter
);
handle!(
    /// A number that goes up and down. The default records nothing.
    Gauge
);
handle!(
    /// A distribution. The default records nothing.
    Histogram
);

impl Counter {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        if let Some(recorder) = &self.0 {
            #[expect(clippy::cast_precision_loss, reason = "metrics are doubles")]
            recorder.record(count as f64);
        }
    }
}

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: f64) {
        if let Some(recorder) = &self.0 {
            recorder.set(value);
        }
    }

    /// Adds to the value; `amount` may be negative.
    pub fn add(&self, amount: f64) {
        if let Some(recorder) = &self.0 {
            recorder.record(amount);
        }
    }
}

impl Histogram {
    /// Records one value, in the unit that the metric's name ends with.
    pub fn observe(&self, value: f64) {
        if let Some(recorder) = &self.0 {
            recorder.record(value);
        }
    }
}

/// Records nothing: the default of every component.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a unit")]
pub struct Noop;

impl Provider for Noop {
    fn counter(&self, _: Descriptor, _: Labels<'_>) -> Counter {
        Counter::noop()
    }

    fn gauge(&self, _: Descriptor, _: Labels<'_>) -> Gauge {
        Gauge::noop()
    }

    fn histogram(&self, _: Descriptor, _: Labels<'_>, _: &[f64]) -> Histogram {
        Histogram::noop()
    }
}
