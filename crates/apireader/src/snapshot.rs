//! The whole state by a streaming list.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use kubestrata_api_types::{Event, Object as _, ObjectKey, Snapshot, Unreadable, WatchOptions};
use kubestrata_codec::{Client as _, ClientError, Encoded, EncodedService};

use crate::reader::within;
use crate::{Query, ReadError};

/// Reads initial events up to the bookmark that ends them.
pub(crate) async fn read<S: EncodedService>(
    service: &S,
    query: &Query,
    options: WatchOptions,
    idle: Duration,
) -> Result<Snapshot<Encoded>, ReadError> {
    let call = service.watch(query.collection.clone(), options);
    let mut events = within(idle, call).await?.map_err(ReadError::of)?;
    let mut objects = BTreeMap::<ObjectKey, Encoded>::new();
    let mut unreadable = Vec::<Unreadable>::new();
    while let Some(event) = within(idle, events.next()).await? {
        match event.map_err(|error| ReadError::of(ClientError::from_service(error)))? {
            Event::Added(object) | Event::Modified(object) => {
                objects.insert(object.key(), object);
            }
            Event::Deleted(object) => {
                objects.remove(&object.key());
            }
            Event::Unreadable(object) => unreadable.push(object),
            Event::Bookmark(bookmark) if bookmark.initial_events_end => {
                return Ok(Snapshot {
                    items: objects.into_values().collect(),
                    unreadable,
                    resource_version: bookmark.resource_version,
                });
            }
            Event::Bookmark(_) => {}
        }
    }
    Err(ReadError::Incomplete)
}

/// Whether the server does not do streaming lists: it refuses the parameters (422, or 400 from an old one), the method
/// on this resource (405), or ends the watch without the bookmark.
pub(crate) fn is_refusal(error: &ReadError) -> bool {
    match error {
        ReadError::Incomplete => true,
        _ => error
            .status()
            .is_some_and(|status| status.is_invalid() || matches!(status.code, 400 | 405)),
    }
}

/// When the server wants to be asked again: client-go's rule, 429 and 5xx that name a time.
pub(crate) fn come_back(error: &ReadError) -> Option<Duration> {
    let status = error.status()?;
    let later = status.code == 429 || (500..600).contains(&status.code);
    status.retry_after().filter(|_| later)
}
