//! Why a message could not be read or written.

use std::fmt::{self, Write as _};

use crate::decode::without_contents;

/// What is wrong, apart from where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A length or a number runs past the end of its message.
    Truncated,
    /// A varint of more than ten bytes.
    Varint,
    /// A tag with field number zero or with a wire type that Kubernetes does not use.
    Tag,
    /// The wire type of a field is not that of the schema.
    WireType,
    /// Messages nest deeper than the limit.
    Depth,
    /// A string is longer than the limit.
    Length,
    /// A message that may occur once occurs in several parts, which no Kubernetes encoder writes.
    Split,
    /// JSON inside a message is malformed.
    Json,
    /// A number, time, duration or quantity that has no JSON or no protobuf form.
    Range,
    /// An embedded object of a kind that the table does not know.
    UnknownKind,
    /// The value has a field that the schema lacks, by its name: writing would lose it.
    UnknownField(String),
    /// The value does not fit the type. What the type says of it is kept as far as it quotes nothing.
    Type(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownField(name) => return write!(f, "the schema lacks the field {name}"),
            Self::Truncated => "the input ends early",
            Self::Varint => "a number is too long",
            Self::Tag => "invalid tag",
            Self::WireType => "the wire type is not that of the schema",
            Self::Depth => "nested too deep",
            Self::Length => crate::json::noting::STRING_TOO_LONG,
            Self::Split => "a single message comes in several parts",
            Self::Json => "malformed JSON",
            Self::Range => "a value out of range",
            Self::UnknownKind => "an embedded object of an unknown kind",
            Self::Type(problem) => problem,
        })
    }
}

/// One step of the path to the place of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Field(&'static str),
    Index(usize),
    Key(String),
}

/// A message could not be read or written. It names the place and the problem, never the contents.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    problem: Problem,
    offset: Option<usize>,
    /// Innermost first: the path is gathered on the way out, so that success pays nothing for it.
    steps: Vec<Step>,
}

impl Error {
    pub(crate) fn new(problem: Problem) -> Self {
        Self(Box::new(Inner { problem, offset: None, steps: Vec::new() }))
    }

    /// The same error seen from one level further out.
    #[cold]
    pub(crate) fn within(mut self, step: Step) -> Self {
        self.add(step);
        self
    }

    /// Adds the step from one level further out.
    pub(crate) fn add(&mut self, step: Step) {
        self.0.steps.push(step);
    }

    /// Gives the error a place if it has none: errors that a type raises know none.
    #[cold]
    pub(crate) fn or_at(mut self, offset: Option<usize>) -> Self {
        self.set_offset(offset);
        self
    }

    /// The same in place.
    pub(crate) fn set_offset(&mut self, offset: Option<usize>) {
        self.0.offset = self.0.offset.or(offset);
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Byte offset in the input, as near as it is known.
    pub fn offset(&self) -> Option<usize> {
        self.0.offset
    }

    /// Path of the field, as in `spec.containers[0].image`; empty at the top.
    pub fn path(&self) -> String {
        path_text(self.0.steps.iter().rev())
    }
}

/// A path as a `FieldPath` writes it, with the positions of list elements.
pub(crate) fn path_text<'a>(steps: impl Iterator<Item = &'a Step>) -> String {
    let mut path = String::new();
    for step in steps {
        // Writing into a String cannot fail.
        let _ = match step {
            Step::Field(name) if path.is_empty() => write!(path, "{name}"),
            Step::Field(name) => write!(path, ".{name}"),
            Step::Index(index) => write!(path, "[{index}]"),
            Step::Key(key) => write!(path, "['{key}']"),
        };
    }
    path
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.problem)?;
        let path = self.path();
        if !path.is_empty() {
            write!(f, " at {path}")?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, " (byte {offset})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proto::Error({self})")
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self::new(Problem::Type(without_contents(&problem.to_string())))
    }

    // The default text of these two shows the value itself, which may be a secret.
    fn invalid_type(
        unexpected: serde::de::Unexpected<'_>,
        expected: &dyn serde::de::Expected,
    ) -> Self {
        Self::new(Problem::Type(format!("{} where {expected} is expected", name_of(unexpected))))
    }

    fn invalid_value(
        unexpected: serde::de::Unexpected<'_>,
        expected: &dyn serde::de::Expected,
    ) -> Self {
        Self::new(Problem::Type(format!("{} that is not {expected}", name_of(unexpected))))
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self::new(Problem::Type("a value that is none of those that the type knows".to_owned()))
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self::new(Problem::Type(without_contents(&problem.to_string())))
    }
}

fn name_of(unexpected: serde::de::Unexpected<'_>) -> &'static str {
    use serde::de::Unexpected;
    match unexpected {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Bytes(_) => "bytes",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        Unexpected::Map => "an object",
        _ => "another type",
    }
}
