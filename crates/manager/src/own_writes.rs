//! Which of its own writes a controller's caches must have before it looks at a key again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kubestrata_api_types::{ObjectKey, ResourceType, ResourceVersion};
use tokio::time::Instant;

use crate::Cache;

/// Keys of which writes are remembered. The oldest is forgotten beyond that: such a key may be reconciled on a stale cache.
const KEYS_MAX: usize = 1 << 17;

/// The writes of the reconciles of one controller, by the key that was reconciled, until the caches have them.
///
/// KEP-5647 (`ConsistencyStore`), without the calls: a reconcile's client records. It is what keeps a controller that
/// counts the objects it owns from making them twice.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    keys: HashMap<ObjectKey, Writes>,
    /// Keys in the order in which they were first written for; some of them may be settled.
    order: VecDeque<ObjectKey>,
}

#[derive(Debug, Default)]
struct Writes {
    /// The newest version written in each kind and namespace.
    versions: Vec<Written>,
    deleted: Vec<Deleted>,
    /// Since when the caches are known to be behind.
    behind_since: Option<Instant>,
}

#[derive(Debug)]
struct Written {
    resource: Arc<ResourceType>,
    namespace: Option<String>,
    /// Of the cache when it was written: in a later one the write may be lost.
    epoch: u64,
    version: ResourceVersion,
}

#[derive(Debug)]
struct Deleted {
    resource: Arc<ResourceType>,
    key: ObjectKey,
    uid: String,
}

impl OwnWrites {
    /// Remembers that the reconcile of `key` wrote an object, now at `version`. Kinds that are not cached do not count.
    pub(crate) fn wrote(
        &self,
        key: &ObjectKey,
        cache: &Cache,
        resource: &Arc<ResourceType>,
        namespace: Option<&str>,
        version: ResourceVersion,
    ) {
        let Some(kept) = cache.following(resource, namespace).into_iter().next() else { return };
        let epoch = kept.version().epoch;
        self.with(key, |writes| {
            let same = |written: &&mut Written| {
                written.resource == *resource && written.namespace.as_deref() == namespace
            };
            match writes.versions.iter_mut().find(same) {
                Some(written) => {
                    if version.is_at_least(&written.version) != Some(false) {
                        written.version = version;
                    }
                    written.epoch = epoch;
                }
                None => writes.versions.push(Written {
                    resource: Arc::clone(resource),
                    namespace: namespace.map(str::to_owned),
                    epoch,
                    version,
                }),
            }
        });
    }

    /// Remembers that the reconcile of `key` deleted the object `deleted`, if a cache has it.
    pub(crate) fn deleted(
        &self,
        key: &ObjectKey,
        cache: &Cache,
        resource: &Arc<ResourceType>,
        deleted: ObjectKey,
        uid: Option<String>,
    ) {
        let kept = cache.following(resource, deleted.namespace());
        let Some(uid) = uid.or_else(|| kept.iter().find_map(|kept| kept.uid(&deleted))) else {
            return;
        };
        let resource = Arc::clone(resource);
        self.with(key, |writes| writes.deleted.push(Deleted { resource, key: deleted, uid }));
    }

    /// Whether the caches lack a write of `key` that is remembered. After `limit` they are taken as they are: the write may
    /// be of an object that they do not select.
    pub(crate) fn is_behind(&self, key: &ObjectKey, cache: &Cache, limit: Duration) -> bool {
        let mut state = self.state();
        let Some(writes) = state.keys.get_mut(key) else { return false };
        writes.versions.retain(|written| {
            let kept = cache.following(&written.resource, written.namespace.as_deref());
            kept.iter().any(|kept| {
                let have = kept.version();
                have.epoch == written.epoch
                    && have.version.is_at_least(&written.version) == Some(false)
            })
        });
        writes.deleted.retain(|deleted| {
            let kept = cache.following(&deleted.resource, deleted.key.namespace());
            kept.iter().any(|kept| kept.uid(&deleted.key).as_ref() == Some(&deleted.uid))
        });
        let settled = writes.versions.is_empty() && writes.deleted.is_empty();
        let since = *writes.behind_since.get_or_insert_with(Instant::now);
        if settled || since.elapsed() >= limit {
            if !settled {
                tracing::warn!(%key, ?limit, "the caches do not get to see a write; it is waited for no longer");
            }
            state.keys.remove(key);
            return false;
        }
        true
    }

    fn with(&self, key: &ObjectKey, change: impl FnOnce(&mut Writes)) {
        let mut state = self.state();
        if !state.keys.contains_key(key) {
            state.order.push_back(key.clone());
            // Settled keys are still in the order, so this ends at the latest when it is short again.
            while state.keys.len() >= KEYS_MAX || state.order.len() > 2 * KEYS_MAX {
                let Some(oldest) = state.order.pop_front() else { break };
                state.keys.remove(&oldest);
            }
        }
        change(state.keys.entry(key.clone()).or_default());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
