//! Everything that differs from run to run, in one place, so that a seed replays a run.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Timestamp;

/// Monotonic time as engines see it: passed in, since an origin that the driver chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(Duration);

impl Tick {
    /// The origin.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// A time since the origin.
    pub const fn from_origin(since: Duration) -> Self {
        Self(since)
    }

    /// Time since the origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// Time since an earlier tick; zero if that is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Tick {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// A hundred years. A wait is cut to this before it is added to an `Instant`, which panics where the sum does not fit:
/// `Duration::MAX` is a natural way to say "no limit", and a request can ask for any number of seconds.
pub const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Wall clock, randomness and new UIDs.
///
/// Monotonic time is not here: drivers take it from `tokio::time`, which tests pause, and hand it to engines as [`Tick`].
pub trait World: fmt::Debug + Send + Sync + 'static {
    /// The time of day, for timestamps that people read. Never for measuring durations.
    fn wall(&self) -> Timestamp;

    /// 64 random bits. Not for secrets.
    fn random(&self) -> u64;

    /// A random number in `[0, 1)`.
    fn random_fraction(&self) -> f64 {
        // 53 bits are what a double holds exactly.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
        let fraction = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
        fraction
    }

    /// A new random UUID (version 4), as the server gives to objects.
    fn uid(&self) -> String {
        let high = (self.random() & !0xf000) | 0x4000;
        let low = (self.random() & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}

/// The real world.
#[derive(Debug, Default)]
pub struct SystemWorld {
    /// Keyed by the operating system's randomness.
    state: RandomState,
    calls: AtomicU64,
}

impl SystemWorld {
    /// A world with fresh randomness.
    pub fn new() -> Self {
        Self::default()
    }
}

impl World for SystemWorld {
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u64 {
        // Relaxed: each call needs its own number, not an order.
        self.state.hash_one(self.calls.fetch_add(1, Ordering::Relaxed))
    }
}
