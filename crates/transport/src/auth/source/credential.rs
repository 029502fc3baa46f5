//! What a source gives, and for how long.

use std::time::Duration;

use http::HeaderValue;
use kubestrata_api_types::{FOREVER, Timestamp};
use tokio::time::Instant;

use crate::tls::{Identity, validity};

/// Credentials are renewed this long before they expire, so that they do not expire on their way.
const LEEWAY: Duration = Duration::from_secs(10);

/// But not before the last such part of their life: those of a plugin that live for seconds are else never used.
const LEEWAY_PART: u32 = 10;

/// A plugin does not run again, neither for a refusal nor for their end, as long as credentials are younger than this: a server
/// that refuses all it is sent, or a clock that is ahead, would else have one process started per request.
const YOUNG: Duration = Duration::from_secs(1);

/// What a source gave.
#[derive(Default)]
pub(in crate::auth) struct Made {
    /// The value of `Authorization`, if there is one.
    pub(in crate::auth) header: Option<HeaderValue>,
    /// A client certificate, which belongs to connections, not to requests.
    pub(in crate::auth) identity: Option<Identity>,
    /// How long it is valid: nothing if it has expired already. `None`: until the server refuses it.
    pub(in crate::auth) lifetime: Option<Duration>,
    /// After which time it is to be looked for something newer, although it may be valid for longer.
    pub(in crate::auth) period: Option<Duration>,
}

/// Credentials in use.
#[derive(Debug)]
pub(crate) struct Credential {
    pub(in crate::auth) header: Option<HeaderValue>,
    pub(super) identity: Option<Identity>,
    /// From when and until when the certificate is valid.
    pub(super) validity: Option<(Timestamp, Timestamp)>,
    made: Instant,
    /// When to make new ones; `None` for never.
    due: Option<Instant>,
    /// When these are of no use any more; `None` if that is not known.
    end: Option<Instant>,
}

impl Credential {
    /// Made now.
    pub(super) fn new(made: Made) -> Self {
        let Made { header, identity, lifetime, period } = made;
        let validity = identity.as_ref().and_then(|identity| validity(&identity.certificate));
        let now = Instant::now();
        let after = |time: Duration| now + time.min(FOREVER);
        let renew = lifetime.map(|life| (life - LEEWAY.min(life / LEEWAY_PART)).max(YOUNG));
        let due = period.or(renew).map(after);
        Self { header, identity, validity, made: now, due, end: lifetime.map(after) }
    }

    /// Whether the server would see any difference.
    pub(in crate::auth) fn is_same(&self, other: &Self) -> bool {
        self.header == other.header && self.identity == other.identity
    }

    /// Whether new ones are to be made.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| now >= due)
    }

    /// Whether these are too young to be made anew.
    pub(super) fn is_young(&self, now: Instant) -> bool {
        now < self.made + YOUNG
    }

    /// Whether these can be used, as far as is known.
    pub(super) fn is_valid(&self, now: Instant) -> bool {
        self.end.is_none_or(|end| now < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn most_of_a_life_is_used() {
        let millis = Duration::from_millis;
        let made = Instant::now();
        for (life, due) in [
            (0, 1000),
            (500, 1000),
            (1000, 1000),
            (8000, 7200),
            (60_000, 54_000),
            (100_000, 90_000),
            (3_600_000, 3_590_000),
        ] {
            let lifetime = Some(millis(life));
            let credential = Credential::new(Made { lifetime, ..Made::default() });
            let turns = |at: u64, is: &dyn Fn(Instant) -> bool| {
                (is(made + millis(at) - millis(1)), is(made + millis(at)))
            };
            assert_eq!(turns(due, &|now| credential.is_due(now)), (false, true), "{life}");
            assert!(!credential.is_valid(made + millis(life)));
            assert!(life == 0 || credential.is_valid(made + millis(life - 1)));
        }
        let eternal = Credential::new(Made { lifetime: Some(Duration::MAX), ..Made::default() });
        assert!(!eternal.is_due(made + Duration::from_secs(1 << 31)));
        let unknown = Credential::new(Made::default());
        let late = made + FOREVER;
        assert!(!unknown.is_due(late) && unknown.is_valid(late));
    }
}
