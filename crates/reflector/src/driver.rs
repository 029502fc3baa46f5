//! The machine with a clock and a connection: the stream.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use kubestrata_api_types::{
    BoxError, BoxFuture, Collection, Event, FOREVER, ListOptions, ListPart, ListStream, ListWatch,
    Object, Tick, Update, WatchOptions, WatchStream, Weigh,
};
use tokio::time::{Instant, Sleep, sleep_until};

use self::spans::Spans;
use crate::failure::Fault;
use crate::state::{Machine, Step};
use crate::{Config, Phase, StatusHandle};

mod check;
mod spans;
mod tell;

/// Items taken in one poll while a state is gathered, before other tasks get a turn.
const TURN: u32 = 256;

/// Follows a collection: a stream of updates that begins with the state and never ends.
///
/// Each [`Update::Replace`] is the whole state; each [`Update::Event`] follows from what came before. Versions never go
/// back between two states, and a state is older than the one before it only if its server has lost what it had told:
/// that is a new epoch, and the status counts them. An event of an object that cannot be read is passed on, and costs
/// that object alone.
///
/// It works only while it is polled, and buffers one update. It holds one connection at a time, and a second one while it
/// compares a state with a list ([`Consistency`](crate::Consistency)). Dropping it closes them. It must be polled within a
/// tokio runtime with time enabled.
///
/// While a state is on its way it is gathered here, within the bounds of the configuration.
///
/// # Tracing
///
/// A span `epoch` holds a span for each `list`, `streaming_list`, `watch` and `comparison`, at level debug, with the
/// resource, the namespace, versions and numbers. Neither spans nor events hold contents of objects; events name objects
/// where something is wrong with them.
pub struct Reflector<T> {
    source: Arc<dyn ListWatch<T>>,
    collection: Collection,
    machine: Machine<T>,
    io: Io<T>,
    /// What runs for a comparison, beside `io`.
    check_io: Io<T>,
    /// Armed for the time that the machine's last step gave.
    timer: Pin<Box<Sleep>>,
    origin: Instant,
    config: Config,
    status: StatusHandle,
    /// The phase that the status shows.
    phase: Phase,
    /// The objects gathered that the status shows.
    gathered: usize,
    spans: Spans,
    transform: Option<Transform<T>>,
}

type Transform<T> = Box<dyn FnMut(Event<T>) -> Event<T> + Send>;

/// What runs.
enum Io<T> {
    Nothing,
    OpeningList(BoxFuture<Result<ListStream<T>, BoxError>>),
    OpeningWatch(BoxFuture<Result<WatchStream<T>, BoxError>>),
    Listing(ListStream<T>),
    Watching(WatchStream<T>),
}

impl<T: Object> Reflector<T> {
    /// A reflector of a collection. Nothing is asked for before the first poll.
    pub fn new(source: impl ListWatch<T>, collection: Collection, config: Config) -> Self {
        let origin = Instant::now();
        Self {
            source: Arc::new(source),
            collection,
            machine: Machine::new(config.clone()),
            io: Io::Nothing,
            check_io: Io::Nothing,
            timer: Box::pin(sleep_until(origin)),
            origin,
            config,
            status: StatusHandle::default(),
            phase: Phase::default(),
            gathered: 0,
            spans: Spans::default(),
            transform: None,
        }
    }

    /// Changes each event as it arrives, once, before a state is gathered from it: so a state never exists in its
    /// untransformed size (k/k PR 131799). The objects of a plain list pass as [`Event::Added`].
    ///
    /// What to make of an event that is not wanted: an object to be skipped becomes [`Event::Deleted`], so that an
    /// earlier state of it goes too; one that cannot be transformed becomes [`Event::Unreadable`]. Versions must stay:
    /// the next watch begins at them.
    #[must_use]
    pub fn transform(
        mut self,
        transform: impl FnMut(Event<T>) -> Event<T> + Send + 'static,
    ) -> Self {
        self.transform = Some(Box::new(transform));
        self
    }

    /// Weighs objects, so that the bound of a state in bytes means something; without it an object counts as the size of
    /// its handle. Holds from the next state on.
    #[must_use]
    pub fn weighed(mut self) -> Self
    where
        T: Weigh,
    {
        self.machine.weigh_with(|object| object.weight().total());
        self
    }

    /// How it is doing, to be asked at any time and from anywhere.
    pub fn status(&self) -> StatusHandle {
        self.status.clone()
    }

    /// The collection that it follows.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// The next update.
    ///
    /// Cancel-safe: a cancelled call loses nothing; what it began goes on at the next call.
    pub async fn next(&mut self) -> Update<T> {
        poll_fn(|cx| self.poll_update(cx)).await
    }

    fn now(&self) -> Tick {
        Tick::from_origin(self.origin.elapsed())
    }

    fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<Update<T>> {
        // Read once: a turn is short, and the clock is not free at a hundred thousand events per second.
        let mut now = self.now();
        for _ in 0..TURN {
            if self.machine.begins() {
                self.recall_fallback();
            }
            let step = self.machine.step(now);
            self.tell();
            let deadline = match step {
                Step::Emit(update) => return Poll::Ready(self.emit(update, now)),
                Step::List(options) => {
                    self.begin_list(options);
                    continue;
                }
                Step::Watch(options) => {
                    self.begin_watch(options);
                    continue;
                }
                Step::Read(deadline) => {
                    if self.poll_io(cx, now).is_ready() {
                        continue;
                    }
                    deadline
                }
                Step::Sleep(until) => {
                    self.io = Io::Nothing;
                    until
                }
            };
            let Poll::Ready(deadline) = self.poll_check(cx, now).map(|until| until.min(deadline))
            else {
                continue;
            };
            let deadline = self.origin + deadline.since_origin().min(FOREVER);
            if self.timer.deadline() != deadline {
                self.timer.as_mut().reset(deadline);
            }
            self.show_gathered();
            std::task::ready!(self.timer.as_mut().poll(cx));
            now = self.now();
            self.machine.on_deadline(now);
            self.machine.on_check_deadline(now);
        }
        self.show_gathered();
        // A state that is ready in full would else keep its thread until it is gathered.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes over what another reflector of the same memory has found out.
    fn recall_fallback(&mut self) {
        let until = self.config.fallbacks.until(&self.collection.resource);
        let until = until.map(|at| Tick::from_origin(at.saturating_duration_since(self.origin)));
        self.machine.fall_back_until(until);
    }

    /// Tells the others that a plain list was made where a streaming one had failed.
    fn share_fallback(&self) {
        if let Some(until) = self.machine.fallback_until() {
            let until = self.origin + until.since_origin().min(FOREVER);
            self.config.fallbacks.remember(&self.collection.resource, until);
        }
    }

    fn begin_list(&mut self, options: ListOptions) {
        // Later pages are of the same list.
        if options.continue_token.is_none() {
            self.config.metrics.lists.increment();
            self.spans.list(&self.collection, &self.machine, &options);
        }
        let opening = self.spans.enter(|| self.source.list(&self.collection, options));
        self.io = Io::OpeningList(opening);
    }

    fn begin_watch(&mut self, options: WatchOptions) {
        let metrics = &self.config.metrics;
        if options.send_initial_events.is_some() {
            metrics.streaming_lists.increment();
        } else {
            metrics.watches.increment();
        }
        self.spans.watch(&self.collection, &self.machine, &options);
        let opening = self.spans.enter(|| self.source.watch(&self.collection, options));
        self.io = Io::OpeningWatch(opening);
    }

    /// Moves what runs by one item; ready if the machine has something new to decide.
    fn poll_io(&mut self, cx: &mut Context<'_>, now: Tick) -> Poll<()> {
        let span = self.spans.running();
        let _entered = span.enter();
        match &mut self.io {
            Io::Nothing => return Poll::Pending,
            Io::OpeningList(opening) => match std::task::ready!(opening.as_mut().poll(cx)) {
                Ok(stream) => self.io = Io::Listing(stream),
                Err(error) => self.broken(error, now),
            },
            Io::OpeningWatch(opening) => match std::task::ready!(opening.as_mut().poll(cx)) {
                Ok(stream) => {
                    self.io = Io::Watching(stream);
                    self.machine.on_accepted(now);
                }
                Err(error) => self.broken(error, now),
            },
            Io::Listing(stream) => match std::task::ready!(stream.as_mut().poll_next(cx)) {
                Some(Ok(part)) => self.part(part, now),
                Some(Err(error)) => self.broken(error, now),
                None => {
                    self.io = Io::Nothing;
                    self.machine.on_list_end(now);
                    self.share_fallback();
                }
            },
            Io::Watching(stream) => match std::task::ready!(stream.as_mut().poll_next(cx)) {
                Some(Ok(event)) => {
                    if self.machine.wants_raw() {
                        self.machine.on_raw(&event);
                    }
                    let event = self.transformed(event);
                    self.machine.on_event(event, now);
                }
                Some(Err(error)) => self.broken(error, now),
                None => {
                    self.io = Io::Nothing;
                    self.machine.on_watch_end(now);
                }
            },
        }
        Poll::Ready(())
    }

    /// Transforms an event, and reports it if it cannot be read.
    fn transformed(&mut self, event: Event<T>) -> Event<T> {
        let event = match &mut self.transform {
            Some(transform) => transform(event),
            None => event,
        };
        if let Event::Unreadable(unreadable) = &event {
            self.config.metrics.unreadable.increment();
            tracing::warn!(resource = %self.collection.resource, %unreadable);
        }
        event
    }

    fn part(&mut self, part: ListPart<T>, now: Tick) {
        let event = match part {
            ListPart::Item(object) => Event::Added(object),
            ListPart::Unreadable(unreadable) => Event::Unreadable(unreadable),
            meta @ ListPart::Meta(_) => return self.machine.on_part(meta, now),
        };
        match self.transformed(event) {
            Event::Added(object) | Event::Modified(object) => {
                self.machine.on_part(ListPart::Item(object), now);
            }
            Event::Unreadable(unreadable) => {
                self.machine.on_part(ListPart::Unreadable(unreadable), now);
            }
            // Not wanted.
            Event::Deleted(_) | Event::Bookmark(_) => self.machine.on_skipped_part(now),
        }
    }

    fn broken(&mut self, error: BoxError, now: Tick) {
        self.io = Io::Nothing;
        self.machine.on_error(Fault::of(error), now);
    }
}

impl<T: Object> Stream for Reflector<T> {
    type Item = Update<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_update(cx).map(Some)
    }
}

// Nothing in it is pinned in place: streams, futures and the timer are boxed.
impl<T> Unpin for Reflector<T> {}

impl<T: Object> fmt::Debug for Reflector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("collection", &self.collection)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
