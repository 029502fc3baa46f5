//! When a watch owes a bookmark, and when it is over.

use std::time::Duration;

use kubestrata_api_types::FOREVER;
use tokio::time::Instant;

/// A last bookmark goes out this long before the end (kube-apiserver `nextBookmarkTime`).
const BEFORE_END: Duration = Duration::from_secs(2);

/// The due times of one watch.
#[derive(Debug)]
pub(crate) struct Schedule {
    deadline: Instant,
    /// `None` without bookmarks.
    interval: Option<Duration>,
    bookmark: Instant,
}

impl Schedule {
    pub(crate) fn new(now: Instant, interval: Option<Duration>, timeout: Duration) -> Self {
        let mut schedule = Self { deadline: now + timeout.min(FOREVER), interval, bookmark: now };
        schedule.plan(now);
        schedule
    }

    /// The time at which there is something to do.
    pub(crate) fn next(&self) -> Instant {
        match self.interval {
            Some(_) => self.bookmark.min(self.deadline),
            None => self.deadline,
        }
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// Whether a bookmark is due; plans the one after it.
    pub(crate) fn take_bookmark(&mut self, now: Instant) -> bool {
        let due = self.interval.is_some() && now >= self.bookmark;
        if due {
            self.plan(now);
        }
        due
    }

    fn plan(&mut self, now: Instant) {
        let Some(interval) = self.interval else { return };
        let regular = now + interval.min(FOREVER);
        self.bookmark = match self.deadline.checked_sub(BEFORE_END) {
            Some(last) if last > now && regular > last => last,
            _ => regular,
        };
    }
}
