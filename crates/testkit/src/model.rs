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
    ListPart, Object as _, ObjectKey, Operation, ResourceVersion, Status, VersionMatch,
    WatchOptions, reason,
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
    /// A request is never answered.
    pub hang: u64,
    /// A watch falls silent before its next event: the peer is gone, and nobody says so.
    pub silence: u64,
    /// A bookmark is not sent.
    pub lose_bookmark: u64,
    /// A watch sends an event of the past once more before its next one.
    pub repeat: u64,
    /// A request for a version, other than "0", is refused with 410.
    pub forget: u64,
}

impl Faults {
    /// A bad day: everything happens, and not rarely.
    pub fn bad_day() -> Self {
        Self { refuse: 20, interrupt: 10, omit_end: 30, cut_list: 20, delay: 20, ..Self::default() }
    }

    /// The same, and what a server or network should not do at all.
    pub fn worst_day() -> Self {
        Self { hang: 2, silence: 2, lose_bookmark: 50, repeat: 3, forget: 10, ..Self::bad_day() }
    }
}

/// A small API server of things: list with pages, watch, streaming list, versions, history and 410, by the rules of
/// kube-apiserver. A clone is the same server.
///
/// A watch that wants bookmarks gets one after ten seconds without any event.
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
    /// Watches of an earlier life are broken.
    life: u64,
    saved: Option<(u64, BTreeMap<ObjectKey, Thing>)>,
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
            life: 0,
            saved: None,
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

    /// Makes a backup of the objects and the version.
    pub fn save(&self) {
        let mut state = self.0.lock();
        state.saved = Some((state.version, state.objects.clone()));
    }

    /// Goes back to the backup, if there is one, as a server whose storage was restored: history, paged lists and open
    /// watches are gone, and versions are given a second time.
    pub fn restore(&self) {
        let mut state = self.0.lock();
        let Some((version, objects)) = state.saved.clone() else { return };
        state.version = version;
        state.objects = objects;
        state.compacted = version;
        state.history.clear();
        state.pages.clear();
        state.life += 1;
        drop(state);
        self.0.changed.send_replace(version);
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
            0 => {
                let mut status = Status::failure(429, reason::TOO_MANY_REQUESTS, "try later");
                let seconds = u32::try_from(self.world.below(4)).unwrap_or(0);
                status.details.get_or_insert_default().retry_after_seconds = seconds;
                status.into()
            }
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
                // States of the past are not kept.
                if options.version_match == Some(VersionMatch::Exact)
                    && options.resource_version != state.version.into()
                {
                    return Err(expired());
                }
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
        let life = self.lock().life;
        let bookmarks = options.allow_bookmarks;
        let watcher = Watcher { shared: self, cursor, changed, end, bookmarks, life, done: false };
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

/// The version that a request asks for; "0" and none ask for no particular one.
fn asked(operation: &Operation) -> Option<u64> {
    let version = match operation {
        Operation::List(options) => &options.resource_version,
        Operation::Watch(options) => &options.resource_version,
        _ => return None,
    };
    version.as_u64().filter(|version| *version > 0)
}

fn expired() -> BoxError {
    Status::failure(410, reason::EXPIRED, "too old resource version").into()
}

// === impl Watcher ===

/// A watch without events is interrupted, or sends a bookmark, at this pace.
const IDLE: Duration = Duration::from_secs(10);

struct Watcher {
    shared: Arc<Shared>,
    cursor: Cursor,
    changed: watch::Receiver<u64>,
    end: Option<Instant>,
    bookmarks: bool,
    /// The life of the server that it belongs to.
    life: u64,
    done: bool,
}

impl Watcher {
    async fn next(mut self) -> Option<(Result<Event<Thing>, BoxError>, Self)> {
        if self.done {
            return None;
        }
        self.shared.dawdle().await;
        let mut idle = Instant::now() + IDLE;
        loop {
            // Seen before the cursor looks, so that no change falls between.
            self.changed.mark_unchanged();
            if self.shared.lock().life != self.life {
                return self.last(io::Error::from(io::ErrorKind::ConnectionReset).into());
            }
            let mut next = self.cursor.next(&self.shared);
            if next.is_some() || Instant::now() >= idle {
                let faults = self.shared.lock().faults;
                let world = &self.shared.world;
                if world.chance(faults.interrupt) {
                    return self.interrupted();
                }
                if world.chance(faults.silence) {
                    std::future::pending::<()>().await;
                }
                if next.is_none() && self.bookmarks && !world.chance(faults.lose_bookmark) {
                    next = self.cursor.bookmark();
                }
                if let Some(Ok(event)) = &next
                    && world.chance(faults.repeat)
                    && let Some(past) = self.cursor.repeat(&self.shared, event)
                {
                    self.cursor.put_back(event.clone());
                    return Some((Ok(past), self));
                }
                idle = Instant::now() + IDLE;
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
            let faults = shared.lock().faults;
            if shared.world.chance(faults.hang) {
                std::future::pending::<()>().await;
            }
            if asked(&request.operation).is_some() && shared.world.chance(faults.forget) {
                return Err(expired());
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
