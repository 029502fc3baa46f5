//! A service whose answers are scripted.

use std::collections::VecDeque;
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use kubestrata_api_types::{
    Answer, ApiRequest, ApiResponse, BoxError, BoxFuture, Event, ListPart, Operation,
    ShardSelector, Verb, VersionMatch,
};
use tokio::time::{Instant, Sleep, sleep};
use tower::Service;

use crate::Thing;
use crate::script::{self, Reply, ScriptError, Step, WatchStep};

/// A service that gives scripted answers, in order, and records every request. A clone shares both.
///
/// A request that the next answer does not fit (a watch where the script has a list), and one after the last answer,
/// never gets an answer, and its record says so.
pub struct Scripted<T>(Arc<Shared<T>>);

type Answering<T> = dyn Fn(&ApiRequest) -> Step<T> + Send + Sync;

struct Shared<T> {
    state: Mutex<State<T>>,
    answering: Option<Box<Answering<T>>>,
    origin: Instant,
}

struct State<T> {
    answers: VecDeque<Step<T>>,
    requests: Vec<(Duration, ApiRequest, &'static str)>,
    /// Streams that are open now.
    open: usize,
}

impl<T> Scripted<T> {
    /// A service with these answers.
    pub fn new(answers: impl IntoIterator<Item = Step<T>>) -> Self {
        Self::make(answers.into_iter().collect(), None)
    }

    /// A service that computes its answers.
    pub fn by(answer: impl Fn(&ApiRequest) -> Step<T> + Send + Sync + 'static) -> Self {
        Self::make(VecDeque::new(), Some(Box::new(answer)))
    }

    fn make(answers: VecDeque<Step<T>>, answering: Option<Box<Answering<T>>>) -> Self {
        let state = Mutex::new(State { answers, requests: Vec::new(), open: 0 });
        Self(Arc::new(Shared { state, answering, origin: Instant::now() }))
    }

    /// Adds answers at the end.
    pub fn extend(&self, answers: impl IntoIterator<Item = Step<T>>) {
        self.0.lock().answers.extend(answers);
    }

    /// All requests so far, each as [`describe`] writes it, without timeouts.
    pub fn requests(&self) -> Vec<String> {
        let state = self.0.lock();
        state.requests.iter().map(|(_, request, note)| describe(request) + note).collect()
    }

    /// All requests so far with the time since the service was made, one a line: `+1.234s list rv="0"`.
    pub fn timeline(&self) -> String {
        let mut text = String::new();
        for (at, request, note) in &self.0.lock().requests {
            let _ = writeln!(text, "+{:.3}s {}{note}", at.as_secs_f64(), describe(request));
        }
        text
    }

    /// All requests so far, typed, with the time since the service was made.
    pub fn recorded(&self) -> Vec<(Duration, ApiRequest)> {
        let state = self.0.lock();
        state.requests.iter().map(|(at, request, _)| (*at, request.clone())).collect()
    }

    /// Streams that are open now: neither ended nor dropped.
    pub fn open_streams(&self) -> usize {
        self.0.lock().open
    }

    /// Answers that nobody asked for yet.
    pub fn answers_left(&self) -> usize {
        self.0.lock().answers.len()
    }

    fn take(&self, request: &ApiRequest) -> Step<T> {
        let computed = self.0.answering.as_ref().map(|answering| answering(request));
        let mut state = self.0.lock();
        let (step, note) = match computed.or_else(|| state.answers.pop_front()) {
            Some(step) if fits(&step.reply, request.verb()) => (step, ""),
            Some(_) => (Reply::Hang.into(), " (the script has another answer)"),
            None => (Reply::Hang.into(), " (the script has ended)"),
        };
        state.requests.push((self.0.origin.elapsed(), request.clone(), note));
        step
    }
}

impl Scripted<Thing> {
    /// A service of things, from text such as
    /// `list@5: a b more | list@5: c | watch: +d@6 ~a@7 -b@8 bookmark@9 wait=300s close | watch: gone | 403 | refused`.
    ///
    #[doc = include_str!("grammar.md")]
    ///
    /// # Errors
    ///
    /// [`ScriptError`] if the text has another form.
    pub fn parse(script: &str) -> Result<Self, ScriptError> {
        Ok(Self::new(script::parse(script)?))
    }

    /// Adds answers at the end, from text.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] if the text has another form.
    pub fn then(&self, script: &str) -> Result<(), ScriptError> {
        self.extend(script::parse(script)?);
        Ok(())
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Scripted<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Scripted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

fn fits<T>(reply: &Reply<T>, verb: Verb) -> bool {
    match reply {
        Reply::List(_) => matches!(verb, Verb::List | Verb::DeleteCollection),
        Reply::Watch(_) => verb == Verb::Watch,
        Reply::Object(_) => !matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection),
        Reply::Status(_) | Reply::Refused | Reply::Reset | Reply::Broken | Reply::Hang => true,
    }
}

/// The scripted error of no known type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("scripted: broken")]
pub struct Broken;

impl<T: Send + Sync + Unpin + 'static> Service<ApiRequest> for Scripted<T> {
    type Response = ApiResponse<T>;
    type Error = BoxError;
    type Future = BoxFuture<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        let Step { delay, reply } = self.take(&request);
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            if !delay.is_zero() {
                sleep(delay).await;
            }
            let answer = match reply {
                Reply::List(steps) => {
                    Answer::List(Box::pin(Steps::<T, ListPart<T>>::new(shared, steps, true)))
                }
                Reply::Watch(steps) => {
                    Answer::Watch(Box::pin(Steps::<T, Event<T>>::new(shared, steps, false)))
                }
                Reply::Object(object) => Answer::Object(object),
                Reply::Status(status) if status.is_success() => Answer::Status(Box::new(status)),
                Reply::Status(status) => return Err(status.into()),
                Reply::Refused => {
                    return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
                }
                Reply::Reset => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
                Reply::Broken => return Err(Broken.into()),
                Reply::Hang => std::future::pending().await,
            };
            Ok(ApiResponse::new(answer))
        })
    }
}

/// A scripted stream.
struct Steps<T, E> {
    shared: Arc<Shared<T>>,
    steps: VecDeque<WatchStep<E>>,
    /// Whether the stream ends after its last step; else it stays open.
    ends: bool,
    sleep: Option<Pin<Box<Sleep>>>,
    open: bool,
}

impl<T, E> Steps<T, E> {
    fn new(shared: Arc<Shared<T>>, steps: Vec<WatchStep<E>>, ends: bool) -> Self {
        shared.lock().open += 1;
        Self { shared, steps: steps.into(), ends, sleep: None, open: true }
    }

    fn close(&mut self) {
        self.steps.clear();
        if std::mem::take(&mut self.open) {
            self.shared.lock().open -= 1;
        }
    }
}

impl<T, E: Unpin> Stream for Steps<T, E> {
    type Item = Result<E, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if !this.open {
                return Poll::Ready(None);
            }
            if let Some(sleep) = &mut this.sleep {
                std::task::ready!(sleep.as_mut().poll(cx));
                this.sleep = None;
            }
            match this.steps.pop_front() {
                Some(WatchStep::Item(item)) => return Poll::Ready(Some(Ok(item))),
                Some(WatchStep::Wait(time)) => this.sleep = Some(Box::pin(sleep(time))),
                Some(WatchStep::Status(status)) => {
                    this.close();
                    return Poll::Ready(Some(Err(status.into())));
                }
                Some(WatchStep::Cut) => {
                    this.close();
                    return Poll::Ready(Some(Err(Broken.into())));
                }
                Some(WatchStep::Close) => this.close(),
                None if this.ends => this.close(),
                // Nothing will wake it, as with a server that has nothing to say.
                None => return Poll::Pending,
            }
        }
    }
}

impl<T, E> Drop for Steps<T, E> {
    fn drop(&mut self) {
        self.close();
    }
}

/// A request on one line: the verb, the name, and the options that are set, without selectors' absence and timeouts.
///
/// `list rv="0" limit=500`, `watch rv="" match=NotOlderThan initial bookmarks`, `get a/b`.
pub fn describe(request: &ApiRequest) -> String {
    let mut line = request.verb().to_string();
    if let Some(key) = request.key() {
        let _ = write!(line, " {key}");
    }
    if let Some(subresource) = &request.subresource {
        let _ = write!(line, " {subresource}");
    }
    match &request.operation {
        Operation::List(options) => {
            let _ = write!(line, " rv={:?}", options.resource_version);
            version_match(&mut line, options.version_match);
            if let Some(limit) = options.limit {
                let _ = write!(line, " limit={limit}");
            }
            if let Some(token) = &options.continue_token {
                let _ = write!(line, " continue={token}");
            }
            selectors(&mut line, &options.labels, &options.fields, options.shard.as_ref());
        }
        Operation::Watch(options) => {
            let _ = write!(line, " rv={:?}", options.resource_version);
            version_match(&mut line, options.version_match);
            match options.send_initial_events {
                Some(true) => line.push_str(" initial"),
                Some(false) => line.push_str(" initial=false"),
                None => {}
            }
            if options.allow_bookmarks {
                line.push_str(" bookmarks");
            }
            selectors(&mut line, &options.labels, &options.fields, options.shard.as_ref());
        }
        Operation::Get { options, .. } if !options.resource_version.is_unset() => {
            let _ = write!(line, " rv={:?}", options.resource_version);
        }
        _ => {}
    }
    line
}

fn version_match(line: &mut String, version_match: Option<VersionMatch>) {
    if let Some(version_match) = version_match {
        let _ = write!(line, " match={version_match:?}");
    }
}

fn selectors(
    line: &mut String,
    labels: &impl fmt::Display,
    fields: &impl fmt::Display,
    shard: Option<&ShardSelector>,
) {
    if let Some(shard) = shard {
        let _ = write!(line, " shard={shard}");
    }
    for (name, text) in [("labels", labels.to_string()), ("fields", fields.to_string())] {
        if !text.is_empty() {
            let _ = write!(line, " {name}={text}");
        }
    }
}
