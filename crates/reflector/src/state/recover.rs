//! What the machine does about failures.

use super::{
    Check, CheckStep, Checked, Class, Consistency, Duration, During, Failure, Fault, ListPart,
    Listing, Machine, Note, Object, Phase, Recovery, ReflectorError, ResourceVersion, SHORT,
    SHORT_IN_A_ROW, Streaming, Then, Tick, WARN_EVERY, Watching,
};

impl<T: Object> Machine<T> {
    /// What runs has failed: its request or its stream.
    pub(crate) fn on_error(&mut self, fault: Fault, now: Tick) {
        match std::mem::replace(&mut self.phase, Phase::Begin) {
            Phase::Streaming(streaming) => {
                self.over(During::StreamingList, streaming.started, streaming.gather.len(), now);
                self.streaming_failed(&streaming, fault, now);
            }
            Phase::Listing(listing) => {
                self.over(During::List, listing.started, listing.gather.len(), now);
                self.list_failed(listing, fault, now);
            }
            Phase::Watching(watching) => {
                self.watch_over(&watching, now);
                self.watch_failed(&watching, fault, now);
            }
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
                let items = watching.events;
                self.notes.push_back(Note::Over { during: During::Watch, lasted: lived, items });
                self.short = if lived < SHORT { self.short + 1 } else { 0 };
                if self.short >= SHORT_IN_A_ROW {
                    let error = ReflectorError::Short(std::mem::take(&mut self.short));
                    self.retry_watch(Fault::own(Class::Cut, error), now);
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
        let tried_until = match &self.phase {
            Phase::Streaming(streaming) => self.streaming_until(streaming),
            _ => now,
        };
        match &mut self.phase {
            Phase::Waiting { then: Then::Begin, .. } => self.phase = Phase::Begin,
            Phase::Waiting { then: Then::Watch, .. } => self.phase = Phase::BeginWatch,
            Phase::Streaming(streaming) => {
                if now >= streaming.end {
                    self.on_watch_end(now);
                } else if now >= streaming.progress + self.config.streaming_stall {
                    let error = ReflectorError::Stalled(self.config.streaming_stall);
                    self.on_error(Fault::own(Class::Other, error), now);
                } else if now >= tried_until {
                    let error = ReflectorError::StreamingTooLong(self.config.streaming_time);
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
            // The plain list would be refused too, and the server has said nothing yet.
            Class::Refused => {
                self.streaming_since = None;
                self.retry(during, fault, now);
            }
            // The plain list would bring as much.
            Class::Limit => self.retry(during, fault, now),
            Class::Throttled
            | Class::Expired
            | Class::Gone
            | Class::TooLarge
            | Class::Connection
            | Class::Cut => self.try_streaming_again(fault, now),
            Class::Other if streaming.events > 0 && fault_is_foreign(&fault) => {
                self.try_streaming_again(fault, now);
            }
            Class::Status | Class::VeryShort | Class::WentBack | Class::Other => {
                self.fall_back(fault);
            }
        }
    }

    fn try_streaming_again(&mut self, fault: Fault, now: Tick) {
        self.tries += 1;
        let since = self.streaming_since.unwrap_or(now);
        let long_enough = now.since(since) >= self.config.streaming_time;
        if self.tries >= self.config.streaming_tries || long_enough {
            self.fall_back(fault);
        } else {
            self.retry(During::StreamingList, fault, now);
        }
    }

    fn fall_back(&mut self, fault: Fault) {
        self.tries = 0;
        self.streaming_since = None;
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
                self.relist(during, fault, now);
            }
        }
    }

    fn watch_failed(&mut self, watching: &Watching, fault: Fault, now: Tick) {
        let lived = now.since(watching.started);
        match fault.class {
            Class::Throttled | Class::Refused => self.retry_watch(fault, now),
            // client-go relists here. The version is as good as it was before the network failed, and if it is not, the
            // server will say so.
            Class::Connection if !watching.accepted => self.retry_watch(fault, now),
            Class::Cut => self.reopen(fault, lived, now),
            // A broken connection says nothing about the state; but a stream that breaks at once each time may hold
            // what no reader can pass, and only a list gets around that.
            Class::Other | Class::Connection
                if watching.accepted && (watching.events > 0 || lived >= SHORT) =>
            {
                self.reopen(fault, lived, now);
            }
            _ => self.relist(During::Watch, fault, now),
        }
    }

    fn reopen(&mut self, fault: Fault, lived: Duration, now: Tick) {
        self.short = if lived < SHORT { self.short + 1 } else { 0 };
        if self.short >= SHORT_IN_A_ROW {
            self.short = 0;
            self.retry_watch(fault, now);
        } else {
            self.phase = Phase::BeginWatch;
            self.failed(During::Watch, Recovery::Reopen, fault);
        }
    }

    fn retry_watch(&mut self, fault: Fault, now: Tick) {
        let delay = self.wait(Then::Watch, &fault, now);
        self.failed(During::Watch, Recovery::Retry(delay), fault);
    }

    fn retry(&mut self, during: During, fault: Fault, now: Tick) {
        let delay = self.wait(Then::Begin, &fault, now);
        self.failed(during, Recovery::Retry(delay), fault);
    }

    fn relist(&mut self, during: During, fault: Fault, now: Tick) {
        let delay = self.wait(Then::Begin, &fault, now);
        self.failed(during, Recovery::Relist(delay), fault);
    }

    fn wait(&mut self, then: Then, fault: &Fault, now: Tick) -> Duration {
        let delay = self.ladder.failed(fault.after, now, &*self.config.world);
        self.phase = Phase::Waiting { until: now + delay, then };
        delay
    }

    fn failed(&mut self, during: During, recovery: Recovery, mut fault: Fault) {
        if let Some(shard) = &self.config.shard {
            fault.name_shard(shard, during);
        }
        self.notes.push_back(Note::Failed(Failure::new(during, recovery, fault)));
    }

    pub(super) fn over(&mut self, during: During, started: Tick, items: usize, now: Tick) {
        let (lasted, items) = (now.since(started), items as u64);
        self.notes.push_back(Note::Over { during, lasted, items });
    }

    fn watch_over(&mut self, watching: &Watching, now: Tick) {
        // One that was never accepted was no watch.
        if watching.accepted {
            let (lasted, items) = (now.since(watching.started), watching.events);
            self.notes.push_back(Note::Over { during: During::Watch, lasted, items });
        }
    }
}

/// The comparison, which runs beside.
impl<T: Object> Machine<T> {
    /// What to do for it; `None` if none runs.
    pub(crate) fn check_step(&mut self, now: Tick) -> Option<CheckStep> {
        self.check.as_mut().map(|check| check.step(&self.config, now))
    }

    pub(crate) fn on_check_part(&mut self, part: ListPart<T>, now: Tick) {
        let foreign = match (&self.config.shard, &part) {
            (Some(shard), ListPart::Item(object)) => !shard.matches(object),
            _ => false,
        };
        if let Some(check) = &mut self.check
            && !foreign
        {
            check.on_part(part, now);
        }
    }

    pub(crate) fn on_check_list_end(&mut self, now: Tick) {
        self.with_check(now, |check, machine| check.on_list_end(&machine.config, now));
    }

    pub(crate) fn on_check_error(&mut self, fault: Fault, now: Tick) {
        self.with_check(now, |check, machine| check.on_error(fault, &machine.config, now));
    }

    pub(crate) fn on_check_deadline(&mut self, now: Tick) {
        self.with_check(now, |check, machine| check.on_deadline(&machine.config, now));
    }

    fn with_check(&mut self, now: Tick, act: impl FnOnce(&mut Check, &Self) -> Option<Checked>) {
        let Some(mut check) = self.check.take() else { return };
        match act(&mut check, self) {
            Some(found) => self.checked(check.version().clone(), found, now),
            None => self.check = Some(check),
        }
    }

    fn checked(&mut self, resource_version: ResourceVersion, found: Checked, now: Tick) {
        // While a state is on its way already, there is nothing to be done about the old one.
        let following = matches!(
            self.phase,
            Phase::Watching(_) | Phase::BeginWatch | Phase::Waiting { then: Then::Watch, .. }
        );
        if let Checked::Differs(difference) = &found
            && following
            && self.config.consistency == Consistency::Relist
        {
            let difference = difference.clone();
            let version = resource_version.clone();
            let error = ReflectorError::Inconsistent { resource_version: version, difference };
            let fault = Fault::own(Class::Other, error);
            if let Phase::Watching(watching) = std::mem::replace(&mut self.phase, Phase::Begin) {
                self.watch_over(&watching, now);
            }
            // Neither the stream that was wrong nor the version that it gave is to be believed.
            self.falling_back = true;
            self.unavailable = true;
            self.relist(During::Comparison, fault, now);
        }
        self.notes.push_back(Note::Checked(resource_version, found));
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
