//! The reader.

use std::time::Duration;

use futures_util::StreamExt as _;
use kubestrata_api_types::{
    Collection, FieldSelector, GetOptions, Kind, ListPart, ObjectKey, ResourceType, Snapshot,
};
use kubestrata_codec::{Client as _, Encoded, EncodedService, List, Tracked};
use serde::de::DeserializeOwned;

use crate::pages::Pages;
use crate::snapshot;
use crate::{Consistency, Query, ReadError};

/// Limits of a reader.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal with ..Default")]
pub struct Config {
    /// Objects per page. Default 500, as in client-go's pager; 0 asks for all in one.
    pub page_size: u32,
    /// Pages of one list. Default 2^20: a guard against a server whose lists do not end.
    pub max_pages: usize,
    /// The longest time without any part of an answer. Default 60 s.
    pub idle: Duration,
    /// How often [`ApiReader::snapshot`] asks again where the server says to come back later. Default 10, as in
    /// client-go's requests. Other reads leave that to the service below, which does not do it for watches.
    pub retries: u32,
    /// The longest time to come back after (`Retry-After`) that a snapshot waits. Default 60 s.
    pub retry_wait: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { page_size: 500, max_pages: 1 << 20, idle: minute, retries: 10, retry_wait: minute }
    }
}

/// Reads from the API server itself.
///
/// All futures and streams are cancel-safe: dropping one cancels the request. They need tokio's timer.
#[derive(Debug, Clone)]
pub struct ApiReader<S> {
    service: S,
    config: Config,
}

impl<S: EncodedService> ApiReader<S> {
    /// A reader over a service that must have no cache in it.
    pub fn new(service: S) -> Self {
        Self::with_config(service, Config::default())
    }

    /// A reader with limits of one's own.
    pub fn with_config(service: S, config: Config) -> Self {
        Self { service, config }
    }

    /// One object; `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub async fn get<K: Kind + DeserializeOwned>(
        &self,
        key: &ObjectKey,
        consistency: Consistency,
    ) -> Result<Option<Tracked<K>>, ReadError> {
        let object = self.get_encoded(K::resource(), key, consistency).await?;
        object.as_ref().map(Tracked::decode).transpose().map_err(ReadError::Undecodable)
    }

    /// One object of any kind, encoded; `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// [`ReadError`], but never `Undecodable`.
    pub async fn get_encoded(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        consistency: Consistency,
    ) -> Result<Option<Encoded>, ReadError> {
        if let Consistency::Exactly(_) = consistency {
            return self.get_exactly(resource, key, consistency).await;
        }
        let options = GetOptions { resource_version: consistency.parameters().0 };
        let call = self.service.get_encoded(resource, key, options);
        match within(self.config.idle, call).await? {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(ReadError::of(error)),
        }
    }

    /// A get cannot ask for an exact version; a list of the one name can.
    async fn get_exactly(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        consistency: Consistency,
    ) -> Result<Option<Encoded>, ReadError> {
        let collection =
            Collection::new(resource.clone()).in_namespace(key.namespace().unwrap_or_default());
        let query = Query::new(collection)
            .fields(FieldSelector::equal("metadata.name", key.name()))
            .consistency(consistency)
            .page_size(0);
        let mut list = self.list_encoded(&query).await?;
        Ok(list.items.pop())
    }

    /// All objects of a kind that the query asks for. Those that do not decode are named in the answer and hide no
    /// others.
    ///
    /// A page token that expires on the way costs a second, full list (client-go `FullListIfExpired`).
    ///
    /// # Errors
    ///
    /// [`ReadError`], but never `Undecodable`.
    pub async fn list<K: DeserializeOwned>(
        &self,
        query: &Query,
    ) -> Result<List<Tracked<K>>, ReadError> {
        let encoded = self.list_encoded(query).await?;
        let mut list = List {
            items: Vec::with_capacity(encoded.items.len()),
            undecodable: encoded.undecodable,
            unreadable: encoded.unreadable,
            meta: encoded.meta,
        };
        for item in &encoded.items {
            match Tracked::decode(item) {
                Ok(object) => list.items.push(object),
                Err(undecodable) => list.undecodable.push(undecodable),
            }
        }
        Ok(list)
    }

    /// As [`list`](Self::list), encoded.
    ///
    /// # Errors
    ///
    /// [`ReadError`], but never `Undecodable`.
    pub async fn list_encoded(&self, query: &Query) -> Result<List<Encoded>, ReadError> {
        match collect(self.pages(query)).await {
            Err(ReadError::Expired(_)) if query.page_size != Some(0) => {
                // client-go's pager: once in full, in the version first asked for. Where that is what has expired, the
                // server says so again.
                collect(self.pages(&query.clone().page_size(0))).await
            }
            done => done,
        }
    }

    /// The objects page by page, each as it arrives: memory is bounded by one object and the reading ahead of the
    /// layers below. The last part is the list's metadata.
    ///
    /// All pages are of one version. If its token expires between two pages the stream ends with
    /// [`ReadError::Expired`], unless the server offers to go on with what is there now and the caller has agreed:
    /// [`Pages::or_inconsistent`].
    pub fn pages(&self, query: &Query) -> Pages {
        Pages::new(self.service.clone(), query, self.config.clone())
    }

    /// The whole state as a streaming list (KEP-3157), which costs the server far less memory than a list; from a
    /// server that refuses it, as a list. Where the server only says to come back later, as while its cache fills, this does
    /// ([`Config::retries`]).
    ///
    /// # Errors
    ///
    /// [`ReadError`], but never `Undecodable`.
    pub async fn snapshot(&self, query: &Query) -> Result<Snapshot<Encoded>, ReadError> {
        if let Some(options) = query.watch_options() {
            let mut retries = 0;
            loop {
                let (options, idle) = (options.clone(), self.config.idle);
                match snapshot::read(&self.service, query, options, idle).await {
                    Err(error) if snapshot::is_refusal(&error) => break,
                    Err(error) if retries < self.config.retries => {
                        let later = snapshot::come_back(&error);
                        let Some(later) = later.filter(|later| *later <= self.config.retry_wait)
                        else {
                            return Err(error);
                        };
                        retries += 1;
                        tokio::time::sleep(later).await;
                    }
                    done => return done,
                }
            }
        }
        let list = self.list_encoded(query).await?;
        Ok(Snapshot {
            items: list.items,
            unreadable: list.unreadable,
            resource_version: list.meta.resource_version,
        })
    }
}

async fn collect(mut pages: Pages) -> Result<List<Encoded>, ReadError> {
    let mut list = List {
        items: Vec::new(),
        undecodable: Vec::new(),
        unreadable: Vec::new(),
        meta: Default::default(),
    };
    while let Some(part) = pages.next().await {
        match part? {
            ListPart::Item(item) => list.items.push(item),
            ListPart::Unreadable(unreadable) => list.unreadable.push(unreadable),
            ListPart::Meta(meta) => list.meta = meta,
        }
    }
    Ok(list)
}

/// A future with a deadline.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Result<F::Output, ReadError> {
    tokio::time::timeout(limit, future).await.map_err(|_| ReadError::Idle(limit))
}
