//! Whether the server has the resource at all.

use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use kubestrata_api_types::{FOREVER, Status, cause_ref};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Since when lists and watches are answered by 404. A clone is the same.
///
/// A custom resource goes away with its definition, and any resource with the server that aggregates it; then the server
/// has no such path, and says so (k/k#79610).
#[derive(Debug, Clone)]
pub(crate) struct Absence(Arc<watch::Sender<Option<Instant>>>);

impl Absence {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    pub(crate) fn since(&self) -> Option<Instant> {
        *self.0.borrow()
    }

    /// A list or watch was answered.
    pub(crate) fn answered(&self, error: Option<&(dyn Error + 'static)>) {
        let absent = match error {
            None => false,
            Some(error) => match cause_ref::<Status>(error) {
                Some(status) if status.is_not_found() => true,
                // Any other answer says nothing about it.
                _ => return,
            },
        };
        self.0.send_if_modified(|since| {
            let changes = since.is_some() != absent;
            if changes {
                *since = absent.then(Instant::now);
            }
            changes
        });
    }

    /// Waits until it has lasted for `after`; gives the instant at which it began.
    ///
    /// `known` is an absence that was told already. Cancel-safe.
    pub(crate) async fn lasting(&self, after: Option<Duration>, known: Option<Instant>) -> Instant {
        let Some(after) = after else { return pending().await };
        let mut changes = self.0.subscribe();
        loop {
            let since = *changes.borrow_and_update();
            let new = since.filter(|since| Some(*since) != known);
            let due = async {
                match new {
                    Some(since) => {
                        sleep_until(since + after.min(FOREVER)).await;
                        since
                    }
                    None => pending().await,
                }
            };
            tokio::select! {
                // A resource that is back is not absent, however late that is looked at.
                biased;
                changed = changes.changed() => {
                    if changed.is_err() {
                        // The sender is `self`.
                        return pending().await;
                    }
                }
                since = due => return since,
            }
        }
    }
}
