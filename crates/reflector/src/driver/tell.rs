//! What others are told: status, metrics, log, hook.

use kubestrata_api_types::{Event, Object, ResourceVersion, Tick, Update};
use tokio::time::Instant;

use super::Reflector;
use crate::state::Note;
use crate::status::{Checked, Failing, LastCheck, LastFailure};
use crate::{Failure, Recovery};

impl<T: Object> Reflector<T> {
    pub(super) fn emit(&mut self, update: Update<T>, now: Tick) -> Update<T> {
        let now = self.origin + now.since_origin();
        self.status.change(|status| {
            match &update {
                Update::Replace(_) => status.states += 1,
                Update::Event(event) => {
                    status.last_event = Some(now);
                    if matches!(event, Event::Bookmark(_)) {
                        status.last_bookmark = Some(now);
                    }
                }
            }
            status.resource_version.clone_from(self.machine.version());
        });
        self.config.metrics.version(self.machine.version());
        self.show_gathered();
        update
    }

    /// Turns the machine's notes into status, metrics, log and hook.
    pub(super) fn tell(&mut self) {
        let mut told = false;
        while let Some(note) = self.machine.note() {
            told = true;
            let span = self.spans.running();
            span.in_scope(|| self.tell_one(note, Instant::now()));
        }
        let phase = self.machine.public_phase();
        if told || self.phase != phase {
            self.phase = phase;
            self.status.change(|status| {
                status.phase = phase;
                status.fallback = self.machine.fallback();
            });
        }
    }

    fn tell_one(&mut self, note: Note, now: Instant) {
        let resource = &self.collection.resource;
        let metrics = &self.config.metrics;
        match note {
            Note::Failed(failure) => self.failed(failure, now),
            Note::Live => {
                metrics.live.set(1.0);
                tracing::debug!(%resource, version = %self.machine.version(), "live");
                self.status.change(|status| {
                    status.live_since.get_or_insert(now);
                    status.failing = None;
                });
            }
            Note::Ended => tracing::debug!(%resource, "the watch ended; opening it again"),
            Note::State => {
                let version = self.machine.version();
                tracing::debug!(%resource, %version, "state complete");
                metrics.version(version);
                self.status.change(|status| status.waiting_for_end_bookmark = None);
            }
            Note::Rewound(before) => {
                let version = self.machine.version();
                tracing::warn!(%resource, %before, %version, "the server went back in time");
                metrics.rewinds.increment();
                self.status.change(|status| status.epoch = self.machine.epoch());
            }
            Note::Over { during, lasted, items } => {
                self.spans.over(items);
                metrics.over(during, lasted, items);
            }
            Note::ShardIgnored => {
                tracing::warn!(%resource, "the server does not know shards and sends everything");
                self.status.change(|status| status.shard_ignored = true);
            }
            Note::NoEndBookmark(since) => {
                let since = self.origin + since.since_origin();
                let gathered = self.machine.gathered();
                tracing::warn!(%resource, waited = ?(now - since), gathered, "no end bookmark yet");
                self.status.change(|status| status.waiting_for_end_bookmark = Some(since));
            }
            Note::Checked(version, found) => self.checked(version, found, now),
        }
    }

    fn checked(&self, resource_version: ResourceVersion, found: Checked, at: Instant) {
        let resource = &self.collection.resource;
        self.config.metrics.checked(&found);
        match &found {
            Checked::Equal(objects) => {
                tracing::debug!(%resource, %resource_version, objects, "the streamed state is right");
            }
            Checked::Differs(difference) => {
                tracing::error!(%resource, %resource_version, %difference, "the streamed state is wrong");
            }
            Checked::Unknown(error) => {
                let error = &**error as &dyn std::error::Error;
                tracing::debug!(%resource, %resource_version, error, "the streamed state was not compared");
            }
        }
        self.status.change(|status| {
            status.last_check = Some(LastCheck { resource_version, found, at });
        });
    }

    /// Shows how far the state is that is on its way.
    pub(super) fn show_gathered(&mut self) {
        let gathered = self.machine.gathered();
        if std::mem::replace(&mut self.gathered, gathered) != gathered {
            self.status.gathered(gathered);
        }
    }

    fn failed(&mut self, failure: Failure, now: Instant) {
        let metrics = &self.config.metrics;
        metrics.failed(&failure);
        metrics.live.set(0.0);
        let Failure { during, recovery, error } = &failure;
        let resource = &self.collection.resource;
        if matches!(recovery, Recovery::Reopen) {
            tracing::debug!(%resource, %during, %recovery, error = &**error as &dyn std::error::Error);
        } else {
            tracing::warn!(%resource, %during, %recovery, error = &**error as &dyn std::error::Error);
        }
        self.status.change(|status| {
            status.live_since = None;
            status.waiting_for_end_bookmark = None;
            let failing = status.failing.get_or_insert(Failing { since: now, count: 0 });
            failing.count = failing.count.saturating_add(1);
            status.last_failure = Some(LastFailure { failure: failure.clone(), at: now });
        });
        if let Some(hook) = &self.config.on_failure {
            hook.call(&failure);
        }
    }
}
