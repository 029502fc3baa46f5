//! A handler's place in an informer.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::backlog::{Close, Ending};
use crate::listener::Common;
use crate::members::Leave;
use crate::{Ended, HandlerStatus};

/// Follows and removes one handler. A clone is another handle to the same handler.
///
/// Dropping it leaves the handler where it is, for as long as the informer runs.
#[derive(Clone)]
pub struct Registration {
    pub(crate) id: u64,
    pub(crate) common: Arc<Common>,
    pub(crate) members: Weak<dyn Leave>,
    /// Weak: what waits for a handler must not outlive its informer.
    pub(crate) backlog: Weak<dyn Close>,
}

impl Registration {
    /// Whether the handler was told, and has returned from it, of every object that was there when it began; if it came
    /// before the informer was synced, of the informer's whole first state. Never false again once true.
    pub fn has_synced(&self) -> bool {
        self.common.progress.borrow().synced
    }

    /// Waits for [`has_synced`](Self::has_synced). Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`Ended`] if the handler is removed, or the informer stopped, before.
    pub async fn wait_synced(&self) -> Result<(), Ended> {
        let mut progress = self.common.progress.subscribe();
        let reached = progress.wait_for(|progress| progress.synced || progress.ended).await;
        // The sender lives as long as `self.common` does.
        if reached.is_ok_and(|progress| progress.synced) { Ok(()) } else { Err(Ended) }
    }

    /// Removes the handler and drops its backlog. Returns at once; a call that runs now ends first.
    /// Removing it again does nothing. It may be called from within the handler.
    pub fn remove(&self) {
        self.leave(Ending::Drop);
    }

    /// Removes the handler once it was told of its backlog. Returns at once; nothing is added to the backlog.
    pub fn drain(&self) {
        self.leave(Ending::Drain);
    }

    /// Waits until the handler has been removed, or its informer stopped, and its last call has returned. Cancel-safe.
    ///
    /// From within the handler this never ends.
    pub async fn ended(&self) {
        let mut progress = self.common.progress.subscribe();
        // An error would say that the sender is gone, which lives in `self.common`.
        let _ = progress.wait_for(|progress| progress.ended).await;
    }

    /// How the handler is doing.
    pub fn status(&self) -> HandlerStatus {
        self.common.status()
    }

    fn leave(&self, ending: Ending) {
        if let Some(members) = self.members.upgrade() {
            members.leave(self.id);
        }
        if let Some(backlog) = self.backlog.upgrade() {
            backlog.close(ending);
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.status()).finish()
    }
}
