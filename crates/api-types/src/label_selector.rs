//! Label selectors: `app=web,tier in (a,b),!canary`.

use std::fmt;
use std::str::FromStr;

use crate::Object;

mod parse;

/// How a requirement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the API has these operators")]
pub enum Operator {
    /// The label is one of the values: `=`, `==`, `in`.
    In,
    /// The label is absent or none of the values: `!=`, `notin`.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// The label is an integer greater than the value.
    GreaterThan,
    /// The label is an integer less than the value.
    LessThan,
}

/// One requirement of a [`LabelSelector`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How it compares.
    pub operator: Operator,
    /// What it compares with, sorted; empty for `Exists` and `DoesNotExist`.
    pub values: Vec<String>,
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        match self.operator {
            Operator::In => value.is_some_and(|value| self.has(value)),
            Operator::NotIn => value.is_none_or(|value| !self.has(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let parse = |text: &str| text.parse::<i64>().ok();
                match (value.and_then(parse), self.values.first().and_then(|value| parse(value))) {
                    (Some(have), Some(want)) if self.operator == Operator::GreaterThan => {
                        have > want
                    }
                    (Some(have), Some(want)) => have < want,
                    _ => false,
                }
            }
        }
    }

    fn has(&self, value: &str) -> bool {
        self.values.iter().any(|want| want == value)
    }
}

/// A conjunction of requirements on labels. Empty selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Selects everything.
    pub const fn everything() -> Self {
        Self(Vec::new())
    }

    /// Selects objects whose label `key` is `value`. The parts are not validated here; the server does.
    pub fn equal(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self::everything().and_in(key, [value.into()])
    }

    /// This selector, and the label `key` must be one of `values`.
    #[must_use]
    pub fn and_in<V: Into<String>>(
        self,
        key: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.and(key, Operator::In, values.into_iter().map(Into::into).collect())
    }

    /// This selector, and the label `key` must be none of `values`.
    #[must_use]
    pub fn and_not_in<V: Into<String>>(
        self,
        key: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.and(key, Operator::NotIn, values.into_iter().map(Into::into).collect())
    }

    /// This selector, and the label `key` must be there.
    #[must_use]
    pub fn and_exists(self, key: impl Into<String>) -> Self {
        self.and(key, Operator::Exists, Vec::new())
    }

    /// This selector, and the label `key` must not be there.
    #[must_use]
    pub fn and_absent(self, key: impl Into<String>) -> Self {
        self.and(key, Operator::DoesNotExist, Vec::new())
    }

    fn and(mut self, key: impl Into<String>, operator: Operator, mut values: Vec<String>) -> Self {
        values.sort_unstable();
        values.dedup();
        self.0.push(Requirement { key: key.into(), operator, values });
        self
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels match, given a way to look one up.
    pub fn matches<'a>(&self, mut label: impl FnMut(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }

    /// Whether an object's labels match.
    pub fn matches_object<T: Object + ?Sized>(&self, object: &T) -> bool {
        self.0.iter().all(|requirement| requirement.matches(object.label(&requirement.key)))
    }
}

/// The text is no label selector. The message is kube-apiserver's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct LabelSelectorError {
    /// What is wrong.
    pub message: String,
}

impl FromStr for LabelSelector {
    type Err = LabelSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::selector(text).map(Self).map_err(|message| LabelSelectorError { message })
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let (key, values) = (&requirement.key, &requirement.values);
            match (requirement.operator, &values[..]) {
                (Operator::Exists, _) => f.write_str(key)?,
                (Operator::DoesNotExist, _) => write!(f, "!{key}")?,
                (Operator::In, [value]) => write!(f, "{key}={value}")?,
                (Operator::NotIn, [value]) => write!(f, "{key}!={value}")?,
                (Operator::In, values) => write!(f, "{key} in ({})", values.join(","))?,
                (Operator::NotIn, values) => write!(f, "{key} notin ({})", values.join(","))?,
                (Operator::GreaterThan, values) => write!(f, "{key}>{}", values.join(","))?,
                (Operator::LessThan, values) => write!(f, "{key}<{}", values.join(","))?,
            }
        }
        Ok(())
    }
}
