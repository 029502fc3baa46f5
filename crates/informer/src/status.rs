//! How an informer is doing.

use std::borrow::Cow;

use kubestrata_reflector::ReflectorStatus;
use kubestrata_store_index::StoreVersion;
use tokio::time::Instant;

/// How an informer is doing: a snapshot, from [`Informer::status`](crate::Informer::status).
///
/// How old the store is, is told by `reflector`: live since, last event, last bookmark, last failure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerStatus {
    /// Whether it was started.
    pub started: bool,
    /// Whether it was stopped, ended by a panic of user code on its tasks, or by [`WhenGone::Stop`](crate::WhenGone): its
    /// store will not change any more.
    pub stopped: bool,
    /// Whether the first state is in the store and was handed to the handlers. Never false again once true.
    pub synced: bool,
    /// The connection to the server.
    pub reflector: ReflectorStatus,
    /// Since when the server answers that it has no such resource; `None` when it has, or was not asked yet.
    pub gone_since: Option<Instant>,
    /// Changes between reflector and store.
    pub queued: usize,
    /// The store's version.
    pub version: StoreVersion,
    /// Objects in the store.
    pub objects: usize,
    /// Objects that could not be read, so far.
    pub unreadable: u64,
    /// Times that an index could not handle an object, so far.
    pub index_problems: u64,
    /// The handlers.
    pub handlers: Vec<HandlerStatus>,
}

impl InformerStatus {
    /// How often the whole state was got again after the first time.
    pub fn relists(&self) -> u64 {
        self.reflector.states.saturating_sub(1)
    }
}

/// How one handler is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Whether it was told of every object that was there when it began.
    pub synced: bool,
    /// Changes that wait for it.
    pub backlog: usize,
    /// Changes that became one with another while they waited, so far.
    pub merged: u64,
    /// Its panics, so far.
    pub panics: u64,
}
