//! The end of one server and the start of the next, as clients see them: for tests of what a client does then.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::BoxError;
use kubestrata_storage::{Entry, Memory, Range, Storage};

use super::{Core, Server};
use crate::catalog::Catalog;
use crate::record::Item;

/// The objects of a server as of one revision: what a snapshot of etcd holds. A clone shares the objects.
#[derive(Clone)]
pub struct Backup {
    entries: Vec<Entry<Item>>,
    revision: u64,
}

impl Backup {
    /// The revision as of which it was made.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backup")
            .field("objects", &self.entries.len())
            .field("revision", &self.revision)
            .finish()
    }
}

impl Server {
    /// The server that takes this one's place when it is restarted and its state is kept: the same objects, resources and
    /// revisions, but an empty watch cache, so that nobody can resume at an earlier revision than the present one.
    ///
    /// The watches of this server end. Its handles go on to answer other requests, from the same objects.
    #[must_use]
    pub fn restart(&self) -> Self {
        self.succeed(Arc::clone(&self.0.storage))
    }

    /// The objects as they are now.
    ///
    /// # Errors
    ///
    /// The storage cannot be reached.
    pub async fn backup(&self) -> Result<Backup, BoxError> {
        let page = self.0.storage.range(Range::prefix("")).await?;
        Ok(Backup { entries: page.items, revision: page.revision })
    }

    /// The server that takes this one's place when it is restarted with the objects of a backup, at `revision`, or at the
    /// backup's revision if that is higher. It serves the same resources as this one.
    ///
    /// With the backup's revision, as after a plain restore of etcd, revisions are given a second time. A client that
    /// resumes at one of them, once it is reached again, cannot know that it has missed changes; neither could the client
    /// of a kube-apiserver. With a revision above all that were given, every client is told that its revision is gone.
    ///
    /// The watches of this server end.
    #[must_use]
    pub fn restore(&self, backup: &Backup, revision: u64) -> Self {
        let revision = revision.max(backup.revision);
        let config = self.0.config.storage.clone();
        let storage = Memory::restored(config, backup.entries.iter().cloned(), revision);
        self.succeed(Arc::new(storage))
    }

    /// A new server over `storage`, with the resources of this one.
    fn succeed(&self, storage: Arc<dyn Storage<Item>>) -> Self {
        let core = Arc::new(Core {
            config: self.0.config.clone(),
            world: Arc::clone(&self.0.world),
            storage,
            catalog: Catalog::default(),
        });
        for resource in self.0.catalog.all() {
            core.serve((*resource.ty).clone(), resource.info.clone());
            if let Some(store) = &resource.store {
                store.cache.close();
            }
        }
        Self(core)
    }
}
