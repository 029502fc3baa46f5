//! Reading a list while it arrives.

mod json;
mod protobuf;

pub(crate) use self::json::JsonMeta;

use bytes::Bytes;
use kubestrata_api_types::{
    Collection, Format, ListMeta, ListPart, Object as _, Representation, Unreadable,
};

use crate::Encoded;
use crate::answer::{foreign, shown};
use crate::encoded::Reading;
use crate::head::SelfType;
use crate::input::Input;
use crate::limits::Limits;

/// Why a list is broken. What it has given before is right, but not all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// An item, or the list's metadata, is larger than [`Limits::item_bytes`].
    #[error("a list item is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The text is no list.
    #[error("malformed list: {problem} at byte {offset}")]
    Malformed {
        /// Where, counted from the start of the list.
        offset: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// The list is of another kind.
    #[error("the list is a {kind} of {api_version:?}")]
    Foreign {
        /// Its kind.
        kind: String,
        /// Its `apiVersion`.
        api_version: String,
    },
    /// The list ended early.
    #[error("the list ended early, after {bytes} bytes")]
    Truncated {
        /// How many bytes came.
        bytes: usize,
    },
    /// The end of a list that had an error, which was told before.
    #[error("the list was broken before its end")]
    Broken,
}

/// Turns the bytes of a list, cut anywhere, into its items, one by one.
///
/// Items are read where they are in what was pushed, which it shares until its parts are taken. It holds beside that at
/// most one incomplete item, of [`Limits::item_bytes`], and for a moment the same item joined. The keys of a JSON list may
/// come in any order, so the kind of a list can turn out to be wrong after its items; a list counts when
/// [`ListDecoder::finish`] has succeeded.
#[derive(Debug)]
pub struct ListDecoder {
    collection: Collection,
    limits: Limits,
    format: Format,
    json: json::State,
    protobuf: protobuf::State,
    input: Input,
    own: SelfType<'static>,
    meta_seen: bool,
    items_seen: bool,
    /// The whole list has been read.
    complete: bool,
    /// After an error nothing more comes.
    broken: bool,
}

impl ListDecoder {
    /// A decoder of a list of `collection` whose answer came in `format`.
    pub fn new(collection: Collection, format: Format, limits: Limits) -> Self {
        Self {
            collection,
            limits,
            format,
            json: json::State::default(),
            protobuf: protobuf::State::default(),
            input: Input::default(),
            own: SelfType::default(),
            meta_seen: false,
            items_seen: false,
            complete: false,
            broken: false,
        }
    }

    /// Takes further bytes. Call [`ListDecoder::next`] until it gives `None` before the next push: what is pushed
    /// beyond that is buffered.
    pub fn push(&mut self, bytes: Bytes) {
        // Nothing will be read any more, so nothing is kept.
        if !self.broken {
            self.input.push(bytes);
        }
    }

    /// The next part; `None` if more bytes are needed, after the end, and for ever after an error.
    ///
    /// [`ListPart::Meta`] comes once, where the metadata stands, or at the end of a list that has none.
    ///
    /// # Errors
    ///
    /// [`ListError`]; the list is incomplete.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that ends is not meant: None means to push more"
    )]
    pub fn next(&mut self) -> Result<Option<ListPart<Encoded>>, ListError> {
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

    /// Tells the decoder that the body has ended. All parts must have been taken.
    ///
    /// # Errors
    ///
    /// [`ListError::Truncated`] if the list was not complete, and [`ListError::Broken`] if there was an error before.
    pub fn finish(&self) -> Result<(), ListError> {
        if self.broken {
            Err(ListError::Broken)
        } else if self.complete && self.input.available() == 0 {
            Ok(())
        } else {
            Err(ListError::Truncated { bytes: self.input.position() + self.input.available() })
        }
    }

    fn malformed(at: usize, problem: &'static str) -> ListError {
        ListError::Malformed { offset: at, problem }
    }

    fn malformed_here(&self, problem: &'static str) -> ListError {
        Self::malformed(self.input.position(), problem)
    }

    /// The part for one item.
    fn item(&self, bytes: &[u8]) -> ListPart<Encoded> {
        let collection = &self.collection;
        let read = Encoded::read_and(
            &collection.resource,
            self.format,
            bytes,
            Reading::of(collection, &self.limits),
            |own| foreign(collection, own),
        );
        match read {
            Err(unreadable) => ListPart::Unreadable(unreadable),
            Ok((encoded, foreign)) => {
                let nameless = encoded.key_ref().is_nameless();
                let problem = foreign.or_else(|| nameless.then(|| "no metadata.name".to_owned()));
                match problem {
                    None => ListPart::Item(encoded),
                    Some(problem) => ListPart::Unreadable(Unreadable {
                        key: (!nameless).then(|| encoded.key()),
                        resource_version: encoded.resource_version(),
                        problem,
                    }),
                }
            }
        }
    }

    /// The end of the list: its kind is known now, and its metadata, if it has any.
    fn end(&mut self) -> Result<Option<ListPart<Encoded>>, ListError> {
        self.complete = true;
        self.check_kind()?;
        if std::mem::replace(&mut self.meta_seen, true) {
            Ok(None)
        } else {
            Ok(Some(ListPart::Meta(ListMeta::default())))
        }
    }

    fn check_kind(&self) -> Result<(), ListError> {
        let kind = self.own.kind.as_deref().unwrap_or_default();
        let api_version = self.own.api_version.as_deref().unwrap_or_default();
        let fits = if self.collection.representation == Representation::Metadata
            && kind == "PartialObjectMetadataList"
        {
            api_version == "meta.k8s.io/v1"
        } else {
            // A custom resource may name its list kind as it likes.
            kind.ends_with("List") && api_version == self.collection.resource.api_version()
        };
        // A list that says nothing of its kind is taken as it is.
        if fits || (kind.is_empty() && api_version.is_empty()) {
            Ok(())
        } else {
            Err(ListError::Foreign { kind: shown(kind), api_version: shown(api_version) })
        }
    }
}
