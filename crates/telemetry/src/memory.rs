//! A provider that keeps numbers in memory, for tests, demos and small programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Counter, Descriptor, Gauge, Histogram, Labels, Provider, Recorder};

/// Keeps every series in memory. A clone shares them.
///
/// Grows with the number of series, not with the number of records.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    series: Arc<Mutex<BTreeMap<String, Arc<Series>>>>,
}

#[derive(Debug)]
struct Series {
    help: &'static str,
    buckets: Vec<f64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    value: f64,
    count: u64,
    /// Values at or below each bucket's bound, not cumulative.
    buckets: Vec<u64>,
}

impl Memory {
    /// A provider without series.
    pub fn new() -> Self {
        Self::default()
    }

    /// Value of a counter or gauge, or sum of a histogram, by its text form, as in `depth{name="a"}`.
    pub fn value(&self, series: &str) -> Option<f64> {
        let series =
            Arc::clone(self.series.lock().unwrap_or_else(PoisonError::into_inner).get(series)?);
        let state = series.state.lock().unwrap_or_else(PoisonError::into_inner);
        Some(state.value)
    }

    /// All series in Prometheus' text form, sorted.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let mut last = String::new();
        for (id, series) in &*self.series.lock().unwrap_or_else(PoisonError::into_inner) {
            let (name, labels) = id.split_once('{').unwrap_or((id, ""));
            if name != last {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "# HELP {name} {}", series.help);
                name.clone_into(&mut last);
            }
            let state = series.state.lock().unwrap_or_else(PoisonError::into_inner);
            if series.buckets.is_empty() {
                let _ = writeln!(out, "{id} {}", state.value);
                continue;
            }
            let labels = labels.trim_end_matches('}');
            let comma = if labels.is_empty() { "" } else { "," };
            let mut total = 0;
            for (bound, count) in series.buckets.iter().zip(&state.buckets) {
                total += count;
                let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {total}");
            }
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", state.count);
            let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            let _ = writeln!(out, "{name}_sum{braces} {}", state.value);
            let _ = writeln!(out, "{name}_count{braces} {}", state.count);
        }
        out
    }

    fn series(&self, descriptor: Descriptor, labels: Labels<'_>, buckets: &[f64]) -> Arc<Series> {
        let mut id = descriptor.name.to_owned();
        for (index, (name, value)) in labels.iter().enumerate() {
            let _ = write!(id, "{}{name}={value:?}", if index == 0 { "{" } else { "," });
        }
        if !labels.is_empty() {
            id.push('}');
        }
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let series = all.entry(id).or_insert_with(|| {
            Arc::new(Series {
                help: descriptor.help,
                buckets: buckets.to_vec(),
                state: Mutex::new(State { buckets: vec![0; buckets.len()], ..State::default() }),
            })
        });
        Arc::clone(series)
    }
}

impl Recorder for Series {
    fn record(&self, value: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.value += value;
        state.count += 1;
        if let Some(bucket) = self.buckets.iter().position(|bound| value <= *bound) {
            state.buckets[bucket] += 1;
        }
    }

    fn set(&self, value: f64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).value = value;
    }
}

impl Provider for Memory {
    fn counter(&self, descriptor: Descriptor, labels: Labels<'_>) -> Counter {
        Counter::new(self.series(descriptor, labels, &[]))
    }

    fn gauge(&self, descriptor: Descriptor, labels: Labels<'_>) -> Gauge {
        Gauge::new(self.series(descriptor, labels, &[]))
    }

    fn histogram(&self, descriptor: Descriptor, labels: Labels<'_>, buckets: &[f64]) -> Histogram {
        Histogram::new(self.series(descriptor, labels, buckets))
    }
}
