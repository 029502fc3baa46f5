//! What the machine does about failures.

use super::{
    Class, Duration, During, Failure, Fault, Listing, Machine, Note, Object, Phase, Recovery,
    ReflectorError, ResourceVersion, SHORT, SHORT_IN_A_ROW, Streaming, Then, Tick, WARN_EVERY,
    Watching,
};

impl<T: Object> Machine<T> {
    /// What runs has failed: its request or its stream.
    pub(crate) fn on_error(&mut self, fault: Fault, now: Tick) {
        match std::mem::replace(&mut self.phase, Phase::Begin) {
            Phase::Streaming(streaming) => self.streaming_failed(&streaming, fault, now),
            Phase::Listing(listing) => self.list_failed(listing, fault, now),
            Phase::Watching(watching) => self.watch_failed(&watching, fault, now),
            other => {
                debug_assert!(false, "nothing runs that could fail");
                self.phase = other;
            }
        }
    }

    /// The watch that runs has ended without error.
    pub(crate) fn on_watch_end(&mut self, now: Tick) {
        match &self.phase {
            Phase::Streaming(streaming) => {
                let lived = now.since(streaming.started);
                let fault = if streaming.events == 0 && lived < SHORT {
                    Fault::own(Class::VeryShort, ReflectorError::VeryShort(lived))
                } else {
                    Fault::own(Class::Cut, ReflectorError::NoEndBookmark(streaming.events))
                };
                self.on_error(fault, now);
            }
            Phase::Watching(watching) => {
                let lived = now.since(watching.started);
                if watching.events == 0 && lived < SHORT {
                    let error = ReflectorError::VeryShort(lived);
                    self.on_error(Fault::own(Class::VeryShort, error), now);
                    return;
                }
                self.short = if lived < SHORT { self.short + 1 } else { 0 };
                if self.short >= SHORT_IN_A_ROW {
                    let error = ReflectorError::Short(std::mem::take(&mut self.short));
                    self.retry_watch(Fault::own(Class::Cut, error), None, now);
                } else {
                    self.phase = Phase::BeginWatch;
                    self.notes.push_back(Note::Ended);
                }
            }
            _ => debug_assert!(false, "only watches end so"),
        }
    }

    /// The time that the last step gave has passed.
    pub(crate) fn on_deadline(&mut self, now: Tick) {
        if now < self.deadline() {
            return;
        }
        match &mut self.phase {
            Phase::Waiting { then: Then::Begin, .. } => self.phase = Phase::Begin,
            Phase::Waiting { then: Then::Watch, .. } => self.phase = Phase::BeginWatch,
            Phase::Streaming(streaming) => {
                if now >= streaming.end {
                    self.on_watch_end(now);
                } else if now >= streaming.progress + self.config.streaming_stall {
                    let error = ReflectorError::Stalled(self.config.streaming_stall);
                    self.on_error(Fault::own(Class::Other, error), now);
                } else {
                    streaming.warn = now + WARN_EVERY;
                    self.notes.push_back(Note::NoEndBookmark(streaming.started));
                }
            }
            Phase::Listing(_) => {
                let error = ReflectorError::ListStalled(self.config.list_stall);
                self.on_error(Fault::own(Class::Other, error), now);
            }
            Phase::Watching(watching) => {
                let fault = if watching.accepted {
                    let error = ReflectorError::Outlived(self.config.read_margin);
                    Fault::own(Class::Cut, error)
                } else {
                    let error = ReflectorError::NotAccepted(self.config.open_timeout);
                    Fault::own(Class::Refused, error)
                };
                self.on_error(fault, now);
            }
            Phase::Begin | Phase::BeginList | Phase::BeginPage(_) | Phase::BeginWatch => {}
        }
    }

    fn streaming_failed(&mut self, streaming: &Streaming<T>, fault: Fault, now: Tick) {
        let during = During::StreamingList;
        match fault.class {
            Class::Expired | Class::Gone | Class::TooLarge if !streaming.asked.is_unset() => {
                self.unavailable = true;
                self.phase = Phase::Begin;
                self.failed(during, Recovery::AskForLatest, fault);
            }
            // The plain list would be refused too.
            Class::Refused => self.retry(during, fault, None, now),
            Class::Throttled(_)
            | Class::Expired
            | Class::Gone
            | Class::TooLarge
            | Class::Connection
            | Class::Cut => self.try_streaming_again(fault, now),
            Class::Other if streaming.events > 0 && fault_is_foreign(&fault) => {
                self.try_streaming_again(fault, now);
            }
            Class::Status | Class::VeryShort | Class::Other => self.fall_back(fault),
        }
    }

    fn try_streaming_again(&mut self, fault: Fault, now: Tick) {
        self.tries += 1;
        if self.tries >= self.config.streaming_tries {
            self.fall_back(fault);
        } else {
            let after = match fault.class {
                Class::Throttled(after) => after,
                _ => None,
            };
            self.retry(During::StreamingList, fault, after, now);
        }
    }

    fn fall_back(&mut self, fault: Fault) {
        self.tries = 0;
        self.falling_back = true;
        self.phase = Phase::BeginList;
        self.failed(During::StreamingList, Recovery::FallBack, fault);
    }

    fn list_failed(&mut self, listing: Listing<T>, fault: Fault, now: Tick) {
        let during = During::List;
        let first = &listing.first;
        match fault.class {
            Class::Expired if listing.token.is_some() && !listing.whole => {
                // The pager of client-go: what has expired is the token, not the version first asked for.
                let mut again = self.listing(None, first.resource_version.clone(), now);
                again.whole = true;
                self.phase = Phase::BeginPage(again);
                self.failed(during, Recovery::ListWhole, fault);
            }
            Class::Expired | Class::Gone | Class::TooLarge
                if !first.resource_version.is_unset() =>
            {
                self.unavailable = true;
                let again = self.listing(first.limit, ResourceVersion::UNSET, now);
                self.phase = Phase::BeginPage(again);
                self.failed(during, Recovery::AskForLatest, fault);
            }
            _ => {
                // A server that has gone back waits for the version, says that it has not come, and is asked once more by a
                // transport that retries: from here it looks like silence. The latest state is always to be had.
                let waits = !first.resource_version.is_any() && listing.pages == 0;
                if waits && stalled(&fault) {
                    self.unavailable = true;
                }
                // The streaming list is not to blame, so it may be tried again.
                self.falling_back = false;
                let after = match fault.class {
                    Class::Throttled(after) => after,
                    _ => None,
                };
                self.relist(during, fault, after, now);
            }
        }
    }

    fn watch_failed(&mut self, watching: &Watching, fault: Fault, now: Tick) {
        let lived = now.since(watching.started);
        match fault.class {
            Class::Throttled(after) => self.retry_watch(fault, after, now),
            Class::Refused => self.retry_watch(fault, None, now),
            // client-go relists here. The version is as good as it was before the network failed, and if it is not, the
            // server will say so.
            Class::Connection if !watching.accepted => self.retry_watch(fault, None, now),
            Class::Cut => self.reopen(fault, lived, now),
            // A broken connection says nothing about the state; but a stream that breaks at once each time may hold
            // what no reader can pass, and only a list gets around that.
            Class::Other | Class::Connection
                if watching.accepted && (watching.events > 0 || lived >= SHORT) =>
            {
                self.reopen(fault, lived, now);
            }
            _ => self.relist(During::Watch, fault, None, now),
        }
    }

    fn reopen(&mut self, fault: Fault, lived: Duration, now: Tick) {
        self.short = if lived < SHORT { self.short + 1 } else { 0 };
        if self.short >= SHORT_IN_A_ROW {
            self.short = 0;
            self.retry_watch(fault, None, now);
        } else {
            self.phase = Phase::BeginWatch;
            self.failed(During::Watch, Recovery::Reopen, fault);
        }
    }

    fn retry_watch(&mut self, fault: Fault, after: Option<Duration>, now: Tick) {
        let delay = self.delay(after, now);
        self.phase = Phase::Waiting { until: now + delay, then: Then::Watch };
        self.failed(During::Watch, Recovery::Retry(delay), fault);
    }

    fn retry(&mut self, during: During, fault: Fault, after: Option<Duration>, now: Tick) {
        let delay = self.delay(after, now);
        self.phase = Phase::Waiting { until: now + delay, then: Then::Begin };
        self.failed(during, Recovery::Retry(delay), fault);
    }

    fn relist(&mut self, during: During, fault: Fault, after: Option<Duration>, now: Tick) {
        let delay = self.delay(after, now);
        self.phase = Phase::Waiting { until: now + delay, then: Then::Begin };
        self.failed(during, Recovery::Relist(delay), fault);
    }

    /// One step of the ladder, or what the server asks for if that is more, within the ladder's cap.
    fn delay(&mut self, after: Option<Duration>, now: Tick) -> Duration {
        let delay = self.ladder.failed(now, &*self.config.world);
        delay.max(after.unwrap_or_default().min(self.ladder.cap()))
    }

    fn failed(&mut self, during: During, recovery: Recovery, fault: Fault) {
        self.notes.push_back(Note::Failed(Failure::new(during, recovery, fault)));
    }
}

/// Whether the error came from below, and is not the reflector's own finding.
fn fault_is_foreign(fault: &Fault) -> bool {
    !fault.error.is::<ReflectorError>()
}

/// Whether a list brought nothing for too long.
fn stalled(fault: &Fault) -> bool {
    matches!(fault.error.downcast_ref(), Some(ReflectorError::ListStalled(_)))
}
