//! What the machine makes of what comes.

use super::{
    Bookmark, Check, Class, Consistency, During, Event, Fault, ListPart, Listing, Machine, Note,
    Object, Phase, ReflectorError, ResourceVersion, Streaming, Tick, Update, Watching,
};

impl<T: Object> Machine<T> {
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

    /// Whether [`Machine::on_raw`] wants to see the events of the watch that runs.
    pub(crate) fn wants_raw(&self) -> bool {
        matches!(&self.phase, Phase::Streaming(streaming) if streaming.identities.is_some())
    }

    /// An event as the server sent it, before the transform. [`Machine::on_event`] follows.
    pub(crate) fn on_raw(&mut self, event: &Event<T>) {
        let foreign = self.is_foreign(event);
        if let Phase::Streaming(Streaming { identities: Some(identities), .. }) = &mut self.phase
            && !foreign
        {
            identities.follow(event);
        }
    }

    pub(crate) fn on_event(&mut self, event: Event<T>, now: Tick) {
        let foreign = self.is_foreign(&event);
        if foreign {
            self.ignored_shard();
        }
        match &mut self.phase {
            Phase::Streaming(streaming) => {
                if let Some(end) = streaming.on_event(event, foreign, now) {
                    self.streamed(end, now);
                } else if let Some(error) = streaming.gather.excess(&self.config) {
                    self.on_error(Fault::own(Class::Limit, error), now);
                }
            }
            Phase::Watching(watching) => {
                let versioned = watching.versioned;
                let version = watching.on_event(&event);
                let proven = version.is_some();
                if let Some(version) = version {
                    if versioned && version.is_at_least(&self.last) == Some(false) {
                        let error =
                            ReflectorError::WentBack { last: self.last.clone(), got: version };
                        return self.on_error(Fault::own(Class::WentBack, error), now);
                    }
                    advance(&mut self.last, version);
                }
                if !foreign {
                    self.ready.push_back(Update::Event(event));
                } else if proven {
                    // Whoever waits for a version must not wait for an object of this shard.
                    let resource_version = self.last.clone();
                    let bookmark = Bookmark { resource_version, initial_events_end: false };
                    self.ready.push_back(Update::Event(Event::Bookmark(bookmark)));
                }
            }
            _ => debug_assert!(false, "only watches bring events"),
        }
    }

    /// Whether an object is of another shard than the one asked for.
    fn is_foreign(&self, event: &Event<T>) -> bool {
        match (&self.config.shard, event.object()) {
            (Some(shard), Some(object)) => !shard.matches(object),
            _ => false,
        }
    }

    fn ignored_shard(&mut self) {
        if !std::mem::replace(&mut self.shard_ignored, true) {
            self.notes.push_back(Note::ShardIgnored);
        }
    }

    pub(crate) fn on_part(&mut self, part: ListPart<T>, now: Tick) {
        let foreign = match (&self.config.shard, &part) {
            (Some(shard), ListPart::Item(object)) => !shard.matches(object),
            _ => false,
        };
        if foreign {
            self.ignored_shard();
        }
        let Phase::Listing(listing) = &mut self.phase else {
            debug_assert!(false, "only lists bring parts");
            return;
        };
        listing.progress = now;
        match part {
            ListPart::Item(_) if foreign => {}
            ListPart::Item(object) => drop(listing.gather.put(object)),
            ListPart::Unreadable(unreadable) => listing.gather.note(unreadable),
            ListPart::Meta(meta) => listing.meta = Some(meta),
        }
        if let Some(error) = listing.gather.excess(&self.config) {
            self.on_error(Fault::own(Class::Limit, error), now);
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
        match self.next_page(&mut listing) {
            Ok(true) => self.phase = Phase::BeginPage(listing),
            Ok(false) => self.listed(listing, now),
            Err((class, error)) => {
                self.phase = Phase::Listing(listing);
                self.on_error(Fault::own(class, error), now);
            }
        }
    }

    /// Whether the page that has ended leads to a next one.
    fn next_page(&self, listing: &mut Listing<T>) -> Result<bool, (Class, ReflectorError)> {
        let meta = listing.meta.take().ok_or((Class::Other, ReflectorError::NoListMeta))?;
        listing.pages += 1;
        if listing.pages == 1 {
            listing.version = meta.resource_version;
            if let Some(error) = older(&listing.first.resource_version, &listing.version) {
                return Err((Class::TooLarge, error));
            }
        }
        let next = meta.continue_token.filter(|token| !token.is_empty());
        let Some(next) = next else { return Ok(false) };
        if listing.token.as_ref() == Some(&next) {
            return Err((Class::Limit, ReflectorError::PageLeadsToItself));
        }
        if listing.pages >= self.config.list_pages {
            let error = ReflectorError::TooManyPages(self.config.list_pages);
            return Err((Class::Limit, error));
        }
        listing.token = Some(next);
        Ok(true)
    }

    /// A plain list is complete.
    fn listed(&mut self, mut listing: Listing<T>, now: Tick) {
        // client-go: pages at version "0" mean that there is no watch cache, so whole lists would be dear.
        self.paginated |= listing.first.resource_version.is_any() && listing.pages > 1;
        if std::mem::take(&mut self.falling_back) {
            // Only now is it known that the streaming list failed, and not the server.
            self.fallback_until = Some(now + self.config.fallback_for);
        }
        self.over(During::List, listing.started, listing.gather.len(), now);
        let version = std::mem::take(&mut listing.version);
        self.complete(Update::Replace(listing.gather.take(version)));
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
        if let Some(error) = older(&streaming.asked, &version) {
            self.phase = Phase::Streaming(streaming);
            return self.on_error(Fault::own(Class::TooLarge, error), now);
        }
        let known = !version.is_unset() && !version.is_any();
        self.over(During::StreamingList, streaming.started, streaming.gather.len(), now);
        self.complete(Update::Replace(streaming.gather.take(version.clone())));
        if let Some(identities) = streaming.identities.take()
            && known
        {
            self.check = Some(Check::new(identities, self.exact_list(version)));
        }
        self.phase = Phase::Watching(Watching {
            started: streaming.started,
            accepted: true,
            end: streaming.end,
            events: streaming.events,
            ordered: known,
            versioned: known,
        });
        self.live(now);
    }

    fn complete(&mut self, state: Update<T>) {
        if let Update::Replace(snapshot) = &state {
            let before = std::mem::replace(&mut self.last, snapshot.resource_version.clone());
            if self.last.is_at_least(&before) == Some(false) {
                self.epoch += 1;
                self.notes.push_back(Note::Rewound(before));
            }
        }
        self.unavailable = false;
        self.tries = 0;
        self.streaming_since = None;
        self.check = None;
        self.ready.push_back(state);
        self.notes.push_back(Note::State);
    }

    fn live(&mut self, now: Tick) {
        self.ladder.healthy(now);
        self.notes.push_back(Note::Live);
    }

    /// Whether streamed states are to be compared with a list.
    pub(super) fn compares(&self) -> bool {
        self.config.consistency != Consistency::Trust
    }
}

impl<T: Object> Streaming<T> {
    /// Takes an event into the state; gives the bookmark that ends it.
    fn on_event(&mut self, event: Event<T>, foreign: bool, now: Tick) -> Option<Bookmark> {
        if counts(&event) {
            self.events += 1;
        }
        self.ordered |= !matches!(event, Event::Added(_) | Event::Unreadable(_));
        if self.ordered
            && let Some(version) = version_of(&event)
        {
            advance(&mut self.version, version);
        }
        if foreign {
            self.progress = now;
            return None;
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

pub(super) fn version_of<T: Object>(event: &Event<T>) -> Option<ResourceVersion> {
    let version = match event {
        Event::Added(object) | Event::Modified(object) | Event::Deleted(object) => {
            object.resource_version()
        }
        Event::Bookmark(bookmark) => bookmark.resource_version.clone(),
        Event::Unreadable(unreadable) => unreadable.resource_version.clone(),
    };
    // No object is ever of version "0", and to go on from it would be to begin anew.
    (!version.is_unset() && !version.is_any()).then_some(version)
}

/// The error, if a state is older than the one asked for: its server does not keep its word, and to take the state would
/// be to go back in time.
fn older(asked: &ResourceVersion, got: &ResourceVersion) -> Option<ReflectorError> {
    (got.is_at_least(asked) == Some(false))
        .then(|| ReflectorError::OlderThanAsked { asked: asked.clone(), got: got.clone() })
}

/// Within one epoch a version never goes back; where versions cannot be compared, the newer word counts.
fn advance(last: &mut ResourceVersion, version: ResourceVersion) {
    if version.is_at_least(last) != Some(false) {
        *last = version;
    }
}
