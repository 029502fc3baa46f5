//! Spans: one for each epoch, and in it one for each list and watch. Numbers, versions and the resource; no contents.

use kubestrata_api_types::{Collection, ListOptions, Object, WatchOptions};
use tracing::Span;
use tracing::field::Empty;

use crate::state::Machine;

#[derive(Debug)]
pub(super) struct Spans {
    epoch: Span,
    /// The epoch that the span is of.
    number: Option<u64>,
    running: Span,
    comparing: Span,
}

impl Default for Spans {
    fn default() -> Self {
        Self { epoch: Span::none(), number: None, running: Span::none(), comparing: Span::none() }
    }
}

impl Spans {
    pub(super) fn list<T: Object>(
        &mut self,
        collection: &Collection,
        machine: &Machine<T>,
        options: &ListOptions,
    ) {
        let version = &options.resource_version;
        let epoch = self.epoch(collection, machine);
        self.running = tracing::debug_span!(parent: epoch, "list", %version, items = Empty);
    }

    pub(super) fn watch<T: Object>(
        &mut self,
        collection: &Collection,
        machine: &Machine<T>,
        options: &WatchOptions,
    ) {
        let version = &options.resource_version;
        let epoch = self.epoch(collection, machine);
        self.running = if options.send_initial_events.is_some() {
            tracing::debug_span!(parent: epoch, "streaming_list", %version, items = Empty)
        } else {
            tracing::debug_span!(parent: epoch, "watch", %version, items = Empty)
        };
    }

    pub(super) fn comparison(&mut self, options: &ListOptions) {
        let version = &options.resource_version;
        self.comparing = tracing::debug_span!(parent: &self.epoch, "comparison", %version);
    }

    /// The span of the list or watch that runs. A clone, as its guard must not hold the reflector.
    pub(super) fn running(&self) -> Span {
        self.running.clone()
    }

    pub(super) fn comparing(&self) -> Span {
        self.comparing.clone()
    }

    pub(super) fn enter<R>(&self, run: impl FnOnce() -> R) -> R {
        self.running.in_scope(run)
    }

    /// What runs is over.
    pub(super) fn over(&self, items: u64) {
        self.running.record("items", items);
    }

    /// The span of the epoch, which begins with its first list or watch.
    fn epoch<T: Object>(&mut self, collection: &Collection, machine: &Machine<T>) -> &Span {
        let epoch = machine.epoch();
        if self.number.replace(epoch) != Some(epoch) {
            let namespace = collection.namespace.as_deref().unwrap_or_default();
            let resource = &collection.resource;
            self.epoch = tracing::debug_span!("epoch", %resource, namespace, epoch);
        }
        &self.epoch
    }
}
