//! Reading a watch.

mod json;
mod protobuf;

use bytes::Bytes;
use kubestrata_api_types::{
    Bookmark, Collection, Event, Format, Object as _, ResourceVersion, Status, Unreadable,
};

use crate::Encoded;
use crate::answer::foreign;
use crate::encoded::Reading;
use crate::head::SelfType;
use crate::input::Input;
use crate::json::{ScanError, skip_space};
use crate::limits::Limits;

/// The annotation of the bookmark that ends the initial state (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Why a watch is broken. Nothing that follows on the same stream can be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The server sent an ERROR event, and closes the watch.
    #[error("the server ended the watch")]
    Status(#[source] Box<Status>),
    /// An event is larger than [`Limits::frame_bytes`].
    #[error("a watch event is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The stream is not what it must be.
    #[error("malformed watch event: {problem} at byte {offset}")]
    Malformed {
        /// Where, counted from the start of the event.
        offset: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// The stream ended in the middle of an event.
    #[error("the watch ended in the middle of an event, after {bytes} bytes of it")]
    Truncated {
        /// How much of the event was there.
        bytes: usize,
    },
    /// The end of a watch that had an error, which was told before.
    #[error("the watch was broken before its end")]
    Broken,
}

impl From<ScanError> for WatchError {
    fn from(error: ScanError) -> Self {
        Self::Malformed { offset: error.offset, problem: error.problem }
    }
}

/// Turns the bytes of a watch, cut anywhere, into events.
///
/// JSON: objects one after another, with white space between them or none. Protobuf: messages, each with its length in
/// four bytes in front.
///
/// Events are read where they are in what was pushed, which it shares until its events are taken. It holds beside that at
/// most one incomplete event, of [`Limits::frame_bytes`], and for a moment the same event joined.
#[derive(Debug)]
pub struct WatchDecoder {
    collection: Collection,
    format: Format,
    limits: Limits,
    input: Input,
    lines: Lines,
    /// After an error nothing more comes.
    broken: bool,
}

/// What is known of line feeds in JSON.
#[derive(Debug, Default)]
struct Lines {
    /// There is none from the next event up to here, counted from the start of the watch.
    searched: usize,
    /// There is one here.
    found: bool,
}

impl WatchDecoder {
    /// A decoder of a watch on `collection` whose answer came in `format`.
    pub fn new(collection: Collection, format: Format, limits: Limits) -> Self {
        Self {
            collection,
            format,
            limits,
            input: Input::default(),
            lines: Lines::default(),
            broken: false,
        }
    }

    /// Takes further bytes. Call [`WatchDecoder::next`] until it gives `None` before the next push: what is pushed
    /// beyond that is buffered.
    pub fn push(&mut self, bytes: Bytes) {
        // Nothing will be read any more, so nothing is kept.
        if !self.broken {
            self.input.push(bytes);
        }
    }

    /// The next event; `None` if more bytes are needed, and for ever after an error.
    ///
    /// An event of a foreign kind, or with an unknown type, is [`Event::Unreadable`] with the object's version unset:
    /// a consumer skips it and does not move its version on (client-go's reflector does the same for foreign kinds).
    ///
    /// # Errors
    ///
    /// [`WatchError`]; the watch is to be dropped.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that ends is not meant: None means to push more"
    )]
    pub fn next(&mut self) -> Result<Option<Event<Encoded>>, WatchError> {
        if self.broken {
            return Ok(None);
        }
        let result = match self.format {
            Format::Json => self.next_json(),
            Format::Protobuf => self.next_protobuf(),
        };
        if result.is_err() {
            self.broken = true;
            self.input = Input::default();
        }
        result
    }

    /// Tells the decoder that the stream has ended.
    ///
    /// # Errors
    ///
    /// [`WatchError::Truncated`] if an event was not complete, and [`WatchError::Broken`] if there was an error before.
    pub fn finish(&self) -> Result<(), WatchError> {
        if self.broken {
            return Err(WatchError::Broken);
        }
        let rest = match self.format {
            Format::Json if !self.input.is_within_value() => {
                let rest = self.input.rest();
                rest.len() - skip_space(rest, 0)
            }
            Format::Json | Format::Protobuf => self.input.available(),
        };
        if rest == 0 { Ok(()) } else { Err(WatchError::Truncated { bytes: rest }) }
    }

    /// The event of one object, which the decoder of either format has found.
    fn event(
        &self,
        event_type: &str,
        format: Format,
        object: &[u8],
        envelope: Option<SelfType<'_>>,
    ) -> Event<Encoded> {
        if event_type == "BOOKMARK" {
            return self.bookmark(format, object, envelope);
        }
        let wrap: fn(Encoded) -> Event<Encoded> = match event_type {
            "ADDED" => Event::Added,
            "MODIFIED" => Event::Modified,
            "DELETED" => Event::Deleted,
            _ => {
                return Event::Unreadable(anonymous("unknown type of event".to_owned()));
            }
        };
        let reading = Reading::of(&self.collection, &self.limits);
        match self.read(format, object, reading, envelope) {
            Ok(encoded) if encoded.key_ref().is_nameless() => Event::Unreadable(Unreadable {
                key: None,
                resource_version: encoded.resource_version(),
                problem: "no metadata.name".to_owned(),
            }),
            Ok(encoded) => wrap(encoded),
            Err(unreadable) => Event::Unreadable(unreadable),
        }
    }

    fn bookmark(
        &self,
        format: Format,
        object: &[u8],
        envelope: Option<SelfType<'_>>,
    ) -> Event<Encoded> {
        let unreadable = |problem| Event::Unreadable(anonymous(problem));
        let reading = Reading::of(&self.collection, &self.limits).keeping_all();
        let encoded = match self.read(format, object, reading, envelope) {
            Ok(encoded) => encoded,
            Err(error) => return unreadable(error.problem),
        };
        match encoded.metadata() {
            Ok(partial) => Event::Bookmark(Bookmark {
                resource_version: encoded.resource_version(),
                initial_events_end: partial
                    .metadata
                    .annotations
                    .get(INITIAL_EVENTS_END)
                    .is_some_and(|value| value == "true"),
            }),
            Err(error) => unreadable(error.problem),
        }
    }

    fn read(
        &self,
        format: Format,
        object: &[u8],
        reading: Reading<'_>,
        envelope: Option<SelfType<'_>>,
    ) -> Result<Encoded, Unreadable> {
        let (encoded, foreign) =
            Encoded::read_and(&self.collection.resource, format, object, reading, |own| {
                foreign(&self.collection, envelope.as_ref().unwrap_or(own))
            })?;
        match foreign {
            None => Ok(encoded),
            Some(problem) => Err(anonymous(problem)),
        }
    }
}

/// The report on an object of which nothing may be told: neither its name nor its version is the collection's.
fn anonymous(problem: String) -> Unreadable {
    Unreadable { key: None, resource_version: ResourceVersion::UNSET, problem }
}
