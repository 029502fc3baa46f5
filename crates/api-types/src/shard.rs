//! Shard selectors: one part of a collection, by the hash of a field.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::Object;

/// The field whose hash decides to which shard an object belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ShardField {
    /// `metadata.uid`: objects are spread evenly, and an object never changes its shard.
    #[default]
    Uid,
    /// `metadata.namespace`: a namespace is never split. All cluster-scoped objects are in one shard.
    Namespace,
}

impl ShardField {
    const ALL: [Self; 2] = [Self::Uid, Self::Namespace];

    /// The path as kube-apiserver writes it in a selector.
    fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

/// Selects the objects whose field hashes into one of some ranges (KEP-5866, alpha since 1.36).
///
/// A server with the feature sends only these. One without it ignores the parameter and sends everything, without a word
/// in a watch: so whoever asks with a selector must check with [`ShardSelector::matches`] what comes.
///
/// ```
/// use kubestrata_api_types::{ShardField, ShardSelector};
///
/// let second = ShardSelector::part(ShardField::Uid, 1, 2).unwrap();
/// assert_eq!(
///     second.to_string(),
///     "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')",
/// );
/// assert_eq!(second.to_string().parse(), Ok(second));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShardSelector {
    field: ShardField,
    /// At least one, none of them empty.
    ranges: Vec<RangeInclusive<u64>>,
}

impl ShardSelector {
    /// The objects whose hash is in `range`.
    ///
    /// # Errors
    ///
    /// [`ShardSelectorError`] if the range is empty.
    pub fn range(
        field: ShardField,
        range: RangeInclusive<u64>,
    ) -> Result<Self, ShardSelectorError> {
        if range.is_empty() {
            return Err(ShardSelectorError { problem: "a range is empty" });
        }
        Ok(Self { field, ranges: vec![range] })
    }

    /// Part number `index`, from 0, of `count` equal parts, which together are everything.
    ///
    /// # Errors
    ///
    /// [`ShardSelectorError`] unless `index < count`.
    pub fn part(field: ShardField, index: u32, count: u32) -> Result<Self, ShardSelectorError> {
        if index >= count {
            return Err(ShardSelectorError { problem: "there is no part of that number" });
        }
        // The first hash of a part; that of the part after the last is 2^64.
        let start = |index: u32| (u128::from(index) << 64) / u128::from(count);
        let (first, end) = (start(index), start(index + 1));
        let hash = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        Self::range(field, hash(first)..=hash(end - 1))
    }

    /// This selector or a further range of the same field.
    ///
    /// # Errors
    ///
    /// [`ShardSelectorError`] if the range is empty.
    pub fn or(mut self, range: RangeInclusive<u64>) -> Result<Self, ShardSelectorError> {
        self.ranges.extend(Self::range(self.field, range)?.ranges);
        Ok(self)
    }

    /// Whether an object belongs to the shard. An object without the field counts as one where it is empty.
    pub fn matches(&self, object: &dyn Object) -> bool {
        let value = match self.field {
            ShardField::Uid => object.uid(),
            ShardField::Namespace => object.namespace(),
        };
        let hash = Self::hash(value.unwrap_or_default());
        self.ranges.iter().any(|range| range.contains(&hash))
    }

    /// The hash of a field's value: 64-bit FNV-1a, as the server takes it.
    pub fn hash(value: &str) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        value.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
    }
}

/// The value of the query parameter `shardSelector`.
impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.ranges.iter().enumerate() {
            let or = if at == 0 { "" } else { " || " };
            let (start, end) = (*range.start(), u128::from(*range.end()) + 1);
            write!(f, "{or}shardRange({}, '0x{start:016x}', '0x{end:016x}')", self.field.path())?;
        }
        Ok(())
    }
}

impl FromStr for ShardSelector {
    type Err = ShardSelectorError;

    /// Parses what [`fmt::Display`] writes, with any spaces between the words.
    fn from_str(text: &str) -> Result<Self, ShardSelectorError> {
        let mut parsed: Option<Self> = None;
        for call in text.split("||") {
            let arguments = call
                .trim()
                .strip_prefix("shardRange(")
                .and_then(|rest| rest.strip_suffix(')'))
                .ok_or(ShardSelectorError { problem: "want shardRange(field, 'start', 'end')" })?;
            let mut words = arguments.split(',').map(str::trim);
            let (Some(path), Some(start), Some(end), None) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                return Err(ShardSelectorError { problem: "shardRange takes three arguments" });
            };
            let field = ShardField::ALL.into_iter().find(|field| field.path() == path);
            let field = field.ok_or(ShardSelectorError { problem: "a field cannot be hashed" })?;
            let (start, end) = (bound(start)?, bound(end)?);
            let last = end.checked_sub(1).ok_or(EMPTY)?;
            let range = u64::try_from(start).map_err(|_| EMPTY)?
                ..=u64::try_from(last).map_err(|_| BOUND)?;
            parsed = Some(match parsed {
                None => Self::range(field, range)?,
                Some(selector) if selector.field == field => selector.or(range)?,
                Some(_) => {
                    return Err(ShardSelectorError { problem: "all ranges must be of one field" });
                }
            });
        }
        parsed.ok_or(EMPTY)
    }
}

const EMPTY: ShardSelectorError = ShardSelectorError { problem: "a range is empty" };
const BOUND: ShardSelectorError =
    ShardSelectorError { problem: "a bound is no '0x' with 16 lower-case hexadecimal digits" };

/// A bound of a range, as in `'0x8000000000000000'`; up to 2^64, which has a digit more.
fn bound(text: &str) -> Result<u128, ShardSelectorError> {
    let digits = text.strip_prefix("'0x").and_then(|rest| rest.strip_suffix('\'')).ok_or(BOUND)?;
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let value = u128::from_str_radix(digits, 16).map_err(|_| BOUND)?;
    let fits = digits.len() == 16 || (digits.len() == 17 && value == 1 << 64);
    if plain && fits { Ok(value) } else { Err(BOUND) }
}

/// The shard does not exist, or the text is no shard selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no shard selector: {problem}")]
#[non_exhaustive]
pub struct ShardSelectorError {
    /// What is wrong.
    pub problem: &'static str,
}
