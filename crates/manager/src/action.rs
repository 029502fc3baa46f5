//! What a reconcile asks for.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use kubestrata_api_types::BoxError;

/// What is to happen to a key after a successful reconcile (controller-runtime `reconcile.Result`).
///
/// A key whose objects change is reconciled again anyhow; an action is for what nobody tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct Action {
    pub(crate) next: Next,
    pub(crate) priority: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Next {
    #[default]
    Done,
    After(Duration),
    Backoff,
}

impl Action {
    /// Nothing, until something changes.
    pub const fn done() -> Self {
        Self { next: Next::Done, priority: None }
    }

    /// Again after `delay`, unless something changes before. A zero delay is [`done`](Self::done), as in
    /// controller-runtime.
    pub const fn requeue_after(delay: Duration) -> Self {
        let next = if delay.is_zero() { Next::Done } else { Next::After(delay) };
        Self { next, priority: None }
    }

    /// Again after the key's back-off, as after a failure, but without counting as an error.
    pub const fn requeue() -> Self {
        Self { next: Next::Backoff, priority: None }
    }

    /// With this priority instead of the one that the key had.
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }
}

/// An error that another try will not mend (controller-runtime `TerminalError`): the key is not retried until something
/// changes, but keeps its count of failures.
///
/// It counts anywhere in the chain of sources of what a reconciler returns.
#[derive(Debug)]
pub struct TerminalError(BoxError);

impl TerminalError {
    /// Marks an error as final.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for TerminalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another try will not help")
    }
}

impl Error for TerminalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
