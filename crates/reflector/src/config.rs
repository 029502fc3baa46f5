//! What can be set, with the defaults and where they come from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{FieldSelector, LabelSelector, ShardSelector, SystemWorld, World};

use crate::{Failure, Fallbacks, Metrics};

/// Configuration of a [`Reflector`](crate::Reflector).
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Config {
    /// Only objects with these labels. Default: all.
    pub labels: LabelSelector,
    /// Only objects with these field values. Default: all.
    pub fields: FieldSelector,
    /// KEP-5866: only this part of the collection. Default: all. It is asked of the server; what a server that does not
    /// know shards sends beside it is left out here, and the status says so; versions of what is left out are passed on
    /// as bookmarks.
    pub shard: Option<ShardSelector>,
    /// Whether to ask for a streaming list (KEP-3157) before a plain one. Default true, as client-go since 1.35.
    pub streaming: bool,
    /// Streaming lists in a row that are throttled, or end without the bookmark that ends the initial events, before a
    /// plain list is made instead. Default 3; client-go tries for ever (k/k#140890).
    pub streaming_tries: u32,
    /// How long a streaming list may show no object that it had not shown yet, before a plain list is made instead.
    /// Default 75 s: on a quiet server the end bookmark may take a minute (k/k#122277).
    pub streaming_stall: Duration,
    /// How long plain lists are made without asking for a streaming one, once a streaming list has failed and the plain
    /// list after it has not. Default 10 min; client-go asks again at each relist.
    pub fallback_for: Duration,
    /// Where that is remembered, by resource. Default: a memory of this configuration and its clones.
    pub fallbacks: Fallbacks,
    /// How long streaming lists may be tried for one state, all tries and delays together, before a plain list is made
    /// instead: what ends a streaming list that goes on for ever. Default 15 min: longer than any one of them may live.
    /// Time in which the server refuses connections does not count.
    pub streaming_time: Duration,
    /// Objects in a page of a plain list. Default: as client-go, 500 where a page costs the server no more than a whole
    /// list does.
    pub page_size: Option<u32>,
    /// Pages of one plain list: what ends a list whose continue tokens lead in a circle. Default 20,000.
    pub list_pages: u32,
    /// Objects in one state, those that cannot be read included. A larger one is given up with
    /// [`ReflectorError::StateTooLarge`](crate::ReflectorError) and asked for again after a delay; it is never delivered in
    /// part. Default 4 million.
    pub state_items: usize,
    /// Bytes in one state, as far as they are known: see [`Reflector::weighed`](crate::Reflector::weighed). Beyond it, as
    /// beyond `state_items`. Default 8 GiB.
    pub state_bytes: u64,
    /// Watches ask for a random timeout between this and its double, in whole seconds. Default 5 min, as client-go.
    pub watch_timeout: Duration,
    /// How much longer than the timeout that it asked for a watch may stay open. Default 30 s: the timeout is the
    /// server's promise only, and a peer that vanished keeps none (k/k#65012).
    pub read_margin: Duration,
    /// How long the server may take to accept a watch. Default 2 min: twice what it lets requests queue.
    pub open_timeout: Duration,
    /// How long a list may bring nothing. Default 2 min: twice the server's own timeout of a list.
    pub list_stall: Duration,
    /// Whether each streamed state is compared with a list. Default: not, as in client-go outside of its own tests.
    pub consistency: Consistency,
    /// Times that the list of one comparison is tried. Default 5; client-go tries for ever.
    pub consistency_tries: u32,
    /// Delays after failures.
    pub backoff: Backoff,
    /// Randomness. Default: the real world.
    pub world: Arc<dyn World>,
    /// Metrics. Default: none.
    pub metrics: Metrics,
    /// Called with each failure, before the reflector recovers from it (client-go `WatchErrorHandler`). Default: none.
    pub on_failure: Option<FailureHook>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            labels: LabelSelector::default(),
            fields: FieldSelector::default(),
            shard: None,
            streaming: true,
            streaming_tries: 3,
            streaming_stall: Duration::from_secs(75),
            fallback_for: Duration::from_secs(600),
            fallbacks: Fallbacks::default(),
            streaming_time: Duration::from_secs(900),
            page_size: None,
            list_pages: 20_000,
            state_items: 4_000_000,
            state_bytes: 8 << 30,
            watch_timeout: Duration::from_secs(300),
            read_margin: Duration::from_secs(30),
            open_timeout: Duration::from_secs(120),
            list_stall: Duration::from_secs(120),
            consistency: Consistency::default(),
            consistency_tries: 5,
            backoff: Backoff::default(),
            world: Arc::new(SystemWorld::new()),
            metrics: Metrics::default(),
            on_failure: None,
        }
    }
}

/// What to do about the question whether a streamed state is what the server has (client-go
/// `KUBE_WATCHLIST_INCONSISTENCY_DETECTOR`).
///
/// The state is compared with a list at its exact version, beside the watch and without delaying anything: keys, uids and
/// versions of all objects, as the server sent them, before any transform. It costs the server one list for each streaming
/// list, and the reflector about 100 bytes for each object while it lasts. The result is in the status and the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Consistency {
    /// Do not compare.
    #[default]
    Trust,
    /// Compare, and log a difference as an error that names the keys.
    Report,
    /// The same, and get the state again, by a plain list of the most recent state.
    Relist,
}

/// Delays after failures: `initial`, then `factor` times more each time, up to `cap`; each times a random factor in
/// `[1, 1 + jitter)`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Backoff {
    /// First delay. Default 800 ms, as client-go.
    pub initial: Duration,
    /// Growth. Default 2, as client-go.
    pub factor: f64,
    /// Largest delay, before jitter. Default 30 s, as client-go.
    pub cap: Duration,
    /// Random part, as a share of the delay. Default 1, as client-go.
    pub jitter: f64,
    /// A watch that lived this long without failure resets the delay. Default 2 min; client-go resets by the clock, also
    /// in the middle of an outage.
    pub reset_after: Duration,
    /// The longest time that a server may ask to be left alone (`Retry-After`); what it asks beyond that is cut. Default
    /// 5 min. A delay is never shorter than what the server asks.
    pub retry_after_cap: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            factor: 2.0,
            cap: Duration::from_secs(30),
            jitter: 1.0,
            reset_after: Duration::from_secs(120),
            retry_after_cap: Duration::from_secs(300),
        }
    }
}

/// What [`Config::on_failure`] calls. A clone is a reference count.
#[derive(Clone)]
pub struct FailureHook(Arc<dyn Fn(&Failure) + Send + Sync>);

impl FailureHook {
    /// A hook. It runs within the reflector's poll, so it must not block.
    pub fn new(hook: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    pub(crate) fn call(&self, failure: &Failure) {
        (self.0)(failure);
    }
}

impl fmt::Debug for FailureHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailureHook")
    }
}
