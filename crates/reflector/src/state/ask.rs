//! What the machine asks for: versions, pages, timeouts.

use super::{
    Duration, Gather, Identities, ListOptions, Listing, Machine, Object, PAGE, Phase,
    ResourceVersion, Step, Streaming, Tick, VersionMatch, WARN_EVERY, WatchOptions, Watching,
};

impl<T: Object> Machine<T> {
    pub(super) fn begin_streaming(&mut self, now: Tick) -> Step<T> {
        let asked = if self.unavailable { ResourceVersion::UNSET } else { self.last.clone() };
        let mut options = self.watch_options(asked.clone());
        // KEP-3157: without bookmarks the initial state would never be known to be complete.
        options.send_initial_events = Some(true);
        options.version_match = Some(VersionMatch::NotOlderThan);
        let timeout = options.timeout.unwrap_or_default();
        self.streaming_since.get_or_insert(now);
        self.phase = Phase::Streaming(Streaming {
            asked,
            started: now,
            end: now + timeout + self.config.read_margin,
            progress: now,
            warn: now + WARN_EVERY,
            events: 0,
            ordered: false,
            version: ResourceVersion::UNSET,
            gather: Gather::new(self.weigh),
            identities: self.compares().then(Identities::default),
        });
        Step::Watch(options)
    }

    pub(super) fn begin_watch(&mut self, now: Tick) -> Step<T> {
        let options = self.watch_options(self.last.clone());
        let timeout = options.timeout.unwrap_or_default();
        let versioned = !self.last.is_unset() && !self.last.is_any();
        self.phase = Phase::Watching(Watching {
            started: now,
            accepted: false,
            end: now + timeout + self.config.read_margin,
            events: 0,
            ordered: versioned,
            versioned,
        });
        Step::Watch(options)
    }

    fn watch_options(&self, resource_version: ResourceVersion) -> WatchOptions {
        let random = 1.0 + self.config.world.random_fraction();
        let seconds = self.config.watch_timeout.mul_f64(random).as_secs();
        WatchOptions {
            labels: self.config.labels.clone(),
            fields: self.config.fields.clone(),
            shard: self.config.shard.clone(),
            resource_version,
            version_match: None,
            send_initial_events: None,
            allow_bookmarks: true,
            timeout: Some(Duration::from_secs(seconds.max(1))),
        }
    }

    pub(super) fn first_page(&self, now: Tick) -> Listing<T> {
        let asked = if self.unavailable {
            ResourceVersion::UNSET
        } else if self.last.is_unset() {
            ResourceVersion::ANY
        } else {
            self.last.clone()
        };
        let limit = match self.config.page_size {
            Some(size) => Some(size),
            None if self.paginated => Some(PAGE),
            // A limit beside a version would make the server pass by its cache.
            None if !asked.is_unset() && !asked.is_any() => None,
            None => Some(PAGE),
        };
        self.listing(limit, asked, now)
    }

    pub(super) fn listing(
        &self,
        limit: Option<u32>,
        asked: ResourceVersion,
        now: Tick,
    ) -> Listing<T> {
        // KEP-2340: a version with a limit and no match means exactly that version. A relist would get the state that it
        // has already, and the watch from there would be refused again, for as long as the server remembers that state.
        let exact = limit.is_some() && !asked.is_unset() && !asked.is_any();
        let version_match = exact.then_some(VersionMatch::NotOlderThan);
        Listing {
            started: now,
            first: ListOptions { version_match, ..self.list_options(limit, asked) },
            token: None,
            whole: false,
            pages: 0,
            version: ResourceVersion::UNSET,
            meta: None,
            progress: now,
            gather: Gather::new(self.weigh),
        }
    }

    fn list_options(&self, limit: Option<u32>, resource_version: ResourceVersion) -> ListOptions {
        ListOptions {
            labels: self.config.labels.clone(),
            fields: self.config.fields.clone(),
            shard: self.config.shard.clone(),
            resource_version,
            limit,
            ..ListOptions::default()
        }
    }

    /// The first page of a list of exactly this state.
    pub(super) fn exact_list(&self, resource_version: ResourceVersion) -> ListOptions {
        let limit = self.config.page_size.unwrap_or(PAGE);
        let version_match = Some(VersionMatch::Exact);
        ListOptions { version_match, ..self.list_options(Some(limit), resource_version) }
    }

    pub(super) fn begin_page(&mut self, mut listing: Listing<T>, now: Tick) -> Step<T> {
        let mut options = listing.first.clone();
        if let Some(token) = &listing.token {
            // k/k#85221: a token has its version in itself, and the server refuses both.
            options.continue_token = Some(token.clone());
            options.resource_version = ResourceVersion::UNSET;
            options.version_match = None;
        }
        listing.progress = now;
        self.phase = Phase::Listing(listing);
        Step::List(options)
    }
}
