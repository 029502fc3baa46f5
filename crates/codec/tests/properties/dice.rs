//! Choices from a seed, or from a fuzzer's input.

/// A generator of the splitmix family: enough to choose bytes.
pub(crate) struct Dice {
    state: u64,
    /// What is chosen first, from the end on. Two bytes make a choice.
    given: Vec<u8>,
}

impl Dice {
    /// The choices of one input.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let state = seed ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut dice = Self { state, given: Vec::new() };
        dice.roll();
        dice
    }

    /// The choices that a fuzzer has made. Where they end, others follow from them.
    pub(crate) fn from_input(input: &[u8]) -> Self {
        let state = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
            (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self { state, given: input.iter().rev().copied().collect() }
    }

    pub(crate) fn roll(&mut self) -> u64 {
        if let (Some(low), Some(high)) = (self.given.pop(), self.given.pop()) {
            return u64::from(u16::from_le_bytes([low, high]));
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
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
