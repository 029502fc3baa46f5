//! What can go wrong, and what a reflector makes of it.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{BoxError, ResourceVersion, ShardSelector, Status, cause_ref, reason};

use crate::status::Difference;

/// What a reflector was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum During {
    /// A streaming list: a watch that begins with the state (KEP-3157).
    StreamingList,
    /// A plain list.
    List,
    /// A watch.
    Watch,
    /// The comparison of a streamed state with a list.
    Comparison,
}

impl fmt::Display for During {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamingList => "streaming list",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Comparison => "comparison",
        })
    }
}

/// What a reflector does about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Recovery {
    /// Ask again for the same, after this delay.
    Retry(Duration),
    /// Open the watch again at once, from the last version.
    Reopen,
    /// Get the whole state again, after this delay.
    Relist(Duration),
    /// Ask at once for the most recent state, as the last version is not to be had.
    AskForLatest,
    /// Make a plain list at once, as the streaming one does not work.
    FallBack,
    /// The pages of a list have expired: make one list of everything at once.
    ListWhole,
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry(delay) => write!(f, "retry after {delay:?}"),
            Self::Reopen => f.write_str("reopen"),
            Self::Relist(delay) => write!(f, "relist after {delay:?}"),
            Self::AskForLatest => f.write_str("ask for the latest"),
            Self::FallBack => f.write_str("fall back to a plain list"),
            Self::ListWhole => f.write_str("list without pages"),
        }
    }
}

/// One failure: what, when, why, and what follows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failure {
    /// What the reflector was doing.
    pub during: During,
    /// What it does now.
    pub recovery: Recovery,
    /// The error; a [`Status`] is in its chain where the server refused, and a [`ReflectorError`] where the reflector
    /// itself found fault.
    pub error: Arc<dyn Error + Send + Sync>,
}

impl Failure {
    pub(crate) fn new(during: During, recovery: Recovery, error: Fault) -> Self {
        Self { during, recovery, error: error.error }
    }

    /// What the reflector itself found, if it was not the server.
    pub fn finding(&self) -> Option<&ReflectorError> {
        cause_ref::<ReflectorError>(&*self.error)
    }

    /// What the server said, if it was the server.
    pub fn status(&self) -> Option<&Status> {
        cause_ref::<Status>(&*self.error)
    }
}

/// Faults that a reflector finds itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectorError {
    /// A watch ended in less than a second and brought nothing (client-go `VeryShortWatchError`).
    #[error("very short watch: it ended after {0:?} without any event")]
    VeryShort(Duration),
    /// Watches end within a second again and again, though they bring something.
    #[error("{0} watches in a row ended within a second")]
    Short(u32),
    /// A streaming list ended without the bookmark that ends the initial events.
    #[error("the streaming list ended without its end bookmark, after {0} events")]
    NoEndBookmark(u64),
    /// A streaming list brings nothing new, and no end bookmark.
    #[error("the streaming list brought nothing new for {0:?}, and no end bookmark")]
    Stalled(Duration),
    /// Streaming lists were tried for too long for one state.
    #[error("streaming lists gave no state within {0:?}")]
    StreamingTooLong(Duration),
    /// The state is larger than the configuration allows: `state_items` or `state_bytes`.
    #[error(
        "the state is larger than allowed: it was given up at {items} objects and {bytes} bytes"
    )]
    StateTooLarge {
        /// Objects gathered, those that cannot be read included.
        items: usize,
        /// Their bytes, as far as they are known.
        bytes: u64,
    },
    /// A list has more pages than the configuration allows.
    #[error("the list has more than {0} pages")]
    TooManyPages(u32),
    /// A page names itself as the next one.
    #[error("a page of the list leads to itself")]
    PageLeadsToItself,
    /// The server gave a state older than the one asked for.
    #[error(
        "asked for a state not older than version {asked}, the server gave one of version {got}"
    )]
    OlderThanAsked {
        /// The version asked for.
        asked: ResourceVersion,
        /// The version of the state.
        got: ResourceVersion,
    },
    /// A watch went back: its server forgot what it had told, or broke the order of versions (KEP-5504).
    #[error("the watch went back from version {last} to version {got}")]
    WentBack {
        /// The version that was reached.
        last: ResourceVersion,
        /// The version that came after it.
        got: ResourceVersion,
    },
    /// A streamed state is not what a list at its version shows.
    #[error("the streamed state of version {resource_version} differs from a list: {difference}")]
    Inconsistent {
        /// The version of both.
        resource_version: ResourceVersion,
        /// In what they differ.
        difference: Difference,
    },
    /// A streamed state and a list cannot be compared: some objects of them cannot even be named.
    #[error("{0} objects cannot be named")]
    NotComparable(usize),
    /// The server kept a watch open for longer than asked, without a word.
    #[error("the watch outlived its timeout by {0:?}")]
    Outlived(Duration),
    /// The server did not accept a watch in time.
    #[error("the watch was not accepted within {0:?}")]
    NotAccepted(Duration),
    /// A list brings nothing.
    #[error("the list brought nothing for {0:?}")]
    ListStalled(Duration),
    /// A list ended without its metadata, so it is not known to be whole.
    #[error("the list ended without its metadata")]
    NoListMeta,
}

/// The server refused a request, and a shard was asked for: maybe because of that (KEP-5866 is alpha).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShardRefused {
    /// The shard asked for.
    pub shard: ShardSelector,
    /// What the server said.
    pub source: Arc<dyn Error + Send + Sync>,
}

impl fmt::Display for ShardRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused with {}", self.shard)
    }
}

// By hand: the derive would take the Arc for the source, and hide what is in it.
impl Error for ShardRefused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// An error with the class that decides what follows.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) class: Class,
    /// When the server wants to be asked again.
    pub(crate) after: Option<Duration>,
    pub(crate) error: Arc<dyn Error + Send + Sync>,
}

/// Classes of errors (client-go `IsResourceExpired`, `isTooLargeResourceVersionError`, `isWatchErrorRetriable`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// 410 with reason Expired: also what a paged list may recover from by itself.
    Expired,
    /// 410 in any other form.
    Gone,
    /// The version is from the server's future.
    TooLarge,
    /// 429.
    Throttled,
    /// The connection was refused, or the server did not accept in time.
    Refused,
    /// The connection could not be made or broke, in another way.
    Connection,
    /// The server said no in another way.
    Status,
    /// The stream ended too early to be trusted.
    VeryShort,
    /// The stream ended, broke or fell silent: nothing is said about the state.
    Cut,
    /// A watch went back to a lower version.
    WentBack,
    /// More than the configuration allows. To ask in another way would not help.
    Limit,
    /// Anything else.
    Other,
}

impl Fault {
    pub(crate) fn of(error: BoxError) -> Self {
        let error: Arc<dyn Error + Send + Sync> = Arc::from(error);
        let class = classify(&*error);
        let after = cause_ref::<Status>(&*error).and_then(Status::retry_after);
        Self { class, after, error }
    }

    /// Names the shard, if the server may have refused because of it: what it can say of a parameter that it does not
    /// take is 400 or 422, and a streaming list gets the latter from every server that does not know streaming lists.
    pub(crate) fn name_shard(&mut self, shard: &ShardSelector, during: During) {
        let code = cause_ref::<Status>(&*self.error).map_or(0, |status| status.code);
        if code == 400 || (code == 422 && during != During::StreamingList) {
            let source = Arc::clone(&self.error);
            self.error = Arc::new(ShardRefused { shard: shard.clone(), source });
        }
    }

    pub(crate) fn own(class: Class, error: ReflectorError) -> Self {
        Self { class, after: None, error: Arc::new(error) }
    }
}

fn classify(error: &(dyn Error + 'static)) -> Class {
    if let Some(status) = cause_ref::<Status>(error) {
        return if status.is_too_large_resource_version() {
            Class::TooLarge
        } else if status.reason == reason::EXPIRED {
            Class::Expired
        } else if status.is_expired() {
            Class::Gone
        } else if status.is_too_many_requests() {
            Class::Throttled
        } else {
            Class::Status
        };
    }
    let mut current = Some(error);
    while let Some(error) = current {
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => return Class::Refused,
            Some(kind) if is_of_connection(kind) => return Class::Connection,
            _ => current = error.source(),
        }
    }
    Class::Other
}

fn is_of_connection(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::TimedOut
            | io::ErrorKind::UnexpectedEof
    )
}
