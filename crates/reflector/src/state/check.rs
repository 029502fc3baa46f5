//! The comparison of a streamed state with a list at its exact version. No clock, no IO.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{
    Event, ListMeta, ListOptions, ListPart, Object, ObjectKey, ResourceVersion, Tick,
};

use crate::failure::{Class, Fault};
use crate::status::{Checked, Difference};
use crate::{Config, ReflectorError};

/// Between two tries (client-go polls at this pace).
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What was streamed: for each key a digest of uid and version.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    objects: HashMap<ObjectKey, Identity>,
    /// Events that named no object.
    nameless: usize,
}

#[derive(Debug)]
struct Identity {
    /// `None` if the object could not be read: it is there, and nothing else is known of it.
    digest: Option<u64>,
    /// The try that has seen it in the list.
    seen: u32,
}

impl Identities {
    /// Follows a streaming list.
    pub(crate) fn follow<T: Object>(&mut self, event: &Event<T>) {
        match event {
            Event::Added(object) | Event::Modified(object) => {
                let identity = Identity { digest: Some(digest(object)), seen: 0 };
                self.objects.insert(object.key(), identity);
            }
            Event::Deleted(object) => drop(self.objects.remove(&object.key())),
            Event::Unreadable(unreadable) => match &unreadable.key {
                Some(key) => {
                    self.objects.insert(key.clone(), Identity { digest: None, seen: 0 });
                }
                None => self.nameless += 1,
            },
            Event::Bookmark(_) => {}
        }
    }
}

fn digest(object: &impl Object) -> u64 {
    // Without random keys, so that a run can be replayed. Nobody gains by making two versions of his object look alike.
    let mut hasher = DefaultHasher::new();
    object.uid().hash(&mut hasher);
    object.resource_version().hash(&mut hasher);
    hasher.finish()
}

/// What the driver does next for a comparison.
#[derive(Debug)]
pub(crate) enum CheckStep {
    /// Begin this list; drop whatever runs for the comparison.
    List(ListOptions),
    /// Wait for what runs, until this time.
    Read(Tick),
    /// Drop whatever runs, and wait until this time.
    Sleep(Tick),
}

/// One comparison. `Page` leads to `Listing`, that to the next page, to the result or, by a failure, to `Waiting`.
#[derive(Debug)]
pub(crate) struct Check {
    streamed: Identities,
    /// The request of the first page.
    first: ListOptions,
    phase: Phase,
    /// The try that runs, from 1.
    attempt: u32,
    pages: u32,
    difference: Difference,
    /// Objects of the list that runs that could not be read and named none.
    nameless: usize,
}

#[derive(Debug)]
enum Phase {
    /// A page is to be asked for, with this token.
    Page(Option<String>),
    /// A page runs.
    Listing { token: Option<String>, meta: Option<ListMeta>, progress: Tick },
    /// A delay runs.
    Waiting(Tick),
}

impl Check {
    /// `first` asks for the exact version that was streamed.
    pub(super) fn new(streamed: Identities, first: ListOptions) -> Self {
        Self {
            streamed,
            first,
            phase: Phase::Page(None),
            attempt: 1,
            pages: 0,
            difference: Difference::default(),
            nameless: 0,
        }
    }

    pub(super) fn version(&self) -> &ResourceVersion {
        &self.first.resource_version
    }

    pub(super) fn step(&mut self, config: &Config, now: Tick) -> CheckStep {
        match &self.phase {
            Phase::Page(token) => {
                let mut options = self.first.clone();
                if token.is_some() {
                    // The token has the version in itself.
                    options.continue_token.clone_from(token);
                    options.resource_version = ResourceVersion::UNSET;
                    options.version_match = None;
                }
                self.phase = Phase::Listing { token: token.clone(), meta: None, progress: now };
                CheckStep::List(options)
            }
            Phase::Listing { progress, .. } => CheckStep::Read(*progress + config.list_stall),
            Phase::Waiting(until) => CheckStep::Sleep(*until),
        }
    }

    pub(super) fn on_part<T: Object>(&mut self, part: ListPart<T>, now: Tick) {
        let Phase::Listing { meta, progress, .. } = &mut self.phase else {
            debug_assert!(false, "only lists bring parts");
            return;
        };
        *progress = now;
        match part {
            ListPart::Item(object) => self.compare(object.key(), Some(digest(&object))),
            ListPart::Unreadable(unreadable) => match unreadable.key {
                Some(key) => self.compare(key, None),
                None => self.nameless += 1,
            },
            ListPart::Meta(found) => *meta = Some(found),
        }
    }

    fn compare(&mut self, key: ObjectKey, listed: Option<u64>) {
        match self.streamed.objects.entry(key) {
            Entry::Occupied(mut entry) => {
                let streamed = entry.get_mut();
                streamed.seen = self.attempt;
                if let (Some(streamed), Some(listed)) = (streamed.digest, listed)
                    && streamed != listed
                {
                    self.difference.different += 1;
                    self.difference.name(entry.key());
                }
            }
            Entry::Vacant(entry) => {
                self.difference.missing += 1;
                self.difference.name(entry.key());
            }
        }
    }

    /// The page has ended; the result, if it was the last one.
    pub(super) fn on_list_end(&mut self, config: &Config, now: Tick) -> Option<Checked> {
        let Phase::Listing { token, meta, .. } = &mut self.phase else {
            debug_assert!(false, "only lists end so");
            return None;
        };
        self.pages += 1;
        let Some(meta) = meta.take() else {
            return self.on_error(
                Fault::own(Class::Other, ReflectorError::NoListMeta),
                config,
                now,
            );
        };
        let next = meta.continue_token.filter(|next| !next.is_empty());
        if next.is_none() {
            return Some(self.conclude());
        }
        let error = if next == *token {
            ReflectorError::PageLeadsToItself
        } else if self.pages >= config.list_pages {
            ReflectorError::TooManyPages(config.list_pages)
        } else {
            self.phase = Phase::Page(next);
            return None;
        };
        self.on_error(Fault::own(Class::Limit, error), config, now)
    }

    fn conclude(&mut self) -> Checked {
        let mut extra: Vec<_> = self
            .streamed
            .objects
            .iter()
            .filter(|(_, identity)| identity.seen != self.attempt)
            .map(|(key, _)| key.clone())
            .collect();
        extra.sort_unstable();
        let mut difference = std::mem::take(&mut self.difference);
        difference.extra = extra.len();
        extra.iter().for_each(|key| difference.name(key));
        // What cannot be named on one side may be what the other side has too much.
        if self.nameless + self.streamed.nameless > 0 && difference.different == 0 {
            let nameless = self.nameless + self.streamed.nameless;
            if difference.missing + difference.extra <= nameless {
                return Checked::Unknown(Arc::new(ReflectorError::NotComparable(nameless)));
            }
        }
        if difference.is_none() {
            Checked::Equal(self.streamed.objects.len())
        } else {
            Checked::Differs(difference)
        }
    }

    /// What runs has failed: again, or the result if there is no sense in that.
    pub(super) fn on_error(&mut self, fault: Fault, config: &Config, now: Tick) -> Option<Checked> {
        let hopeless = matches!(fault.class, Class::Expired | Class::Gone | Class::Limit);
        if hopeless || self.attempt >= config.consistency_tries {
            return Some(Checked::Unknown(fault.error));
        }
        self.attempt += 1;
        self.pages = 0;
        self.nameless = 0;
        self.difference = Difference::default();
        let cap = config.backoff.retry_after_cap;
        self.phase =
            Phase::Waiting(now + AGAIN_AFTER.max(fault.after.unwrap_or_default().min(cap)));
        None
    }

    /// The time that the last step gave has passed.
    pub(super) fn on_deadline(&mut self, config: &Config, now: Tick) -> Option<Checked> {
        match &self.phase {
            Phase::Waiting(until) if now >= *until => {
                self.phase = Phase::Page(None);
                None
            }
            Phase::Listing { progress, .. } if now >= *progress + config.list_stall => {
                let error = ReflectorError::ListStalled(config.list_stall);
                self.on_error(Fault::own(Class::Other, error), config, now)
            }
            _ => None,
        }
    }
}
