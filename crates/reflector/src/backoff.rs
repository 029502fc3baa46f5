//! The ladder of delays, shared by everything that a reflector retries.

use std::time::Duration;

use kubestrata_api_types::{Tick, World};

use crate::Backoff;

#[derive(Debug)]
pub(crate) struct Ladder {
    rules: Backoff,
    /// Delays given since the last reset.
    steps: i32,
    /// Since when a watch lives without failure.
    healthy_since: Option<Tick>,
}

impl Ladder {
    pub(crate) fn new(rules: Backoff) -> Self {
        Self { rules, steps: 0, healthy_since: None }
    }

    /// A watch lives.
    pub(crate) fn healthy(&mut self, now: Tick) {
        self.healthy_since.get_or_insert(now);
    }

    /// The delay after a failure: one step, or what the server asks for if that is more.
    pub(crate) fn failed(
        &mut self,
        asked: Option<Duration>,
        now: Tick,
        world: &dyn World,
    ) -> Duration {
        if let Some(since) = self.healthy_since.take()
            && now.since(since) >= self.rules.reset_after
        {
            self.steps = 0;
        }
        let cap = self.rules.cap.as_secs_f64();
        let base = self.rules.initial.as_secs_f64() * self.rules.factor.powi(self.steps);
        self.steps = self.steps.saturating_add(1).min(1_000);
        let jittered = base.min(cap) * (1.0 + self.rules.jitter * world.random_fraction());
        let step = Duration::try_from_secs_f64(jittered).unwrap_or(self.rules.cap);
        step.max(asked.unwrap_or_default().min(self.rules.retry_after_cap))
    }
}
