//! What happened in a run, line by line: the hash of it says whether two runs were the same.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// The log of one run. Its last lines are kept for whoever looks for the cause of a failure.
pub(crate) struct Log {
    origin: Instant,
    /// How many of the last lines are kept.
    keep: usize,
    inner: Mutex<Inner>,
}

struct Inner {
    hash: u64,
    lines: VecDeque<String>,
    counts: BTreeMap<&'static str, u64>,
    violation: Option<String>,
}

/// How often each kind of thing happened.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

impl Log {
    /// An empty log whose time begins now.
    pub(crate) fn new(keep: usize) -> Self {
        let inner = Inner {
            // FNV-1a, 64 bits.
            hash: 0xcbf2_9ce4_8422_2325,
            lines: VecDeque::new(),
            counts: BTreeMap::new(),
            violation: None,
        };
        Self { origin: Instant::now(), keep, inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. Use [`note!`].
    pub(crate) fn write(&self, text: fmt::Arguments<'_>) {
        let line = format!("{:>10.3} {text}", self.origin.elapsed().as_secs_f64());
        let mut inner = self.lock();
        for byte in line.bytes().chain([b'\n']) {
            inner.hash = (inner.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if inner.lines.len() == self.keep {
            inner.lines.pop_front();
        }
        inner.lines.push_back(line);
    }

    /// Counts something that a run of many seeds must have seen.
    pub(crate) fn count(&self, what: &'static str) {
        *self.lock().counts.entry(what).or_default() += 1;
    }

    /// Says that the pipeline broke a promise. The first counts; what follows it may follow from it.
    pub(crate) fn violation(&self, text: String) {
        self.write(format_args!("VIOLATION {text}"));
        self.lock().violation.get_or_insert(text);
    }

    /// The first broken promise, if there is one.
    ///
    /// # Errors
    ///
    /// Its text.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.lock().violation.clone().map_or(Ok(()), Err)
    }

    /// The hash of all lines.
    pub(crate) fn hash(&self) -> u64 {
        self.lock().hash
    }

    /// The kept lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().lines.iter().cloned().collect()
    }

    /// How often each kind of thing happened.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts.clone()
    }
}

/// Adds a line to a log.
macro_rules! note {
    ($log:expr, $($text:tt)*) => { $log.write(format_args!($($text)*)) };
}
pub(crate) use note;
