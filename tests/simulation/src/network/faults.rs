//! How often things go wrong.

use kubestrata_testkit::FakeWorld;

/// Each in percent: of requests, of connections, or of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    /// A request takes some seconds to arrive.
    pub(crate) delay: u64,
    /// A connection is refused.
    pub(crate) refuse: u64,
    /// A connection breaks before the answer.
    pub(crate) reset: u64,
    /// A request is never answered.
    pub(crate) silence: u64,
    /// A request is answered with 429, half of the time with `Retry-After`.
    pub(crate) throttle: u64,
    /// A request is answered with 500.
    pub(crate) internal: u64,
    /// A request for a version is answered with 410.
    pub(crate) expire: u64,
    /// A connection ends before its time: broken, closed or silent, between frames or within one, or with an ERROR event.
    pub(crate) doom: u64,
    /// A bookmark is lost.
    pub(crate) bookmark: u64,
    /// A frame, or the body of a list, comes twice.
    pub(crate) twice: u64,
    /// A frame takes up to some seconds.
    pub(crate) lag: u64,
}

impl Rates {
    /// A mixture: some faults often, some rarely, some never.
    pub(crate) fn random(world: &FakeWorld) -> Self {
        let rate = |most: u64| match world.below(4) {
            0 => 0,
            1 => world.below(most / 4 + 1),
            _ => world.below(most + 1),
        };
        Self {
            delay: rate(40),
            refuse: rate(25),
            reset: rate(25),
            silence: rate(15),
            throttle: rate(25),
            internal: rate(25),
            expire: rate(25),
            doom: rate(90),
            bookmark: rate(80),
            twice: rate(20),
            lag: rate(30),
        }
    }

    /// Whether anything goes wrong.
    pub(crate) fn any(&self) -> bool {
        *self != Self::default()
    }
}
