//! Resource versions: opaque tokens that KEP-5504 allows to be compared.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A `resourceVersion` as the server gave it.
///
/// Opaque, and equal only when the text is equal. Two of them may be compared by [`ResourceVersion::compare`] alone, and
/// only if they come from one resource type of one server (KEP-5504). Versions that fit 64 bits take no allocation.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceVersion(Repr);

#[derive(Clone, PartialEq, Eq, Hash, Default)]
enum Repr {
    /// No version at all: the empty string.
    #[default]
    Unset,
    /// The canonical decimal form of the number.
    Number(u64),
    /// Any other text: more than 64 bits, leading zeros, or not a number.
    Text(Arc<str>),
}

impl ResourceVersion {
    /// The empty version: "most recent" in a request, "not known" elsewhere.
    pub const UNSET: Self = Self(Repr::Unset);

    /// `"0"`: "whatever your cache has" in a request.
    pub const ANY: Self = Self(Repr::Number(0));

    /// A version from its text.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Self::UNSET;
        }
        // At most 19 digits: always fits, and the canonical form is the text itself.
        let canonical = bytes.len() <= 19
            && bytes.iter().all(u8::is_ascii_digit)
            && (bytes[0] != b'0' || bytes.len() == 1);
        if canonical {
            let number = bytes.iter().fold(0_u64, |n, digit| n * 10 + u64::from(digit - b'0'));
            return Self(Repr::Number(number));
        }
        // Twenty digits may or may not fit.
        match text.parse::<u64>() {
            Ok(number) if bytes[0].is_ascii_digit() && bytes[0] != b'0' => {
                Self(Repr::Number(number))
            }
            _ => Self(Repr::Text(Arc::from(text))),
        }
    }

    /// Whether this is the empty version.
    pub fn is_unset(&self) -> bool {
        self.0 == Repr::Unset
    }

    /// Whether this is `"0"`.
    pub fn is_any(&self) -> bool {
        self.0 == Repr::Number(0)
    }

    /// The number, where the version is a canonical decimal of at most 64 bits.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(number) => Some(number),
            Repr::Unset | Repr::Text(_) => None,
        }
    }

    /// Compares two versions of one resource type of one server.
    ///
    /// # Errors
    ///
    /// [`NotComparable`] where KEP-5504 gives no order: either is empty, `"0"`, has a leading zero or is no decimal.
    pub fn compare(&self, other: &Self) -> Result<Ordering, NotComparable> {
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) if *a != 0 && *b != 0 => Ok(a.cmp(b)),
            _ => {
                let (a, b) = (self.to_string(), other.to_string());
                for text in [&a, &b] {
                    let decimal = text.bytes().all(|byte| byte.is_ascii_digit());
                    if text.is_empty() || !decimal || text.starts_with('0') {
                        return Err(NotComparable { version: text.clone() });
                    }
                }
                // KEP-5504: by length first, then by text.
                Ok(a.len().cmp(&b.len()).then_with(|| a.cmp(&b)))
            }
        }
    }

    /// Whether this version is at least as new as `other`; `None` where they cannot be compared.
    pub fn is_at_least(&self, other: &Self) -> Option<bool> {
        self.compare(other).ok().map(Ordering::is_ge)
    }
}

/// One of the versions has no place in the order of KEP-5504.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resource version {version:?} cannot be compared")]
#[non_exhaustive]
pub struct NotComparable {
    /// The offending version.
    pub version: String,
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Number(number))
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Unset => Ok(()),
            Repr::Number(number) => write!(f, "{number}"),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for ResourceVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = ResourceVersion;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a resource version string")
            }
            fn visit_str<E>(self, text: &str) -> Result<ResourceVersion, E> {
                Ok(ResourceVersion::new(text))
            }
            fn visit_unit<E>(self) -> Result<ResourceVersion, E> {
                Ok(ResourceVersion::UNSET)
            }
        }
        deserializer.deserialize_str(Text)
    }
}
