//! The machine alone, with a server that answers anything: whatever comes, its rules hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{
    Bookmark, BoxError, Event, ListMeta, ListOptions, ListPart, Object as _, ObjectKey,
    ResourceVersion, Status, Tick, Unreadable, Update, VersionMatch, WatchOptions,
};
use kubestrata_testkit::{FakeWorld, Thing};

use super::{CheckStep, Fault, Machine, Step};
use crate::{Backoff, Config, Consistency};

/// What the machine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Io {
    Nothing,
    Opening,
    Watching,
    Listing { has_meta: bool },
}

struct Fuzz {
    world: Arc<FakeWorld>,
    machine: Machine<Thing>,
    io: Io,
    check_io: Io,
    now: Tick,
    states: u32,
    /// Requests without time between them.
    burst: u32,
    /// The last request was a watch, not a list.
    watch: bool,
    /// The watch that runs began without a version, and so in no order.
    free: bool,
    /// The highest version told in this epoch.
    told: ResourceVersion,
    epoch: u64,
}

impl Fuzz {
    fn new(seed: u64) -> Self {
        let world = Arc::new(FakeWorld::new(seed));
        let consistency =
            [Consistency::Trust, Consistency::Report, Consistency::Relist][seed as usize % 3];
        let config = Config {
            streaming: !seed.is_multiple_of(4),
            page_size: seed.is_multiple_of(5).then_some(2),
            state_items: 12,
            list_pages: 6,
            consistency,
            backoff: Backoff { retry_after_cap: Duration::from_secs(50), ..Backoff::default() },
            world: Arc::clone(&world) as _,
            ..Config::default()
        };
        Self {
            machine: Machine::new(config),
            world,
            io: Io::Nothing,
            check_io: Io::Nothing,
            now: Tick::ZERO,
            states: 0,
            burst: 0,
            watch: false,
            free: false,
            told: ResourceVersion::UNSET,
            epoch: 0,
        }
    }

    fn turn(&mut self) {
        let step = self.machine.step(self.now);
        while self.machine.note().is_some() {}
        match step {
            Step::Emit(update) => self.told(&update),
            Step::List(options) => {
                self.asked_list(&options);
                self.io = Io::Opening;
            }
            Step::Watch(options) => {
                self.asked_watch(&options);
                self.io = Io::Opening;
            }
            Step::Read(deadline) => {
                assert_ne!(self.io, Io::Nothing);
                self.bounded(deadline, Duration::from_secs(650));
                self.read(deadline);
            }
            Step::Sleep(until) => {
                self.io = Io::Nothing;
                self.bounded(until, Duration::from_secs(60));
                self.pass(until);
            }
        }
        self.check();
    }

    /// Whatever it waits for ends.
    fn bounded(&self, until: Tick, most: Duration) {
        assert!(until.since(self.now) <= most, "{until:?} from {:?}", self.now);
    }

    fn pass(&mut self, until: Tick) {
        if until > self.now {
            self.burst = 0;
            self.now = until;
        }
        self.machine.on_deadline(self.now);
        self.machine.on_check_deadline(self.now);
    }

    fn told(&mut self, update: &Update<Thing>) {
        match update {
            Update::Replace(snapshot) => {
                self.states += 1;
                let keys: BTreeSet<_> = snapshot.items.iter().map(Thing::key).collect();
                assert_eq!(keys.len(), snapshot.items.len(), "each key once");
                assert!(snapshot.items.len() + snapshot.unreadable.len() <= 12);
                let back = snapshot.resource_version.is_at_least(&self.told) == Some(false);
                assert_eq!(self.machine.epoch(), self.epoch + u64::from(back));
                self.epoch = self.machine.epoch();
                self.told = snapshot.resource_version.clone();
                self.free = self.told.is_unset() || self.told.is_any();
            }
            Update::Event(event) => {
                assert!(self.states > 0, "a state comes first");
                // Only a watch that began without a version is in no order.
                let told = super::receive::version_of(event)
                    .and_then(|version| version.is_at_least(&self.told));
                assert!(self.free || told != Some(false), "{event:?} after {}", self.told);
                self.told = self.machine.version().clone();
            }
        }
    }

    fn asked_list(&mut self, options: &ListOptions) {
        self.watch = false;
        if options.continue_token.is_some() {
            assert!(options.resource_version.is_unset() && options.version_match.is_none());
            return;
        }
        self.request();
        let version = &options.resource_version;
        let exact = options.limit.is_some() && !version.is_unset() && !version.is_any();
        assert_eq!(options.version_match, exact.then_some(VersionMatch::NotOlderThan));
        let first = version.is_any() && self.machine.version().is_unset();
        assert!(version.is_unset() || first || version == self.machine.version());
    }

    fn asked_watch(&mut self, options: &WatchOptions) {
        self.watch = true;
        self.request();
        assert!(options.allow_bookmarks);
        let timeout = options.timeout.unwrap();
        assert!((Duration::from_secs(300)..Duration::from_secs(600)).contains(&timeout));
        let version = &options.resource_version;
        if options.send_initial_events == Some(true) {
            assert_eq!(options.version_match, Some(VersionMatch::NotOlderThan));
            assert!(version.is_unset() || version == self.machine.version());
        } else {
            assert!(self.states > 0 && options.version_match.is_none());
            assert_eq!(version, self.machine.version());
            self.free = version.is_unset() || version.is_any();
        }
    }

    /// No loop without delay, whatever the server does.
    fn request(&mut self) {
        self.burst += 1;
        assert!(self.burst <= 12, "{} requests at {:?}", self.burst, self.now);
    }

    fn read(&mut self, deadline: Tick) {
        match self.world.below(100) {
            0..=4 => return self.pass(deadline),
            5..=11 => {
                let fault = self.fault();
                self.io = Io::Nothing;
                return self.machine.on_error(fault, self.now);
            }
            12..=30 => {
                let wait = Duration::from_millis(self.world.below(900));
                return self.pass(deadline.min(self.now + wait));
            }
            _ => {}
        }
        match self.io {
            Io::Opening if self.watch => {
                self.io = Io::Watching;
                self.machine.on_accepted(self.now);
            }
            Io::Opening => self.io = Io::Listing { has_meta: false },
            Io::Watching if self.world.chance(7) => {
                self.io = Io::Nothing;
                self.machine.on_watch_end(self.now);
            }
            Io::Watching => {
                let event = self.event();
                if self.machine.wants_raw() {
                    self.machine.on_raw(&event);
                }
                self.machine.on_event(event, self.now);
            }
            Io::Listing { .. } if self.world.chance(25) => {
                self.io = Io::Nothing;
                self.machine.on_list_end(self.now);
            }
            Io::Listing { has_meta } => {
                let part = self.part(has_meta);
                let has_meta = has_meta || matches!(part, ListPart::Meta(_));
                self.io = Io::Listing { has_meta };
                self.machine.on_part(part, self.now);
            }
            Io::Nothing => panic!("the machine reads from nothing"),
        }
    }

    /// The comparison, at its own pace.
    fn check(&mut self) {
        match self.machine.check_step(self.now) {
            None | Some(CheckStep::Sleep(_)) => self.check_io = Io::Nothing,
            Some(CheckStep::List(options)) => {
                let paged = options.continue_token.is_some();
                assert_eq!(options.version_match, (!paged).then_some(VersionMatch::Exact));
                self.check_io = Io::Listing { has_meta: false };
            }
            Some(CheckStep::Read(_)) => match self.world.below(10) {
                0 => {
                    let fault = self.fault();
                    self.machine.on_check_error(fault, self.now);
                }
                1..=2 => self.machine.on_check_list_end(self.now),
                3..=5 => {
                    let part = self.part(false);
                    self.machine.on_check_part(part, self.now);
                }
                _ => {}
            },
        }
    }

    fn version(&self) -> ResourceVersion {
        match self.world.below(20) {
            0 => ResourceVersion::UNSET,
            1 => "x".into(),
            2 => "0".into(),
            _ => {
                // Mostly forward.
                let last = self.machine.version().as_u64().unwrap_or(3);
                (last + self.world.below(6)).saturating_sub(1).into()
            }
        }
    }

    fn thing(&self) -> Thing {
        Thing::new(&format!("k{}", self.world.below(15)), self.version())
    }

    fn unreadable(&self) -> Unreadable {
        let key = self.world.chance(70).then(|| ObjectKey::cluster("k1"));
        Unreadable { key, resource_version: self.version(), problem: String::new() }
    }

    fn event(&self) -> Event<Thing> {
        match self.world.below(12) {
            0..=3 => Event::Added(self.thing()),
            4..=6 => Event::Modified(self.thing()),
            7..=8 => Event::Deleted(self.thing()),
            9 => Event::Unreadable(self.unreadable()),
            _ => Event::Bookmark(Bookmark {
                resource_version: self.version(),
                initial_events_end: self.world.chance(70),
            }),
        }
    }

    fn part(&self, has_meta: bool) -> ListPart<Thing> {
        match self.world.below(5) {
            0 if !has_meta => ListPart::Meta(ListMeta {
                resource_version: self.version(),
                continue_token: self
                    .world
                    .chance(40)
                    .then(|| ["", "a", "b", "c"][self.world.below(4) as usize].to_owned()),
                ..ListMeta::default()
            }),
            1 => ListPart::Unreadable(self.unreadable()),
            _ => ListPart::Item(self.thing()),
        }
    }

    fn fault(&self) -> Fault {
        let io = |kind| -> BoxError { std::io::Error::from(kind).into() };
        let mut status = match self.world.below(12) {
            0 => Status::failure(410, "Expired", ""),
            1 => Status::failure(410, "Gone", ""),
            2 => Status::failure(504, "Timeout", "Too large resource version"),
            3 => Status::failure(429, "TooManyRequests", ""),
            4 => Status::failure(422, "Invalid", ""),
            5 => Status::failure(500, "InternalError", ""),
            6 => Status::failure(404, "NotFound", ""),
            7 => Status::failure(503, "ServiceUnavailable", ""),
            8 => return Fault::of(io(std::io::ErrorKind::ConnectionRefused)),
            9 => return Fault::of(io(std::io::ErrorKind::ConnectionReset)),
            _ => return Fault::of("broken".into()),
        };
        let after = u32::try_from(self.world.below(100)).unwrap();
        status.details.get_or_insert_default().retry_after_seconds = after;
        Fault::of(status.into())
    }
}

#[test]
fn whatever_comes_the_rules_hold() {
    let (mut states, mut epochs) = (0, 0);
    for seed in 0..1500 {
        let mut fuzz = Fuzz::new(seed);
        for _ in 0..400 {
            fuzz.turn();
        }
        states += fuzz.states;
        epochs += fuzz.epoch;
    }
    // It is worth something only if much happened.
    assert!(states > 3000 && epochs > 20, "{states} states, {epochs} epochs");
}
