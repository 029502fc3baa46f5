//! Reconciles for reasons that no watch tells of.

use kubestrata_api_types::ObjectKey;
use kubestrata_workqueue::{AddOptions, Closed, WorkQueue};

/// Wakes a controller for other reasons than changes of objects (controller-runtime `source.Channel`): a timer, a webhook,
/// another system. A clone wakes the same controller.
///
/// Keys that come before the controller runs wait for it; no predicate applies.
#[derive(Debug, Clone)]
pub struct Trigger(pub(crate) WorkQueue<ObjectKey>);

impl Trigger {
    /// Has a key reconciled. Waits while the queue is full. Cancel-safe: a dropped future has not added the key.
    ///
    /// # Errors
    ///
    /// [`Closed`] once the controller stops.
    pub async fn reconcile(&self, key: ObjectKey) -> Result<(), Closed> {
        self.0.add(key).await
    }

    /// The same, with a delay or priority.
    ///
    /// # Errors
    ///
    /// [`Closed`] once the controller stops.
    pub async fn reconcile_with(&self, key: ObjectKey, options: AddOptions) -> Result<(), Closed> {
        self.0.add_with(key, options).await
    }

    /// Keys that are ready, beside those that are being reconciled.
    pub fn waiting(&self) -> usize {
        self.0.len()
    }

    /// Keys that are being reconciled.
    pub fn running(&self) -> usize {
        self.0.running()
    }
}
