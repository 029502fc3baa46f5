//! Field selectors: `spec.nodeName=a,status.phase!=Running`.

use std::fmt;
use std::str::FromStr;

/// One term of a [`FieldSelector`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a triple")]
pub struct FieldTerm {
    /// The field, as in `spec.nodeName`.
    pub field: String,
    /// The value to compare with.
    pub value: String,
    /// Whether the field must equal the value, or differ from it.
    pub equal: bool,
}

/// A conjunction of field comparisons. Empty selects everything.
///
/// Which fields can be selected is the server's choice, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector(Vec<FieldTerm>);

impl FieldSelector {
    /// Selects everything.
    pub const fn everything() -> Self {
        Self(Vec::new())
    }

    /// Selects objects whose `field` is `value`.
    pub fn equal(field: impl Into<String>, value: impl Into<String>) -> Self {
        Self(vec![FieldTerm { field: field.into(), value: value.into(), equal: true }])
    }

    /// This selector and one term more.
    #[must_use]
    pub fn and(mut self, term: FieldTerm) -> Self {
        self.0.push(term);
        self
    }

    /// The terms.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.0
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object matches, given the text of its fields. An absent field is the empty string.
    pub fn matches<'a>(&self, mut field: impl FnMut(&str) -> Option<&'a str>) -> bool {
        self.0
            .iter()
            .all(|term| (field(&term.field).unwrap_or_default() == term.value) == term.equal)
    }

    /// The value that `field` must have, if a term fixes it.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }
}

/// The text is no field selector. The message is kube-apiserver's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector: '{selector}'; can't understand '{term}'")]
#[non_exhaustive]
pub struct FieldSelectorError {
    /// The whole text.
    pub selector: String,
    /// The term in question.
    pub term: String,
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    /// Parses terms joined by commas; `\,`, `\=` and `\\` stand for themselves in values
    /// (apimachinery `fields.ParseSelector`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let error = || FieldSelectorError { selector: text.to_owned(), term: part.to_owned() };
            let (at, width, equal) = find_operator(part).ok_or_else(error)?;
            let value = unescape(&part[at + width..]).ok_or_else(error)?;
            terms.push(FieldTerm { field: part[..at].to_owned(), value, equal });
        }
        Ok(Self(terms))
    }
}

/// Splits at commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Position, width and meaning of the first operator.
fn find_operator(term: &str) -> Option<(usize, usize, bool)> {
    let bytes = term.as_bytes();
    (0..bytes.len()).find_map(|at| match (bytes[at], bytes.get(at + 1)) {
        (b'!', Some(b'=')) => Some((at, 2, false)),
        (b'=', Some(b'=')) => Some((at, 2, true)),
        (b'=', _) => Some((at, 1, true)),
        _ => None,
    })
}

fn unescape(value: &str) -> Option<String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                c @ ('\\' | ',' | '=') => out.push(c),
                _ => return None,
            },
            ',' | '=' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}{}", term.field, if term.equal { "=" } else { "!=" })?;
            for c in term.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}
