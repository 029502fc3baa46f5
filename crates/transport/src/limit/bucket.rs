//! A bucket of tokens, without a clock.

use std::time::Duration;

use kubestrata_api_types::FOREVER;
use tokio::time::Instant;

/// Holds at most `burst` tokens, and gains one each `period`.
///
/// It is kept as the time at which it is full (the generic cell rate algorithm): with whole nanoseconds and no fractions
/// of tokens, the n-th turn is at the n-th multiple of the period exactly.
#[derive(Debug)]
pub(super) struct Bucket {
    period: Duration,
    /// How long before it is full there is one token.
    lead: Duration,
    /// `None` as long as nothing was taken.
    full: Option<Instant>,
}

impl Bucket {
    pub(super) fn new(qps: f64, burst: u32) -> Self {
        // Not a number and negative ones come out as no refill at all.
        let period = if qps > 0.0 {
            Duration::try_from_secs_f64(qps.recip()).unwrap_or(FOREVER).min(FOREVER)
        } else {
            FOREVER
        };
        let lead = period.saturating_mul(burst.max(1) - 1);
        Self { period, lead, full: None }
    }

    /// When the next token is there: now, or later.
    pub(super) fn next(&self, now: Instant) -> Instant {
        let there = self.full.and_then(|full| full.checked_sub(self.lead));
        there.map_or(now, |there| there.max(now))
    }

    /// Takes the token that is there `at` a time of [`Bucket::next`]. That, and not when its taker woke up, is where the
    /// next period begins: else each late timer would slow all that follow.
    pub(super) fn take(&mut self, at: Instant) {
        let full = self.full.map_or(at, |full| full.max(at));
        self.full = Some(full.checked_add(self.period).unwrap_or(full));
    }

    /// Takes back the last [`Bucket::take`], whose time has not come yet: so it is certain that the bucket has not been full
    /// since, and the token not one too many.
    pub(super) fn give_back(&mut self) {
        self.full = self.full.and_then(|full| full.checked_sub(self.period));
    }
}
