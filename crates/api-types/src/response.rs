//! The answer to an [`ApiRequest`](crate::ApiRequest).

use std::fmt;
use std::pin::Pin;

use futures_core::Stream;

use crate::{BoxError, Event, ResourceVersion, Status, Unreadable};

/// Events of a watch, in order. Ends when the server closes it; after an `Err` nothing more comes.
/// Dropping it closes the watch.
pub type WatchStream<T> = Pin<Box<dyn Stream<Item = Result<Event<T>, BoxError>> + Send>>;

/// Items of a list as they arrive, with one [`ListPart::Meta`] among them: last, first or between.
/// After an `Err` nothing more comes, and the list is incomplete. Dropping it cancels the list.
pub type ListStream<T> = Pin<Box<dyn Stream<Item = Result<ListPart<T>, BoxError>> + Send>>;

/// One part of a list answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a consumer that misses a variant loses objects")]
pub enum ListPart<T> {
    /// One object.
    Item(T),
    /// One object whose head cannot be read.
    Unreadable(Unreadable),
    /// The list's own metadata; exactly once per list that ends without error.
    Meta(ListMeta),
}

/// Metadata of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "mirrors the API")]
pub struct ListMeta {
    /// The version of the state listed.
    pub resource_version: ResourceVersion,
    /// Token for the next page, if there is one. An empty token means none.
    pub continue_token: Option<String>,
    /// How many objects are left, where the server knows.
    pub remaining_item_count: Option<u64>,
}

/// What the server answered.
#[expect(clippy::exhaustive_enums, reason = "a layer must decide for each")]
pub enum Answer<T> {
    /// One object: get, create, update, patch, and some deletes.
    Object(T),
    /// Many: list, and delete-collection.
    List(ListStream<T>),
    /// A watch.
    Watch(WatchStream<T>),
    /// A success without an object: most deletes. Failures are errors, not answers.
    Status(Box<Status>),
}

impl<T> Answer<T> {
    fn name(&self) -> &'static str {
        match self {
            Self::Object(_) => "Object",
            Self::List(_) => "List",
            Self::Watch(_) => "Watch",
            Self::Status(_) => "Status",
        }
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One answer, with the server's warnings.
#[derive(Debug)]
#[non_exhaustive]
pub struct ApiResponse<T> {
    /// What the server answered.
    pub answer: Answer<T>,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}

impl<T> ApiResponse<T> {
    /// An answer without warnings.
    pub fn new(answer: Answer<T>) -> Self {
        Self { answer, warnings: Vec::new() }
    }

    /// The object, if the answer is one.
    pub fn into_object(self) -> Result<T, UnexpectedAnswer> {
        match self.answer {
            Answer::Object(object) => Ok(object),
            other => Err(UnexpectedAnswer { want: "Object", have: other.name() }),
        }
    }

    /// The list, if the answer is one.
    pub fn into_list(self) -> Result<ListStream<T>, UnexpectedAnswer> {
        match self.answer {
            Answer::List(list) => Ok(list),
            other => Err(UnexpectedAnswer { want: "List", have: other.name() }),
        }
    }

    /// The watch, if the answer is one.
    pub fn into_watch(self) -> Result<WatchStream<T>, UnexpectedAnswer> {
        match self.answer {
            Answer::Watch(watch) => Ok(watch),
            other => Err(UnexpectedAnswer { want: "Watch", have: other.name() }),
        }
    }
}

/// The service below gave an answer that does not fit the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer is a {have}, not a {want}")]
#[non_exhaustive]
pub struct UnexpectedAnswer {
    /// What the request asks for.
    pub want: &'static str,
    /// What came.
    pub have: &'static str,
}
