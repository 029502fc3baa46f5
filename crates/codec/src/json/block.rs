//! Brackets and strings of 64 bytes of JSON at once.
//!
//! A value that is only passed over, as most of an object is, costs no branch for each of its strings.

use wide::u8x16;

/// Bytes looked at together.
pub(super) const BLOCK: usize = 64;
/// Bytes compared at once.
const LANE: usize = 16;

/// The brackets of a block outside of strings: one bit for each byte, the first byte's the lowest.
pub(super) struct Marks {
    pub(super) opens: u64,
    pub(super) closes: u64,
    /// Whether a string goes on behind the block.
    pub(super) in_string: bool,
}

impl Marks {
    /// `None` if there is a backslash, which may take a quote's meaning away. `in_string`: the block begins in a string.
    #[inline]
    pub(super) fn of(block: &[u8; BLOCK], in_string: bool) -> Option<Self> {
        let (mut quotes, mut opens, mut closes, mut backslashes) = (0, 0, 0, 0);
        for (index, lane) in block.as_chunks().0.iter().enumerate() {
            let lane = u8x16::new(*lane);
            let equal = |lane: u8x16, byte| {
                u64::from(lane.simd_eq(u8x16::splat(byte)).to_bitmask()) << (index * LANE)
            };
            // Both kinds of brackets are 32 apart, and nothing else is where they meet.
            let folded = lane | u8x16::splat(0x20);
            quotes |= equal(lane, b'"');
            opens |= equal(folded, b'{');
            closes |= equal(folded, b'}');
            backslashes |= equal(lane, b'\\');
        }
        if backslashes != 0 {
            return None;
        }
        // From each quote on to the next: whether an odd number of quotes is at or before a byte.
        let mut inside: u64 = quotes;
        for shift in [1, 2, 4, 8, 16, 32] {
            inside ^= inside << shift;
        }
        if in_string {
            inside = !inside;
        }
        Some(Self {
            opens: opens & !inside,
            closes: closes & !inside,
            in_string: inside >> (BLOCK - 1) != 0,
        })
    }

    /// Follows the brackets one by one. Gives what is behind the one with which `depth` comes to zero.
    pub(super) fn end(&self, depth: &mut usize) -> Option<usize> {
        let mut marks = self.opens | self.closes;
        while marks != 0 {
            let place = marks.trailing_zeros();
            if self.opens >> place & 1 != 0 {
                *depth += 1;
            } else {
                *depth -= 1;
                if *depth == 0 {
                    return Some(place as usize + 1);
                }
            }
            marks &= marks - 1;
        }
        None
    }
}
