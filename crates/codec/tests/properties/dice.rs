//! Choices from a seed.

/// A generator of the splitmix family: enough to choose bytes.
pub(crate) struct Dice(u64);

impl Dice {
    /// The choices of one input.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut dice = Self(seed ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03));
        dice.roll();
        dice
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `limit`, or zero.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() % limit.max(1) as u64).unwrap_or_default()
    }

    /// Once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub(crate) fn of<T>(&mut self, all: &'static [T]) -> &'static T {
        &all[self.below(all.len())]
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.roll().to_le_bytes()[0]
    }
}
