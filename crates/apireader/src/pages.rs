//! A list as a stream of its parts, over all pages.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt as _};
use kubestrata_api_types::{
    ApiRequest, Collection, ListMeta, ListOptions, ListPart, ListStream, Operation, ResourceVersion,
};
use kubestrata_codec::{Client as _, ClientError, Encoded, EncodedService};

use crate::reader::within;
use crate::{Config, Query, ReadError};

/// The parts of a list, over all pages: items and unreadable objects, then the metadata, once.
///
/// After an `Err` it ends, and the list is incomplete.
pub struct Pages {
    /// Set before the first poll only: the stream is made from it then.
    start: Option<Start>,
    parts: BoxStream<'static, Result<ListPart<Encoded>, ReadError>>,
}

type Start =
    Box<dyn FnOnce(bool) -> BoxStream<'static, Result<ListPart<Encoded>, ReadError>> + Send>;

impl Pages {
    pub(crate) fn new<S: EncodedService>(service: S, query: &Query, config: Config) -> Self {
        let reading = Reading {
            service,
            collection: query.collection.clone(),
            options: query.list_options(config.page_size),
            config,
            or_inconsistent: false,
            page: None,
            pages: 0,
            meta: None,
            version: ResourceVersion::UNSET,
            ended: false,
        };
        let start = move |or_inconsistent| {
            let reading = Reading { or_inconsistent, ..reading };
            stream::unfold(reading, |mut reading| async {
                let part = reading.next().await?;
                reading.ended |= part.is_err();
                Some((part, reading))
            })
            .boxed()
        };
        Self { start: Some(Box::new(start)), parts: stream::empty().boxed() }
    }

    /// If the token expires between two pages, go on with the objects that are there now: objects that were created,
    /// deleted or renamed meanwhile may be missing or superfluous.
    #[must_use]
    pub fn or_inconsistent(mut self) -> Self {
        if let Some(start) = self.start.take() {
            self.parts = start(true);
        }
        self
    }
}

impl Stream for Pages {
    type Item = Result<ListPart<Encoded>, ReadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(start) = self.start.take() {
            self.parts = start(false);
        }
        self.parts.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

/// A list on its way.
struct Reading<S> {
    service: S,
    collection: Collection,
    options: ListOptions,
    config: Config,
    or_inconsistent: bool,
    /// The page that is being read.
    page: Option<ListStream<Encoded>>,
    /// Pages asked for.
    pages: usize,
    /// Metadata of the page that is being read.
    meta: Option<ListMeta>,
    /// The first page's version, which is the list's.
    version: ResourceVersion,
    ended: bool,
}

impl<S: EncodedService> Reading<S> {
    async fn next(&mut self) -> Option<Result<ListPart<Encoded>, ReadError>> {
        while !self.ended {
            let Some(page) = &mut self.page else {
                match self.open().await {
                    Ok(page) => self.page = Some(page),
                    Err(error) => return Some(Err(error)),
                }
                continue;
            };
            match within(self.config.idle, page.next()).await {
                Err(error) => return Some(Err(error)),
                Ok(Some(Ok(ListPart::Meta(meta)))) => self.meta = Some(meta),
                Ok(Some(Ok(part))) => return Some(Ok(part)),
                Ok(Some(Err(error))) => {
                    return Some(Err(ReadError::of(ClientError::from_service(error))));
                }
                Ok(None) => {
                    self.page = None;
                    if let Some(end) = self.end_of_page() {
                        return Some(end);
                    }
                }
            }
        }
        None
    }

    /// Asks for the next page.
    async fn open(&mut self) -> Result<ListStream<Encoded>, ReadError> {
        loop {
            if self.pages >= self.config.max_pages {
                return Err(ReadError::Endless(self.pages));
            }
            self.pages += 1;
            let operation = Operation::List(self.options.clone());
            let call = self.service.send(ApiRequest::new(self.collection.clone(), operation));
            let error = match within(self.config.idle, call).await? {
                Ok(answer) => match answer.into_list() {
                    Ok(list) => return Ok(list),
                    Err(unexpected) => ClientError::from(unexpected),
                },
                Err(error) => error,
            };
            match error.status() {
                Some(status) if self.or_inconsistent && status.is_expired() => {
                    match &status.continue_token {
                        Some(token) if self.options.continue_token.as_ref() != Some(token) => {
                            self.options.continue_token = Some(token.clone());
                        }
                        _ => return Err(ReadError::Expired(error)),
                    }
                }
                _ => return Err(ReadError::of(error)),
            }
        }
    }

    /// What follows a page: another page (`None`), the metadata or an error.
    fn end_of_page(&mut self) -> Option<Result<ListPart<Encoded>, ReadError>> {
        let Some(mut meta) = self.meta.take() else {
            return Some(Err(ReadError::Incomplete));
        };
        if self.version.is_unset() {
            self.version = meta.resource_version.clone();
        }
        match meta.continue_token.take().filter(|token| !token.is_empty()) {
            Some(token) if self.options.continue_token.as_ref() == Some(&token) => {
                Some(Err(ReadError::Endless(self.pages)))
            }
            Some(token) => {
                // The token carries the version; a request with both is refused.
                self.options.resource_version = ResourceVersion::UNSET;
                self.options.version_match = None;
                self.options.continue_token = Some(token);
                None
            }
            None => {
                self.ended = true;
                meta.resource_version = self.version.clone();
                Some(Ok(ListPart::Meta(meta)))
            }
        }
    }
}
