//! The machine: what to ask for, what to tell, and what to do when it fails. No clock, no IO.
//!
//! A driver calls [`Machine::step`] until it gives something to wait for, and hands back what came by the `on_…` methods.

use std::collections::VecDeque;
use std::time::Duration;

use kubestrata_api_types::{
    Bookmark, Event, ListMeta, ListOptions, ListPart, Object, ResourceVersion, Tick, Update,
    VersionMatch, WatchOptions,
};

use crate::backoff::Ladder;
use crate::failure::{Class, Fault};
use crate::gather::{Gather, Weigher};
use crate::status::Checked;
use crate::{Config, Consistency, During, Failure, Recovery, ReflectorError};

mod ask;
mod check;
mod receive;
mod recover;

#[cfg(test)]
mod tests;

pub(crate) use self::check::CheckStep;
use self::check::{Check, Identities};

/// A watch that ended earlier says nothing about the health of the server (client-go).
const SHORT: Duration = Duration::from_secs(1);
/// Watches in a row that may end within [`SHORT`] although they brought something, before a delay.
const SHORT_IN_A_ROW: u32 = 5;
/// How often a streaming list without its end bookmark is reported (client-go).
const WARN_EVERY: Duration = Duration::from_secs(10);
/// Page size (client-go).
const PAGE: u32 = 500;

/// What the driver does next.
#[derive(Debug)]
pub(crate) enum Step<T> {
    /// Give this to the consumer.
    Emit(Update<T>),
    /// Begin this list; drop whatever runs.
    List(ListOptions),
    /// Begin this watch; drop whatever runs.
    Watch(WatchOptions),
    /// Wait for what runs, until this time.
    Read(Tick),
    /// Drop whatever runs, and wait until this time.
    Sleep(Tick),
}

/// What is worth a log line, a metric or a change of status.
#[derive(Debug)]
pub(crate) enum Note {
    /// A failure, before the recovery.
    Failed(Failure),
    /// The server has accepted the watch that goes on from the state.
    Live,
    /// The watch ended as it should.
    Ended,
    /// The state is complete.
    State,
    /// The state is of a lower version than what was known: a new epoch.
    Rewound(ResourceVersion),
    /// A list, of all its pages, or a watch is over, well or not.
    Over { during: During, lasted: Duration, items: u64 },
    /// The server sends objects of other shards. Once.
    ShardIgnored,
    /// A streaming list still has no end bookmark, since this time.
    NoEndBookmark(Tick),
    /// The state of this version was compared with a list.
    Checked(ResourceVersion, Checked),
}

pub(crate) struct Machine<T> {
    config: Config,
    phase: Phase<T>,
    /// At most two: a state, and what came with its end.
    ready: VecDeque<Update<T>>,
    notes: VecDeque<Note>,
    /// The version up to which the consumer has everything.
    last: ResourceVersion,
    /// The server does not have `last` (client-go `isLastSyncResourceVersionUnavailable`).
    unavailable: bool,
    /// A list at version "0" came in pages: this server has no watch cache for it (client-go `paginatedResult`).
    paginated: bool,
    /// No streaming list before this time.
    fallback_until: Option<Tick>,
    /// A plain list is made because a streaming one failed.
    falling_back: bool,
    /// Streaming lists in a row without result.
    tries: u32,
    /// Since when streaming lists are tried for the present state.
    streaming_since: Option<Tick>,
    /// The server has sent objects of other shards.
    shard_ignored: bool,
    /// How often the version went back.
    epoch: u64,
    weigh: Weigher<T>,
    /// Runs beside everything else, until the next state.
    check: Option<Check>,
    /// Short watches in a row that brought something.
    short: u32,
    ladder: Ladder,
}

/// Where the machine is. `Begin` leads to `Streaming` or `Listing`; both lead to `Watching` when the state is complete.
/// Each can fail: then `Waiting`, and after it where the failure's class says.
#[derive(Debug)]
enum Phase<T> {
    /// The state is to be fetched.
    Begin,
    /// A plain list is to be made.
    BeginList,
    /// A watch is to be opened.
    BeginWatch,
    /// A delay runs.
    Waiting { until: Tick, then: Then },
    /// A streaming list runs.
    Streaming(Streaming<T>),
    /// A plain list is to be asked for its next page.
    BeginPage(Listing<T>),
    /// A page of a plain list runs.
    Listing(Listing<T>),
    /// A watch runs.
    Watching(Watching),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Begin,
    Watch,
}

#[derive(Debug)]
struct Streaming<T> {
    asked: ResourceVersion,
    started: Tick,
    /// When the watch should have ended by its timeout, with the margin.
    end: Tick,
    /// When something new came last.
    progress: Tick,
    warn: Tick,
    events: u64,
    /// Versions mean something: something other than the initial ADDED events, which are in no order, has come.
    ordered: bool,
    version: ResourceVersion,
    gather: Gather<T>,
    /// For the comparison that follows, if one does.
    identities: Option<Identities>,
}

#[derive(Debug)]
struct Listing<T> {
    started: Tick,
    /// The first request.
    first: ListOptions,
    /// Token of the page asked for now.
    token: Option<String>,
    /// The request that follows expired pages: everything at once.
    whole: bool,
    pages: u32,
    /// Version of the first page.
    version: ResourceVersion,
    /// Metadata of the page that runs.
    meta: Option<ListMeta>,
    progress: Tick,
    gather: Gather<T>,
}

#[derive(Debug)]
struct Watching {
    started: Tick,
    accepted: bool,
    end: Tick,
    events: u64,
    /// See [`Streaming::ordered`]: false only where the watch had to begin without a version (k/k PR 136583).
    ordered: bool,
    /// Whether it was ordered from its beginning: then nothing it sends may be older than what was known.
    versioned: bool,
}

impl<T: Object> Machine<T> {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            phase: Phase::Begin,
            ready: VecDeque::new(),
            notes: VecDeque::new(),
            last: ResourceVersion::UNSET,
            unavailable: false,
            paginated: false,
            fallback_until: None,
            falling_back: false,
            tries: 0,
            streaming_since: None,
            shard_ignored: false,
            epoch: 0,
            weigh: |_| size_of::<T>(),
            check: None,
            short: 0,
            ladder: Ladder::new(config.backoff),
            config,
        }
    }

    /// Objects are weighed so from the next state on.
    pub(crate) fn weigh_with(&mut self, weigh: Weigher<T>) {
        self.weigh = weigh;
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Objects of the state that is on its way.
    pub(crate) fn gathered(&self) -> usize {
        match &self.phase {
            Phase::Streaming(streaming) => streaming.gather.len(),
            Phase::Listing(listing) | Phase::BeginPage(listing) => listing.gather.len(),
            _ => 0,
        }
    }

    pub(crate) fn version(&self) -> &ResourceVersion {
        &self.last
    }

    /// Whether plain lists are made because a streaming one failed.
    pub(crate) fn fallback(&self) -> bool {
        self.falling_back || self.fallback_until.is_some()
    }

    /// Whether the next step begins to get the state.
    pub(crate) fn begins(&self) -> bool {
        matches!(self.phase, Phase::Begin) && self.ready.is_empty()
    }

    /// No streaming list before this time, if one was to be tried.
    pub(crate) fn fallback_until(&self) -> Option<Tick> {
        self.fallback_until
    }

    /// Another has found out that streaming lists fail.
    pub(crate) fn fall_back_until(&mut self, until: Option<Tick>) {
        if self.config.streaming {
            self.fallback_until = self.fallback_until.max(until);
        }
    }

    pub(crate) fn note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    pub(crate) fn public_phase(&self) -> crate::Phase {
        match &self.phase {
            Phase::Waiting { .. } => crate::Phase::Waiting,
            Phase::BeginWatch => crate::Phase::Connecting,
            Phase::Watching(watching) if !watching.accepted => crate::Phase::Connecting,
            Phase::Watching(_) => crate::Phase::Live,
            _ => crate::Phase::Listing,
        }
    }

    pub(crate) fn step(&mut self, now: Tick) -> Step<T> {
        if let Some(update) = self.ready.pop_front() {
            return Step::Emit(update);
        }
        if matches!(self.phase, Phase::Streaming(_) | Phase::Listing(_) | Phase::Watching(_)) {
            return Step::Read(self.deadline());
        }
        loop {
            match std::mem::replace(&mut self.phase, Phase::Begin) {
                Phase::Begin => {
                    let remembered = self.fallback_until.is_some_and(|until| now < until);
                    if !remembered {
                        self.fallback_until = None;
                    }
                    if self.config.streaming && !remembered && !self.falling_back {
                        return self.begin_streaming(now);
                    }
                    self.phase = Phase::BeginList;
                }
                Phase::BeginList => self.phase = Phase::BeginPage(self.first_page(now)),
                Phase::BeginPage(listing) => return self.begin_page(listing, now),
                Phase::BeginWatch => return self.begin_watch(now),
                Phase::Waiting { until, then } => {
                    self.phase = Phase::Waiting { until, then };
                    return Step::Sleep(until);
                }
                running => {
                    self.phase = running;
                    return Step::Read(self.deadline());
                }
            }
        }
    }

    fn deadline(&self) -> Tick {
        match &self.phase {
            Phase::Streaming(streaming) => streaming
                .end
                .min(streaming.warn)
                .min(streaming.progress + self.config.streaming_stall)
                .min(self.streaming_until(streaming)),
            Phase::Listing(listing) => listing.progress + self.config.list_stall,
            Phase::Watching(watching) if watching.accepted => watching.end,
            Phase::Watching(watching) => watching.started + self.config.open_timeout,
            Phase::Waiting { until, .. } => *until,
            Phase::Begin | Phase::BeginList | Phase::BeginPage(_) | Phase::BeginWatch => Tick::ZERO,
        }
    }

    /// When streaming lists have been tried for long enough.
    fn streaming_until(&self, streaming: &Streaming<T>) -> Tick {
        self.streaming_since.unwrap_or(streaming.started) + self.config.streaming_time
    }
}
