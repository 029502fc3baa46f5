//! A world that follows from a seed.

use std::sync::atomic::{AtomicU64, Ordering};

use kubestrata_api_types::{Timestamp, World};
use tokio::time::Instant;

/// Randomness from a seed (splitmix64), and a time of day that starts at 2030-01-01 and follows tokio's clock.
///
/// So a test with a seed and a paused clock gives the same run each time.
#[derive(Debug)]
pub struct FakeWorld {
    state: AtomicU64,
    origin: Instant,
}

impl FakeWorld {
    /// The time of day when a world is made: 2030-01-01T00:00:00Z, in seconds.
    const EPOCH: i64 = 1_893_456_000;

    /// A world from a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed), origin: Instant::now() }
    }

    /// A random number in `0..bound`; 0 if `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        self.random().checked_rem(bound).unwrap_or(0)
    }

    /// True in `percent` of 100 calls.
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

impl World for FakeWorld {
    fn wall(&self) -> Timestamp {
        let passed = self.origin.elapsed();
        let seconds = Self::EPOCH.saturating_add_unsigned(passed.as_secs());
        let nanos = i32::try_from(passed.subsec_nanos()).unwrap_or(0);
        Timestamp::new(seconds, nanos).unwrap_or(Timestamp::MAX)
    }

    fn random(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        // Relaxed: each call needs its own number, not an order.
        let mut z = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
