//! Watch and streaming list.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use kubestrata_api_types::FOREVER;
use kubestrata_codec::frame::EventType;
use kubestrata_watch_cache::{Change, From, Next, WatchConfig, Watcher};

use crate::answer::{self, Answer};
use crate::body::Body;
use crate::catalog::Store;
use crate::failure::{Failure, Outcome, unclassified};
use crate::options::ListOptions;
use crate::out::Out;
use crate::read::Selection;
use crate::record::Item;
use crate::render::Renderer;
use crate::server::Core;

/// Answers a watch.
pub(crate) fn watch(
    core: Arc<Core>,
    renderer: Renderer,
    store: Arc<Store>,
    selection: Selection,
    options: ListOptions,
) -> Outcome<Answer> {
    // kube-apiserver lets this error through unclassified.
    let revision = options.revision().map_err(unclassified)?;
    let content_type = renderer.watch_content_type();
    let start = Start { core, store, options, revision };
    let state = State::Starting(Box::new(start), renderer, selection);
    let body = stream::unfold(state, |state| async {
        let (chunk, state) = state.step().await?;
        Some((Ok(chunk), state))
    });
    Ok(answer::with(200, content_type, Body::chunks(body)))
}

/// What is needed to begin. A watch begins when its body is first read: headers go out at once.
struct Start {
    core: Arc<Core>,
    store: Arc<Store>,
    options: ListOptions,
    revision: u64,
}

enum State {
    /// Next: `Live`, or `Done` after an error.
    Starting(Box<Start>, Renderer, Selection),
    /// Next: itself, until the watcher ends; then `Done`.
    Live(Box<Live>),
    /// The stream is over.
    Done,
}

struct Live {
    watcher: Watcher<Item>,
    renderer: Renderer,
    selection: Selection,
    /// What is written and not yet sent.
    out: Out,
    over: bool,
    /// Keeps the store's subscription, and so its changes coming, as long as the watch lives.
    _store: Arc<Store>,
}

impl State {
    async fn step(self) -> Option<(bytes::Bytes, Self)> {
        match self {
            Self::Starting(start, renderer, selection) => match start.begin(&selection).await {
                Ok(watcher) => {
                    let live = Live {
                        watcher,
                        renderer,
                        selection,
                        out: Out::default(),
                        over: false,
                        _store: start.store,
                    };
                    Box::pin(Self::Live(Box::new(live)).step()).await
                }
                Err(failure) => {
                    let mut out = Out::default();
                    renderer.error(&failure.status(), &mut out);
                    out.take().map(|chunk| (chunk, Self::Done))
                }
            },
            Self::Live(mut live) => {
                let chunk = live.chunk().await?;
                Some((chunk, Self::Live(live)))
            }
            Self::Done => None,
        }
    }
}

impl Start {
    async fn begin(&self, selection: &Selection) -> Result<Watcher<Item>, Failure> {
        let (core, options) = (&self.core, &self.options);
        let timeout = match options.timeout {
            Some(seconds) if seconds < 0 => {
                return Err(crate::failure::internal_plain("context deadline exceeded"));
            }
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds.unsigned_abs()),
            _ => core.config.watch_timeout.min(FOREVER).mul_f64(1.0 + core.world.random_fraction()),
        };
        let initial = options.initial_events == Some(true);
        let unversioned = options.version.is_empty();
        let from = match (initial, self.revision) {
            (true, _) => {
                let at_least =
                    if unversioned { core.storage.current().await? } else { self.revision };
                self.store.cache.fresh(at_least, core.config.fresh_patience).await?;
                From::State
            }
            // The path prefix `watch/`, and a server without streaming lists.
            (false, 0) if options.initial_events.is_none() => From::State,
            (false, 0) => From::Now,
            (false, revision) => From::After(revision),
        };
        let prefix = self.store.scope(selection.namespace.as_deref());
        let config = WatchConfig {
            initial_end: initial && options.bookmarks,
            bookmarks: options.bookmarks,
            bookmark_interval: core.config.bookmark_interval,
            timeout,
            prefix: prefix.into(),
        };
        let mut watcher = self.store.cache.watch(from, config)?;
        if let From::After(revision) = from {
            watcher.mark_sent(revision);
        }
        Ok(watcher)
    }
}

impl Live {
    /// Waits for something to send and takes what else is there, up to a chunk; `None` at the end.
    async fn chunk(&mut self) -> Option<bytes::Bytes> {
        loop {
            while !self.over && !self.out.is_full() {
                let Some(next) = self.watcher.try_next() else { break };
                self.write(next);
            }
            // A large object leaves more than one chunk.
            if let Some(chunk) = self.out.take() {
                return Some(chunk);
            }
            if self.over {
                return None;
            }
            let next = self.watcher.next().await;
            self.write(next);
        }
    }

    /// Writes one event.
    fn write(&mut self, next: Next<Item>) {
        let out = &mut self.out;
        match next {
            Next::Initial(item) => {
                if self.selection.matches(&item) {
                    self.renderer.event(EventType::Added, &item, out);
                }
            }
            Next::InitialEnd(revision) => self.renderer.bookmark(revision, true, out),
            Next::Bookmark(revision) => self.renderer.bookmark(revision, false, out),
            Next::Change(change) => {
                if let Some((kind, item)) = transition(&self.selection, &change) {
                    self.renderer.event(kind, &item, out);
                    self.watcher.mark_sent(change.revision);
                }
            }
            Next::End(_) => self.over = true,
        }
    }
}

/// What a change is to somebody who sees only the selected objects.
fn transition(selection: &Selection, change: &Change<Item>) -> Option<(EventType, Item)> {
    let before = change.previous.as_ref().filter(|previous| selection.matches(previous));
    if change.deleted {
        return before.map(|_| (EventType::Deleted, change.object.clone()));
    }
    match (before, selection.matches(&change.object)) {
        (None, false) => None,
        (None, true) => Some((EventType::Added, change.object.clone())),
        (Some(_), true) => Some((EventType::Modified, change.object.clone())),
        // Its last state that was seen, with the version of the change that took it away.
        (Some(previous), false) => Some((EventType::Deleted, previous.at(change.revision))),
    }
}
