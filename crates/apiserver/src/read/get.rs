//! Get.

use crate::catalog::Store;
use crate::failure::{Outcome, unclassified};
use crate::options::parse_version;
use crate::record::Item;
use crate::server::Core;

/// Reads one object: the newest, or with a version one that is at least as new.
pub(crate) async fn get(
    core: &Core,
    store: &Store,
    key: &str,
    version: &str,
) -> Outcome<Option<Item>> {
    // kube-apiserver lets this error through unclassified.
    let revision = parse_version(version).map_err(unclassified)?;
    if version.is_empty() {
        let entry = core.storage.get(key).await?;
        return Ok(entry.map(|entry| entry.value));
    }
    store.cache.fresh(revision, core.config.fresh_patience).await?;
    Ok(store.cache.get(key))
}
