//! The time between a refresh that failed and the next.

use std::time::Duration;

use tokio::time::Instant;

use crate::auth::AuthError;

/// After the first failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// After many: a plugin that comes to itself again is asked no later than this.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Keeps what hangs or fails from being tried by each request again.
#[derive(Debug)]
pub(super) struct Pause {
    error: AuthError,
    length: Duration,
    until: Instant,
}

impl Pause {
    /// After a failure, which follows the one that `last` is of. Each is twice as long as the one before, up to a limit.
    pub(super) fn after(last: Option<Self>, error: AuthError, now: Instant) -> Self {
        let length = last.map_or(PAUSE_MIN, |last| (last.length * 2).min(PAUSE_MAX));
        Self { error, length, until: now + length }
    }

    /// The error, until the pause is over.
    pub(super) fn error(&self, now: Instant) -> Option<AuthError> {
        (now < self.until).then(|| self.error.clone())
    }

    pub(super) fn length(&self) -> Duration {
        self.length
    }
}
