//! One read from the cache.

use std::sync::Arc;

use futures_util::stream;
use kubestrata_api_types::{
    Answer, ApiRequest, ApiResponse, BoxError, ListMeta, ListOptions, ListPart, Object as _,
    ObjectKey, Operation, ResourceVersion, Status, StatusDetails, VersionMatch, reason,
};
use kubestrata_codec::Encoded;
use kubestrata_informer::Informer;
use kubestrata_store_index::{Query, Selected, WaitError};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::route::Part;
use crate::writes::{Scope, Writes};
use crate::{Cache, CacheError};

/// Begins the continue tokens of the cache; all others are the server's.
const TOKEN: &str = "kubestrata/";

/// Whether the cache can answer a list: an exact version, a shard, or a page of a list that the server began, it cannot.
pub(crate) fn can_list(options: &ListOptions) -> bool {
    options.version_match != Some(VersionMatch::Exact)
        && options.shard.is_none()
        && options.continue_token.as_deref().is_none_or(|token| token.starts_with(TOKEN))
}

/// A get or list, and the informers that answer it.
pub(crate) struct Read {
    cache: Cache,
    parts: Vec<Part>,
    request: ApiRequest,
    /// The client's own writes, if it reads them.
    writes: Option<Arc<Writes>>,
    /// Own writes on their way when the read began.
    in_flight: Vec<watch::Receiver<()>>,
}

impl Read {
    pub(crate) fn new(
        cache: Cache,
        parts: Vec<Part>,
        request: ApiRequest,
        writes: Option<Arc<Writes>>,
    ) -> Self {
        let mut read = Self { cache, parts, request, writes, in_flight: Vec::new() };
        if let Some(writes) = &read.writes {
            let key = read.key();
            let resource = &read.request.collection.resource;
            read.in_flight = writes.in_flight(resource, read.scope(key.as_ref()));
        }
        read
    }

    /// The answer, if there is nothing to wait for.
    pub(crate) fn now(&self) -> Option<Result<ApiResponse<Encoded>, BoxError>> {
        let synced = self.parts.iter().all(|part| part.informer.has_synced());
        if !synced || !self.in_flight.is_empty() {
            return None;
        }
        let key = self.key();
        for part in &self.parts {
            for (epoch, version) in self.needs(part, key.as_ref()) {
                let have = part.informer.reader().version();
                let reached = have.epoch == epoch && at_least(&have.version, &version);
                if !reached {
                    return None;
                }
            }
        }
        self.settled(key.as_ref());
        Some(self.answer(key.as_ref()))
    }

    /// Waits for what there is to wait for, then answers.
    pub(crate) async fn run(mut self) -> Result<ApiResponse<Encoded>, BoxError> {
        let config = self.cache.config();
        let (sync, wait) = (config.sync_timeout, config.wait_timeout);
        for part in &self.parts {
            part.informer.wait_synced(sync).await.map_err(|error| CacheError::NotSynced {
                resource: self.request.collection.resource.to_string(),
                error,
            })?;
        }
        let key = self.key();
        let in_flight = std::mem::take(&mut self.in_flight);
        let waiting = async {
            for mut write in in_flight {
                // The only thing that it tells is its end.
                while write.changed().await.is_ok() {}
            }
        };
        if timeout(wait, waiting).await.is_err() {
            return Err(
                self.stale(WaitError::Stale { have: self.version(), want: ResourceVersion::UNSET })
            );
        }
        for part in &self.parts {
            for (epoch, version) in self.needs(part, key.as_ref()) {
                self.wait(&part.informer, epoch, version, key.as_ref()).await?;
            }
        }
        self.settled(key.as_ref());
        self.answer(key.as_ref())
    }

    fn key(&self) -> Option<ObjectKey> {
        let namespace = self.namespace();
        Some(ObjectKey::new(namespace, self.request.name()?))
    }

    fn namespace(&self) -> Option<&str> {
        let collection = &self.request.collection;
        collection.namespace.as_deref().filter(|_| collection.resource.is_namespaced())
    }

    fn scope<'a>(&'a self, key: Option<&'a ObjectKey>) -> Scope<'a> {
        key.map_or_else(|| Scope::Namespace(self.namespace()), Scope::Key)
    }

    /// The versions that the store of one informer must have: the request's, and those of own writes that it will show.
    fn needs(&self, part: &Part, key: Option<&ObjectKey>) -> Vec<(u64, ResourceVersion)> {
        let mut needs = Vec::new();
        let asked = match &self.request.operation {
            Operation::Get { options, .. } => &options.resource_version,
            Operation::List(options) => &options.resource_version,
            _ => &ResourceVersion::UNSET,
        };
        if !asked.is_unset() && !asked.is_any() {
            needs.push((part.informer.reader().version().epoch, asked.clone()));
        }
        if let Some(writes) = &self.writes {
            // Never wait on one namespace's store for a write in another.
            let scope = match key {
                Some(key) => Scope::Key(key),
                None => Scope::Namespace(part.namespace().or_else(|| self.namespace())),
            };
            needs.extend(writes.need(&self.request.collection.resource, scope).version);
        }
        needs
    }

    async fn wait(
        &self,
        informer: &Informer<Encoded>,
        epoch: u64,
        version: ResourceVersion,
        key: Option<&ObjectKey>,
    ) -> Result<(), BoxError> {
        let reader = informer.reader();
        let reached = reader.at_least_in(epoch, version.clone());
        let error = match timeout(self.cache.config().wait_timeout, reached).await {
            // Versions without an order: as good as it gets (KEP-5647 goes on as well).
            Ok(Ok(_) | Err(WaitError::NotComparable(_))) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => WaitError::Stale { have: reader.version().version, want: version },
        };
        if let (WaitError::Rewound { .. }, Some(writes)) = (&error, &self.writes) {
            // The write may be lost; tell it once, not for ever.
            let now = reader.version().epoch;
            let resource = &self.request.collection.resource;
            writes.forget(resource, self.scope(key), |epoch, _| epoch != now);
        }
        Err(self.stale(error))
    }

    fn stale(&self, error: WaitError) -> BoxError {
        CacheError::Stale { resource: self.request.collection.resource.to_string(), error }.into()
    }

    /// The oldest version of the stores that answer.
    fn version(&self) -> ResourceVersion {
        let versions = self.parts.iter().map(|part| part.informer.reader().version().version);
        versions
            .reduce(|one, other| if at_least(&one, &other) { other } else { one })
            .unwrap_or_default()
    }

    /// Own writes that the cache has need not be remembered.
    fn settled(&self, key: Option<&ObjectKey>) {
        let Some(writes) = &self.writes else { return };
        let resource = &self.request.collection.resource;
        // With one store, its version says it for all keys of the scope; with several, each read of a key settles its own.
        if let [part] = &self.parts[..] {
            let have = part.informer.reader().version();
            writes.forget(resource, self.scope(key), |epoch, version| {
                epoch == have.epoch && at_least(&have.version, version)
            });
        }
    }

    fn answer(&self, key: Option<&ObjectKey>) -> Result<ApiResponse<Encoded>, BoxError> {
        match (&self.request.operation, key) {
            (Operation::List(options), _) => self.list(options),
            (_, Some(key)) => self.get(key),
            // Routing sends only gets and lists here, and a get has a key.
            (_, None) => Err(not_found(&self.request, "").into()),
        }
    }

    fn get(&self, key: &ObjectKey) -> Result<ApiResponse<Encoded>, BoxError> {
        let resource = &self.request.collection.resource;
        let found = self.parts.iter().find_map(|part| part.informer.reader().get(key));
        let hidden = |object: &Encoded| {
            self.writes.as_ref().is_some_and(|writes| writes.hides(resource, object.uid()))
        };
        if let Some(object) = found.filter(|object| !hidden(object)) {
            return Ok(ApiResponse::new(Answer::Object(object)));
        }
        let need = self.writes.as_ref().map(|writes| writes.need(resource, Scope::Key(key)));
        if need.is_some_and(|need| need.not_selected) {
            return Err(CacheError::NotSelected { key: key.clone() }.into());
        }
        Err(not_found(&self.request, key.name()).into())
    }

    fn list(&self, options: &ListOptions) -> Result<ApiResponse<Encoded>, BoxError> {
        let resource = &self.request.collection.resource;
        let query = self.query(options);
        let mut selected: Vec<Selected<Encoded>> = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let found = part.informer.reader().select(&query);
            let resource = resource.to_string();
            selected.push(found.map_err(|error| CacheError::Query { resource, error })?);
        }
        let mut more = selected.iter().any(|selected| selected.more);
        let version = selected
            .iter()
            .map(|selected| selected.version.version.clone())
            .reduce(|one, other| if at_least(&one, &other) { other } else { one });
        let mut items: Vec<Encoded> =
            selected.into_iter().flat_map(|selected| selected.objects).collect();
        let limit = options.limit.map(|limit| limit as usize).filter(|limit| *limit > 0);
        if let (Some(limit), true) = (limit, self.parts.len() > 1) {
            items.sort_unstable_by_key(Encoded::key);
            more |= items.len() > limit;
            items.truncate(limit);
        }
        let last = items.last().filter(|_| more).map(Encoded::key);
        if let Some(writes) = &self.writes {
            let hidden = writes.hidden(resource);
            if !hidden.is_empty() {
                items.retain(|item| item.uid().is_none_or(|uid| !hidden.contains(uid)));
            }
        }
        let meta = ListMeta {
            resource_version: version.unwrap_or_default(),
            continue_token: last.map(|key| format!("{TOKEN}{key}")),
            remaining_item_count: None,
        };
        let parts = items.into_iter().map(ListPart::Item).chain([ListPart::Meta(meta)]).map(Ok);
        Ok(ApiResponse::new(Answer::List(Box::pin(stream::iter(parts)))))
    }

    fn query(&self, options: &ListOptions) -> Query {
        let mut query = Query::all()
            .in_namespace(self.namespace().unwrap_or_default())
            .labels(options.labels.clone())
            .fields(options.fields.clone());
        if let Some(limit) = options.limit.filter(|limit| *limit > 0) {
            query = query.ordered().limit(limit as usize);
        }
        let token = options.continue_token.as_deref().and_then(|token| token.strip_prefix(TOKEN));
        match token.map(str::parse) {
            Some(Ok(key)) => query.after(key),
            // A token without a key is the one before all.
            _ => query,
        }
    }
}

fn at_least(have: &ResourceVersion, want: &ResourceVersion) -> bool {
    have == want || have.is_at_least(want).unwrap_or_else(|| !have.is_unset())
}

/// The Status that the server answers with.
pub(crate) fn not_found(request: &ApiRequest, name: &str) -> Status {
    let resource = &request.collection.resource;
    let details = StatusDetails {
        name: name.to_owned(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        ..StatusDetails::default()
    };
    let message = format!("{resource} \"{name}\" not found");
    Status { details: Some(details), ..Status::failure(404, reason::NOT_FOUND, message) }
}
