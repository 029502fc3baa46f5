//! How a demo ends, and what is between Ctrl-C and that end.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::time::Duration;

use kubestrata_controller::prelude::*;

use crate::cleanup::{self, Leftover};
use crate::progress::Step;
use crate::signals::Stop;

/// How long the clean-up may take. `cargo xtask demo` ends a demo 120 s after Ctrl-C.
const CLEAN_UP: Duration = Duration::from_secs(90);

/// How it ended, where nothing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The end state, read live, is as it should be.
    Exact,
    /// Ctrl-C.
    Interrupted,
}

/// Runs `work` until its end or Ctrl-C, then deletes the namespace and what the demo made in it, also after a failure.
///
/// `work` is dropped by then, and with it every controller that it runs.
pub async fn cleaned<S: kubestrata_controller::codec::EncodedService>(
    service: &S,
    namespace: &str,
    work: impl Future<Output = Result<(), BoxError>>,
) -> Result<Outcome, BoxError> {
    cleaned_unless(&mut Stop::listen(), service, namespace, work).await
}

/// Runs `work` until its end or Ctrl-C. For demos that leave nothing behind.
pub async fn until_stopped(
    work: impl Future<Output = Result<(), BoxError>>,
) -> Result<Outcome, BoxError> {
    until(&mut Stop::listen(), work).await
}

async fn cleaned_unless<S: kubestrata_controller::codec::EncodedService>(
    stop: &mut Stop,
    service: &S,
    namespace: &str,
    work: impl Future<Output = Result<(), BoxError>>,
) -> Result<Outcome, BoxError> {
    let outcome = until(stop, work).await;
    let step = Step::new("deleting what was made", 1);
    let cleaned = tokio::select! {
        // Whoever asks a second time does not want to wait for the clean-up.
        biased;
        () = stop.asked() => Err("interrupted again".into()),
        cleaned = tokio::time::timeout(CLEAN_UP, cleanup::all(service, namespace)) => {
            cleaned.unwrap_or_else(|_| Err(format!("not done after {} s", CLEAN_UP.as_secs()).into()))
        }
    };
    match cleaned {
        Ok(()) => step.done(),
        Err(error) => {
            step.failed();
            return Err(
                Leftover { namespace: namespace.to_owned(), error, first: outcome.err() }.into()
            );
        }
    }
    outcome
}

async fn until(
    stop: &mut Stop,
    work: impl Future<Output = Result<(), BoxError>>,
) -> Result<Outcome, BoxError> {
    tokio::select! {
        // An interrupt that comes with the end is an interrupt: the person wants out.
        biased;
        () = stop.asked() => Ok(Outcome::Interrupted),
        outcome = work => outcome.map(|()| Outcome::Exact),
    }
}
