//! An informer with a handler that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubestrata_api_types::{Collection, ListWatch};
use kubestrata_informer::{Config, Handler, HandlerConfig, Informer, Registration};
use kubestrata_store_index::{Index, Stored};

use crate::Result;

/// A sync that takes longer has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// What a handler was told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    adds: AtomicU64,
    updates: AtomicU64,
}

impl Told {
    /// Objects that were added.
    pub(crate) fn adds(&self) -> u64 {
        // Relaxed, here and below: a count, looked at until it is reached.
        self.adds.load(Ordering::Relaxed)
    }

    /// Objects that changed.
    pub(crate) fn updates(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }
}

impl<T: 'static> Handler<T> for Told {
    fn on_add(&self, _: &T, _: bool) {
        self.adds.fetch_add(1, Ordering::Relaxed);
    }

    fn on_update(&self, _: &T, _: &T) {
        self.updates.fetch_add(1, Ordering::Relaxed);
    }

    fn on_delete(&self, _: &T, _: bool) {}
}

/// The collection changed meanwhile, or something is wrong: the figures would mean nothing.
#[derive(Debug, thiserror::Error)]
#[error("the handler was told of {told_of} objects, but {stored} are stored")]
struct Unequal {
    told_of: u64,
    stored: u64,
}

/// A running informer.
pub(crate) struct Followed<T: Stored> {
    pub(crate) informer: Informer<T>,
    pub(crate) told: Arc<Told>,
    _registration: Registration,
}

/// Starts an informer and waits until it is synced and its handler was told of every object, as the peers do.
pub(crate) async fn follow<T: Stored>(
    source: Arc<dyn ListWatch<T>>,
    collection: Collection,
    indexes: Vec<Index<T>>,
) -> Result<Followed<T>> {
    let informer = Informer::new(source, collection, Config::default());
    for index in indexes {
        informer.add_index(index)?;
    }
    let told = Arc::new(Told::default());
    let registration = informer.add_handler(Arc::clone(&told), HandlerConfig::default())?;
    informer.start();
    informer.wait_synced(LIMIT).await?;
    registration.wait_synced().await?;
    let (told_of, stored) = (told.adds(), informer.reader().len() as u64);
    // Objects that cannot be read are not stored: a run that lost any measures something else.
    if told_of != stored || informer.status().unreadable > 0 {
        return Err(Unequal { told_of, stored }.into());
    }
    Ok(Followed { informer, told, _registration: registration })
}
