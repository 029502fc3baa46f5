//! A small API server of things, with history and faults.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream;
use kubestrata_api_types::{
    Answer, ApiRequest, ApiResponse, Bookmark, BoxError, BoxFuture, Event, ListMeta, ListOptions,
    ListPart, Object as _, ObjectKey, Operation, ResourceVersion, Status, WatchOptions, reason,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tower::Service;

use crate::{Broken, FakeWorld, Thing};

mod cursor;

use self::cursor::Cursor;

/// How often things go wrong, each in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// A request is refused: with 429, 500, 503, a refused or a broken connection.
    pub refuse: u64,
    /// A watch ends, breaks or expires before its next event, or after ten seconds without one.
    pub interrupt: u64,
    /// A streaming list ends without its end bookmark.
    pub omit_end: u64,
    /// A list breaks before its metadata.
    pub cut_list: u64,
    /// An answer or event takes up to two seconds.
    pub delay: u64,
}

impl Faults {
    /// A bad day: everything happens, and not rarely.
    pub fn bad_day() -> Self {
        Self { refuse: 20, interrupt: 10, omit_end: 30, cut_list: 20, delay: 20 }
    }
}

/// A small API server of things: list with pages, watch, streaming list, versions, history and 410, by the rules of
/// kube-apiserver. A clone is the same server.
///
/// It serves list and watch without selectors and changes its objects by methods; other requests get 405 or 400.
/// Watches poll a cursor over one history, so a watcher sees every event or is told that it cannot.
#[derive(Clone)]
pub struct Model(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// The version, for those who wait for the next.
    changed: watch::Sender<u64>,
    world: Arc<FakeWorld>,
}

struct State {
    version: u64,
    objects: BTreeMap<ObjectKey, Thing>,
    history: VecDeque<(u64, Event<Thing>)>,
    /// Events up to this version are forgotten.
    compacted: u64,
    /// What is left of paged lists, by token.
    pages: HashMap<String, (u64, VecDeque<Thing>)>,
    faults: Faults,
}

impl Model {
    /// A server without objects, at version 1. `world` gives its faults.
    pub fn new(world: Arc<FakeWorld>) -> Self {
        let state = State {
            version: 1,
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            compacted: 0,
            pages: HashMap::new(),
            faults: Faults::default(),
        };
        let changed = watch::Sender::new(state.version);
        Self(Arc::new(Shared { state: Mutex::new(state), changed, world }))
    }

    /// Creates or updates an object; the server gives the version and, to a new one, a new UID.
    pub fn put(&self, mut object: Thing) -> ResourceVersion {
        let mut state = self.0.lock();
        let version = state.version + 1;
        object.resource_version = version.into();
        let event = match state.objects.get(&object.key()) {
            Some(old) => {
                object.uid.clone_from(&old.uid);
                Event::Modified(object.clone())
            }
            None => {
                object.uid = format!("{}-{version}", object.name);
                Event::Added(object.clone())
            }
        };
        state.objects.insert(object.key(), object);
        self.0.commit(state, event)
    }

    /// Deletes an object, if it is there. The event has the last state with the version of the deletion.
    pub fn delete(&self, key: &ObjectKey) -> Option<ResourceVersion> {
        let mut state = self.0.lock();
        let mut object = state.objects.remove(key)?;
        object.resource_version = (state.version + 1).into();
        Some(self.0.commit(state, Event::Deleted(object)))
    }

    /// Forgets the history and the paged lists: watches behind and tokens get 410.
    pub fn compact(&self) {
        let mut state = self.0.lock();
        state.compacted = state.version;
        state.history.clear();
        state.pages.clear();
    }

    /// All objects now.
    pub fn objects(&self) -> BTreeMap<ObjectKey, Thing> {
        self.0.lock().objects.clone()
    }

    /// The version now.
    pub fn version(&self) -> ResourceVersion {
        self.0.lock().version.into()
    }

    /// How often things go wrong from now on. None, at first.
    pub fn set_faults(&self, faults: Faults) {
        self.0.lock().faults = faults;
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        f.debug_struct("Model")
            .field("version", &state.version)
            .field("objects", &state.objects.len())
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit(&self, mut state: MutexGuard<'_, State>, event: Event<Thing>) -> ResourceVersion {
        state.version += 1;
        let version = state.version;
        state.history.push_back((version, event));
        drop(state);
        self.changed.send_replace(version);
        version.into()
    }

    /// A delay by the faults.
    async fn dawdle(&self) {
        let percent = self.lock().faults.delay;
        if self.world.chance(percent) {
            sleep(Duration::from_millis(self.world.below(2000))).await;
        }
    }

    /// A refusal by the faults.
    fn refusal(&self) -> Option<BoxError> {
        let percent = self.lock().faults.refuse;
        if !self.world.chance(percent) {
            return None;
        }
        Some(match self.world.below(5) {
            0 => Status::failure(429, reason::TOO_MANY_REQUESTS, "try later").into(),
            1 => Status::failure(500, reason::INTERNAL_ERROR, "a fault").into(),
            2 => Status::failure(503, reason::SERVICE_UNAVAILABLE, "a fault").into(),
            3 => io::Error::from(io::ErrorKind::ConnectionRefused).into(),
            _ => io::Error::from(io::ErrorKind::ConnectionReset).into(),
        })
    }

    fn list(&self, options: &ListOptions) -> Result<Answer<Thing>, BoxError> {
        let mut state = self.lock();
        let (version, mut rest) = match &options.continue_token {
            Some(token) => state.pages.remove(token).ok_or_else(expired)?,
            None => {
                state.has(&options.resource_version)?;
                (state.version, state.objects.values().cloned().collect())
            }
        };
        let limit = options.limit.map_or(usize::MAX, |limit| limit as usize).min(rest.len());
        let page: Vec<_> = rest.drain(..limit).collect();
        let mut meta = ListMeta { resource_version: version.into(), ..ListMeta::default() };
        if !rest.is_empty() {
            let token = format!("{version}-{}", rest.len());
            meta.continue_token = Some(token.clone());
            meta.remaining_item_count = Some(rest.len() as u64);
            state.pages.insert(token, (version, rest));
        }
        let end = if self.world.chance(state.faults.cut_list) {
            Err(Broken.into())
        } else {
            Ok(ListPart::Meta(meta))
        };
        let parts: Vec<_> =
            page.into_iter().map(|object| Ok(ListPart::Item(object))).chain([end]).collect();
        Ok(Answer::List(Box::pin(stream::iter(parts))))
    }

    fn watch(self: Arc<Self>, options: &WatchOptions) -> Result<Answer<Thing>, BoxError> {
        let cursor = Cursor::new(&self, options)?;
        let end = options.timeout.map(|timeout| Instant::now() + timeout);
        let changed = self.changed.subscribe();
        let watcher = Watcher { shared: self, cursor, changed, end, done: false };
        Ok(Answer::Watch(Box::pin(stream::unfold(watcher, Watcher::next))))
    }
}

impl State {
    /// Whether the version is not from the future.
    fn has(&self, version: &ResourceVersion) -> Result<(), BoxError> {
        if version.as_u64().is_some_and(|version| version > self.version) {
            let text = format!("Too large resource version: {version}, current: {}", self.version);
            return Err(Status::failure(504, reason::TIMEOUT, text).into());
        }
        Ok(())
    }
}

fn expired() -> BoxError {
    Status::failure(410, reason::EXPIRED, "too old resource version").into()
}

// === impl Watcher ===

struct Watcher {
    shared: Arc<Shared>,
    cursor: Cursor,
    changed: watch::Receiver<u64>,
    end: Option<Instant>,
    done: bool,
}

impl Watcher {
    async fn next(mut self) -> Option<(Result<Event<Thing>, BoxError>, Self)> {
        if self.done {
            return None;
        }
        self.shared.dawdle().await;
        let mut idle = Instant::now() + Duration::from_secs(10);
        loop {
            // Seen before the cursor looks, so that no change falls between.
            self.changed.mark_unchanged();
            let next = self.cursor.next(&self.shared);
            if next.is_some() || Instant::now() >= idle {
                idle = Instant::now() + Duration::from_secs(10);
                let percent = self.shared.lock().faults.interrupt;
                if self.shared.world.chance(percent) {
                    return self.interrupted();
                }
            }
            match next {
                Some(Ok(event)) => return Some((Ok(event), self)),
                Some(Err(error)) => return self.last(error),
                None if self.cursor.is_over() => return None,
                None => {}
            }
            let wake = self.end.map_or(idle, |end| end.min(idle));
            let woken = timeout_at(wake, self.changed.changed()).await;
            if woken.is_err() && self.end.is_some_and(|end| Instant::now() >= end) {
                return None;
            }
        }
    }

    fn last(mut self, error: BoxError) -> Option<(Result<Event<Thing>, BoxError>, Self)> {
        self.done = true;
        Some((Err(error), self))
    }

    fn interrupted(self) -> Option<(Result<Event<Thing>, BoxError>, Self)> {
        match self.shared.world.below(4) {
            0 => None,
            1 => self.last(expired()),
            2 => self.last(Broken.into()),
            _ => self.last(Status::failure(500, reason::INTERNAL_ERROR, "a fault").into()),
        }
    }
}

impl Service<ApiRequest> for Model {
    type Response = ApiResponse<Thing>;
    type Error = BoxError;
    type Future = BoxFuture<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            shared.dawdle().await;
            if let Some(refusal) = shared.refusal() {
                return Err(refusal);
            }
            let answer = match &request.operation {
                Operation::List(options) => {
                    plain(&options.labels, &options.fields)?;
                    shared.list(options)?
                }
                Operation::Watch(options) => {
                    plain(&options.labels, &options.fields)?;
                    shared.watch(options)?
                }
                _ => {
                    let text = "the model serves list and watch only";
                    return Err(Status::failure(405, reason::METHOD_NOT_ALLOWED, text).into());
                }
            };
            Ok(ApiResponse::new(answer))
        })
    }
}

fn plain(labels: &impl fmt::Display, fields: &impl fmt::Display) -> Result<(), BoxError> {
    if labels.to_string().is_empty() && fields.to_string().is_empty() {
        return Ok(());
    }
    let text = "the model knows no selectors";
    Err(Status::failure(400, reason::BAD_REQUEST, text).into())
}

/// A bookmark event.
fn bookmark(version: u64, initial_events_end: bool) -> Event<Thing> {
    Event::Bookmark(Bookmark { resource_version: version.into(), initial_events_end })
}
