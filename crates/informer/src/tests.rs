//! Tests of the informer against a scripted server, with a paused clock unless a handler blocks its thread.

use std::sync::Arc;
use std::time::Duration;

use kubestrata_testkit::{Scripted, Thing, things};
use parking_lot::Mutex;

use crate::{Config, Handler, Informer};

mod backlog;
mod bugs;
mod convergence;
mod factory;
mod gone;
mod group;
mod handlers;
mod lifecycle;
mod own_store;
mod vectors;

/// Writes down what it is told: `+a@1!` (initial), `+a@1`, `a@1~a@2`, `-a@2`, `-a@2?` (final state unknown).
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// What was told since the last call, in one line.
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock()).join(" ")
    }

    /// The same, in alphabetical order: initial adds of a late handler have no order.
    fn take_sorted(&self) -> String {
        let mut lines = std::mem::take(&mut *self.0.lock());
        lines.sort_unstable();
        lines.join(" ")
    }
}

impl Handler<Thing> for Log {
    fn on_add(&self, object: &Thing, initial: bool) {
        self.0.lock().push(format!("+{object}{}", if initial { "!" } else { "" }));
    }

    fn on_update(&self, old: &Thing, new: &Thing) {
        self.0.lock().push(format!("{old}~{new}"));
    }

    fn on_delete(&self, last: &Thing, known: bool) {
        self.0.lock().push(format!("-{last}{}", if known { "" } else { "?" }));
    }
}

fn server(script: &str) -> Scripted<Thing> {
    Scripted::parse(script).unwrap()
}

fn informer(server: &Scripted<Thing>) -> Informer<Thing> {
    with(server, Config::default())
}

fn with(server: &Scripted<Thing>, config: Config<Thing>) -> Informer<Thing> {
    Informer::new(Arc::new(server.clone()), things(), config)
}

/// How long tests on the real clock wait for what comes at once, unless the machine is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets everything happen that can happen within a second.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Keys and versions in the store, sorted.
fn stored(informer: &Informer<Thing>) -> String {
    let mut things: Vec<_> = informer.reader().list().iter().map(ToString::to_string).collect();
    things.sort_unstable();
    things.join(" ")
}
