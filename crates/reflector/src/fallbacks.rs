//! What several reflectors remember together of one server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubestrata_api_types::ResourceType;
use tokio::time::Instant;

/// Resources of one server for which streaming lists have failed while plain ones did not, each for
/// [`Config::fallback_for`](crate::Config::fallback_for).
///
/// A clone is the same memory, and so is that of a cloned [`Config`](crate::Config): what one reflector has found out, for
/// one namespace or selector, the others need not try. client-go remembers nothing, and asks again at each relist.
#[derive(Clone, Default)]
pub struct Fallbacks(Arc<Mutex<BTreeMap<ResourceType, Instant>>>);

impl Fallbacks {
    /// More resources are not remembered here; each reflector still remembers its own.
    pub const RESOURCES_MAX: usize = 1024;

    /// Until when no streaming list of a resource is tried; `None` if one may be.
    pub fn until(&self, resource: &ResourceType) -> Option<Instant> {
        self.lock().get(resource).copied().filter(|until| *until > Instant::now())
    }

    pub(crate) fn remember(&self, resource: &ResourceType, until: Instant) {
        let now = Instant::now();
        let mut resources = self.lock();
        resources.retain(|_, until| *until > now);
        if let Some(known) = resources.get_mut(resource) {
            *known = until.max(*known);
        } else if resources.len() < Self::RESOURCES_MAX {
            resources.insert(resource.clone(), until);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ResourceType, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Fallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys().map(ToString::to_string)).finish()
    }
}
