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
use crate::gather::Gather;
use crate::{Config, During, Failure, Recovery, ReflectorError};

mod ask;
mod recover;

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
    /// A streaming list still has no end bookmark, since this time.
    NoEndBookmark(Tick),
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
}

#[derive(Debug)]
struct Listing<T> {
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
            short: 0,
            ladder: Ladder::new(config.backoff),
            config,
        }
    }

    pub(crate) fn version(&self) -> &ResourceVersion {
        &self.last
    }

    /// Whether plain lists are made because a streaming one failed.
    pub(crate) fn fallback(&self) -> bool {
        self.falling_back || self.fallback_until.is_some()
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
                .min(streaming.progress + self.config.streaming_stall),
            Phase::Listing(listing) => listing.progress + self.config.list_stall,
            Phase::Watching(watching) if watching.accepted => watching.end,
            Phase::Watching(watching) => watching.started + self.config.open_timeout,
            Phase::Waiting { until, .. } => *until,
            Phase::Begin | Phase::BeginList | Phase::BeginPage(_) | Phase::BeginWatch => Tick::ZERO,
        }
    }

    /// The server has accepted the watch.
    pub(crate) fn on_accepted(&mut self, now: Tick) {
        match &mut self.phase {
            // It says nothing: the state has to come first.
            Phase::Streaming(_) => {}
            Phase::Watching(watching) => {
                watching.accepted = true;
                self.live(now);
            }
            _ => debug_assert!(false, "only watches are accepted"),
        }
    }

    pub(crate) fn on_event(&mut self, event: Event<T>, now: Tick) {
        match &mut self.phase {
            Phase::Streaming(streaming) => {
                if let Some(end) = streaming.on_event(event, now) {
                    self.streamed(end, now);
                }
            }
            Phase::Watching(watching) => {
                if let Some(version) = watching.on_event(&event) {
                    advance(&mut self.last, version);
                }
                self.ready.push_back(Update::Event(event));
            }
            _ => debug_assert!(false, "only watches bring events"),
        }
    }

    pub(crate) fn on_part(&mut self, part: ListPart<T>, now: Tick) {
        let Phase::Listing(listing) = &mut self.phase else {
            debug_assert!(false, "only lists bring parts");
            return;
        };
        listing.progress = now;
        match part {
            ListPart::Item(object) => {
                listing.gather.put(object);
            }
            ListPart::Unreadable(unreadable) => listing.gather.note(unreadable),
            ListPart::Meta(meta) => listing.meta = Some(meta),
        }
    }

    /// An object came that is not wanted.
    pub(crate) fn on_skipped_part(&mut self, now: Tick) {
        if let Phase::Listing(listing) = &mut self.phase {
            listing.progress = now;
        }
    }

    /// The page has ended.
    pub(crate) fn on_list_end(&mut self, now: Tick) {
        let Phase::Listing(mut listing) = std::mem::replace(&mut self.phase, Phase::Begin) else {
            debug_assert!(false, "only lists end so");
            return;
        };
        let Some(meta) = listing.meta.take() else {
            self.phase = Phase::Listing(listing);
            self.on_error(Fault::own(Class::Other, ReflectorError::NoListMeta), now);
            return;
        };
        listing.pages += 1;
        if listing.pages == 1 {
            listing.version = meta.resource_version;
        }
        if let Some(token) = meta.continue_token.filter(|token| !token.is_empty()) {
            listing.token = Some(token);
            self.phase = Phase::BeginPage(listing);
            return;
        }
        // client-go: pages at version "0" mean that there is no watch cache, so whole lists would be dear.
        self.paginated |= listing.first.resource_version.is_any() && listing.pages > 1;
        if std::mem::take(&mut self.falling_back) {
            // Only now is it known that the streaming list failed, and not the server.
            self.fallback_until = Some(now + self.config.fallback_for);
        }
        let snapshot = listing.gather.take(listing.version);
        self.complete(Update::Replace(snapshot));
        self.phase = Phase::BeginWatch;
    }

    /// A streaming list is complete; its watch goes on.
    fn streamed(&mut self, end: Bookmark, now: Tick) {
        let Phase::Streaming(mut streaming) = std::mem::replace(&mut self.phase, Phase::Begin)
        else {
            return;
        };
        let version = if end.resource_version.is_unset() {
            streaming.version.clone()
        } else {
            end.resource_version
        };
        let ordered = !version.is_unset();
        self.complete(Update::Replace(streaming.gather.take(version)));
        self.phase = Phase::Watching(Watching {
            started: streaming.started,
            accepted: true,
            end: streaming.end,
            events: streaming.events,
            ordered,
        });
        self.live(now);
    }

    fn complete(&mut self, state: Update<T>) {
        if let Update::Replace(snapshot) = &state {
            self.last = snapshot.resource_version.clone();
        }
        self.unavailable = false;
        self.tries = 0;
        self.ready.push_back(state);
        self.notes.push_back(Note::State);
    }

    fn live(&mut self, now: Tick) {
        self.ladder.healthy(now);
        self.notes.push_back(Note::Live);
    }
}

impl<T: Object> Streaming<T> {
    /// Takes an event into the state; gives the bookmark that ends it.
    fn on_event(&mut self, event: Event<T>, now: Tick) -> Option<Bookmark> {
        if counts(&event) {
            self.events += 1;
        }
        self.ordered |= !matches!(event, Event::Added(_) | Event::Unreadable(_));
        if self.ordered
            && let Some(version) = version_of(&event)
        {
            advance(&mut self.version, version);
        }
        match event {
            Event::Added(object) | Event::Modified(object) => {
                if self.gather.put(object) {
                    self.progress = now;
                }
            }
            Event::Deleted(object) => self.gather.remove(&object),
            Event::Unreadable(unreadable) => self.gather.note(unreadable),
            Event::Bookmark(bookmark) if bookmark.initial_events_end => return Some(bookmark),
            Event::Bookmark(_) => {}
        }
        None
    }
}

impl Watching {
    /// Counts an event; gives the version that it proves, if it proves one.
    fn on_event<T: Object>(&mut self, event: &Event<T>) -> Option<ResourceVersion> {
        if counts(event) {
            self.events += 1;
        }
        self.ordered |= !matches!(event, Event::Added(_) | Event::Unreadable(_));
        if self.ordered { version_of(event) } else { None }
    }
}

/// Whether an event shows that the stream works. One of a foreign kind, which has no version, does not.
fn counts<T>(event: &Event<T>) -> bool {
    !matches!(event, Event::Unreadable(unreadable) if unreadable.resource_version.is_unset())
}

fn version_of<T: Object>(event: &Event<T>) -> Option<ResourceVersion> {
    let version = match event {
        Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => {
            object.resource_version()
        }
        Event::Bookmark(bookmark) => bookmark.resource_version.clone(),
        Event::Unreadable(unreadable) => unreadable.resource_version.clone(),
    };
    (!version.is_unset()).then_some(version)
}

/// Within one epoch a version never goes back; where versions cannot be compared, the newer word counts.
fn advance(last: &mut ResourceVersion, version: ResourceVersion) {
    if version.is_at_least(last) != Some(false) {
        *last = version;
    }
}
