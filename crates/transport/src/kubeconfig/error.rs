//! What can be wrong with a kubeconfig.

use std::fmt;
use std::path::{Path, PathBuf};

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1; 0 where it is not known.
    pub line: u64,
}

impl Place {
    pub(crate) fn new(path: &Path, line: u64) -> Self {
        Self { path: path.to_owned(), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        Ok(())
    }
}

/// A kubeconfig cannot be used. Messages name file, line and field, and never a value that could be a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// None of the files exists.
    #[error("no kubeconfig found; tried {}", list(.tried))]
    NotFound {
        /// Where it was looked for.
        tried: Vec<PathBuf>,
    },
    /// A file cannot be read.
    #[error("kubeconfig {} cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is neither in UTF-8 nor in UTF-16 with a byte order mark.
    #[error("kubeconfig {} is neither UTF-8 nor UTF-16 with a byte order mark", .path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("kubeconfig {} cannot be written", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody else writes the file, or has left the lock behind.
    #[error("{} cannot be made: somebody else writes the kubeconfig, or has left it behind", .lock.display())]
    Locked {
        /// The file that is the lock.
        lock: PathBuf,
        /// Why it cannot be made.
        source: std::io::Error,
    },
    /// No field is named that is to be set.
    #[error("no field is named")]
    NoField,
    /// A file is larger than any kubeconfig.
    #[error("kubeconfig {} has more than {limit} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A file is not YAML, or a field has the wrong type or form.
    #[error("{place}: {}{problem}", field.as_ref().map(|field| format!("field {field:?}: ")).unwrap_or_default())]
    Malformed {
        /// Where.
        place: Place,
        /// The field on that line, where there is one.
        field: Option<String>,
        /// What is wrong, without contents.
        problem: String,
    },
    /// Neither the caller nor the files name a context.
    #[error("no context chosen: the kubeconfig has no current-context ({})", list(.files))]
    NoContext {
        /// The files that were read.
        files: Vec<PathBuf>,
    },
    /// A context, cluster or user is named that no file defines.
    #[error("{}{kind} {name:?} is not defined; known: {}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default(), if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    Unknown {
        /// Where it is named; `None` if the caller named it.
        place: Option<Place>,
        /// `context`, `cluster` or `user`.
        kind: &'static str,
        /// The name.
        name: String,
        /// What could have been meant.
        known: Vec<String>,
    },
    /// A field asks for something that this crate does not do, and that must not be passed over.
    #[error("{place}: field {field:?} is not supported: {hint}")]
    Unsupported {
        /// Where.
        place: Place,
        /// The field.
        field: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
}

fn list(paths: &[PathBuf]) -> String {
    let texts: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    texts.join(", ")
}
