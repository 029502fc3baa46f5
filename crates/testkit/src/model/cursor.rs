//! Where one watch of the model stands.

use std::collections::VecDeque;

use kubestrata_api_types::{BoxError, Event, WatchOptions, World as _};

use super::{Shared, Thing, bookmark, expired};

/// What a watch sends next: first the initial events, then what follows them in the history.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    initial: VecDeque<Event<Thing>>,
    /// Events up to this version were sent.
    seen: u64,
    /// The bookmark that ends the initial events is still to be sent. Changes may come before it.
    end_due: bool,
    /// The watch ends after its initial events, without their end bookmark.
    ends_early: bool,
}

impl Cursor {
    /// A cursor for a watch that has just been asked for.
    ///
    /// # Errors
    ///
    /// As kube-apiserver: 504 for a version from the future, 410 for one whose history is forgotten.
    pub(super) fn new(shared: &Shared, options: &WatchOptions) -> Result<Self, BoxError> {
        let state = shared.lock();
        state.has(&options.resource_version)?;
        let asked = options.resource_version.as_u64().filter(|version| *version > 0);
        let streaming = options.send_initial_events == Some(true);
        if let Some(version) = asked
            && !streaming
        {
            return if version < state.compacted {
                Err(expired())
            } else {
                Ok(Self { seen: version, ..Self::default() })
            };
        }
        let mut initial: Vec<_> = state.objects.values().cloned().map(Event::Added).collect();
        // Initial events are in no order of versions.
        for at in (1..initial.len()).rev() {
            let other = shared.world.random() as usize % (at + 1);
            initial.swap(at, other);
        }
        let ends_early = streaming && shared.world.chance(state.faults.omit_end);
        let end_due = streaming && !ends_early && options.allow_bookmarks;
        Ok(Self { initial: initial.into(), seen: state.version, end_due, ends_early })
    }

    pub(super) fn is_over(&self) -> bool {
        self.ends_early && self.initial.is_empty()
    }

    /// A bookmark of what was sent, once the initial events are over.
    pub(super) fn bookmark(&self) -> Option<Result<Event<Thing>, BoxError>> {
        let over = self.initial.is_empty() && !self.end_due && !self.ends_early;
        over.then(|| Ok(bookmark(self.seen, false)))
    }

    /// An event of the past, before `next`; not among the initial events.
    pub(super) fn repeat(&self, shared: &Shared, next: &Event<Thing>) -> Option<Event<Thing>> {
        let version = next.object()?.resource_version.as_u64()?;
        if !self.initial.is_empty() || self.end_due || self.ends_early || version != self.seen {
            return None;
        }
        let state = shared.lock();
        let past = state.history.partition_point(|(past, _)| *past < version);
        let at = usize::try_from(shared.world.below(past as u64)).unwrap_or(0);
        state.history.get(at).filter(|_| past > 0).map(|(_, event)| event.clone())
    }

    /// Sends this event next.
    pub(super) fn put_back(&mut self, event: Event<Thing>) {
        self.initial.push_front(event);
    }

    /// The next event; an error if the history is forgotten; `None` if there is nothing yet.
    pub(super) fn next(&mut self, shared: &Shared) -> Option<Result<Event<Thing>, BoxError>> {
        if let Some(event) = self.initial.pop_front() {
            return Some(Ok(event));
        }
        if self.ends_early {
            return None;
        }
        let state = shared.lock();
        if self.seen < state.compacted {
            return Some(Err(expired()));
        }
        let at = state.history.partition_point(|(version, _)| *version <= self.seen);
        let next = state.history.get(at);
        if self.end_due && (next.is_none() || shared.world.chance(50)) {
            self.end_due = false;
            return Some(Ok(bookmark(self.seen, true)));
        }
        let (version, event) = next?;
        self.seen = *version;
        Some(Ok(event.clone()))
    }
}
