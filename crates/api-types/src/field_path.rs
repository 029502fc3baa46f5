//! Paths into an object, as in `spec.containers[*].image`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// One step of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Segment {
    /// A field of an object, or a key of a map.
    Field(Box<str>),
    /// `[*]`: every element of a list, or every value of a map.
    All,
}

/// A path to one field, or with `[*]` to many.
///
/// Written as fields joined by dots. A key that holds a dot stands in brackets and quotes:
/// `metadata.labels['app.kubernetes.io/name']`. A clone is a reference count.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Arc<[Segment]>);

impl FieldPath {
    /// The steps, outermost first. Never empty.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// `metadata.managedFields`, which most readers never need and which is most of a plain object's size.
    pub fn managed_fields() -> Self {
        Self(Arc::from([Segment::Field("metadata".into()), Segment::Field("managedFields".into())]))
    }
}

/// The text is no field path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no field path: {problem} at byte {offset}")]
#[non_exhaustive]
pub struct FieldPathError {
    /// What was to be parsed.
    pub text: String,
    /// Where the problem is.
    pub offset: usize,
    /// What it is.
    pub problem: &'static str,
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |offset, problem| FieldPathError { text: text.to_owned(), offset, problem };
        let mut segments = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if let Some(inner) = rest.strip_prefix("[*]") {
                segments.push(Segment::All);
                at = text.len() - inner.len();
            } else if let Some(inner) = rest.strip_prefix("['") {
                let end = inner.find("']").ok_or_else(|| error(at, "no closing ']"))?;
                segments.push(Segment::Field(inner[..end].into()));
                at += 2 + end + 2;
            } else if rest.starts_with('[') {
                return Err(error(at, "only [*] and ['key'] are known"));
            } else {
                let start = if rest.starts_with('.') && !segments.is_empty() { at + 1 } else { at };
                let end =
                    text[start..].find(['.', '[']).map_or(text.len(), |length| start + length);
                if end == start {
                    return Err(error(start, "empty field name"));
                }
                segments.push(Segment::Field(text[start..end].into()));
                at = end;
            }
        }
        if text.ends_with('.') {
            return Err(error(text.len(), "empty field name"));
        }
        if segments.is_empty() {
            return Err(error(0, "empty path"));
        }
        Ok(Self(segments.into()))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::All => f.write_str("[*]")?,
                Segment::Field(name) if name.contains(['.', '[']) => write!(f, "['{name}']")?,
                Segment::Field(name) if index == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
