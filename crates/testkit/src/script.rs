//! Answers as text; the grammar is the documentation of `Scripted::parse`.

use std::time::Duration;

use kubestrata_api_types::{
    Bookmark, Event, ListMeta, ListPart, ObjectKey, ResourceVersion, Status, StatusCause,
    StatusDetails, Unreadable, reason,
};

use crate::Thing;

/// One scripted answer.
#[derive(Debug, Clone)]
pub struct Step<T> {
    /// How long the answer takes.
    pub delay: Duration,
    /// The answer.
    pub reply: Reply<T>,
}

/// What a scripted service answers.
#[derive(Debug, Clone)]
pub enum Reply<T> {
    /// A page of a list.
    List(Vec<WatchStep<ListPart<T>>>),
    /// A watch.
    Watch(Vec<WatchStep<Event<T>>>),
    /// An object.
    Object(T),
    /// A refusal by the server. A success status is an answer of its own, as to most deletes.
    Status(Status),
    /// The connection is refused.
    Refused,
    /// The connection breaks before an answer comes.
    Reset,
    /// An error of no known type.
    Broken,
    /// No answer, ever.
    Hang,
}

impl<T> From<Reply<T>> for Step<T> {
    fn from(reply: Reply<T>) -> Self {
        Self { delay: Duration::ZERO, reply }
    }
}

/// One step of a scripted stream.
#[derive(Debug, Clone)]
pub enum WatchStep<E> {
    /// An item.
    Item(E),
    /// An ERROR event, and the end.
    Status(Status),
    /// The stream breaks, with an error of no known type.
    Cut,
    /// The stream ends.
    Close,
    /// Nothing for a while.
    Wait(Duration),
}

/// The text is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {want}")]
pub struct ScriptError {
    /// What was to be parsed.
    pub text: String,
    /// What it should be.
    pub want: &'static str,
}

/// Parses a script.
pub(crate) fn parse(text: &str) -> Result<Vec<Step<Thing>>, ScriptError> {
    // Pages in a row have tokens of their own, as those of a server have.
    let mut page = 0;
    let answers = text.split('|').map(str::trim).filter(|answer| !answer.is_empty());
    let number = |text: &str| {
        let more = text.split_whitespace().any(|word| word == "more");
        page = if more { page + 1 } else { 0 };
        answer(text, page)
    };
    answers.map(number).collect()
}

fn error(text: &str, want: &'static str) -> ScriptError {
    ScriptError { text: text.to_owned(), want }
}

fn answer(text: &str, page: u32) -> Result<Step<Thing>, ScriptError> {
    let mut delay = Duration::ZERO;
    let mut rest = text;
    while let Some(after) = rest.strip_prefix("wait=") {
        let (word, next) = after.split_once(' ').unwrap_or((after, ""));
        delay += duration(word)?;
        rest = next.trim_start();
    }
    Ok(Step { delay, reply: reply(rest, page)? })
}

fn reply(text: &str, page: u32) -> Result<Reply<Thing>, ScriptError> {
    match text {
        "refused" => return Ok(Reply::Refused),
        "reset" => return Ok(Reply::Reset),
        "broken" => return Ok(Reply::Broken),
        "hang" => return Ok(Reply::Hang),
        _ => {}
    }
    let Some((head, body)) = text.split_once(':') else {
        return status(text).map(Reply::Status).ok_or_else(|| error(text, "answer"));
    };
    let words = body.split_whitespace();
    let (verb, version) = match head.split_once('@') {
        Some((verb, version)) => (verb, ResourceVersion::new(version)),
        None => (head, ResourceVersion::UNSET),
    };
    match verb.trim() {
        "list" => list(words, &version, page).map(Reply::List),
        "watch" => words.map(event).collect::<Result<_, _>>().map(Reply::Watch),
        "object" => {
            let thing = Thing::parse(body.trim(), &version);
            thing.map(Reply::Object).map_err(|_| error(text, "answer"))
        }
        _ => Err(error(text, "answer")),
    }
}

fn list<'a>(
    words: impl Iterator<Item = &'a str>,
    version: &ResourceVersion,
    page: u32,
) -> Result<Vec<WatchStep<ListPart<Thing>>>, ScriptError> {
    let mut steps = Vec::new();
    let mut meta = ListMeta { resource_version: version.clone(), ..ListMeta::default() };
    for word in words {
        steps.push(if word == "more" {
            meta.continue_token =
                Some(if page > 1 { format!("token{page}") } else { "token".to_owned() });
            continue;
        } else if let Some(token) = word.strip_prefix("more=") {
            meta.continue_token = Some(token.to_owned());
            continue;
        } else if word == "headless" {
            return Ok(steps);
        } else if word == "cut" {
            steps.push(WatchStep::Cut);
            return Ok(steps);
        } else if let Some(text) = word.strip_prefix("wait=") {
            WatchStep::Wait(duration(text)?)
        } else if let Some(text) = word.strip_prefix('?') {
            WatchStep::Item(ListPart::Unreadable(unreadable(text)))
        } else {
            let thing = Thing::parse(word, version).map_err(|_| error(word, "part of a list"))?;
            WatchStep::Item(ListPart::Item(thing))
        });
    }
    steps.push(WatchStep::Item(ListPart::Meta(meta)));
    Ok(steps)
}

fn event(word: &str) -> Result<WatchStep<Event<Thing>>, ScriptError> {
    let wrong = || error(word, "event");
    let thing = |text: &str| text.parse::<Thing>().map_err(|_| wrong());
    let bookmark = |version: &str, initial_events_end| {
        let resource_version = ResourceVersion::new(version);
        Event::Bookmark(Bookmark { resource_version, initial_events_end })
    };
    let event = if let Some(text) = word.strip_prefix('+') {
        Event::Added(thing(text)?)
    } else if let Some(text) = word.strip_prefix('~') {
        Event::Modified(thing(text)?)
    } else if let Some(text) = word.strip_prefix('-') {
        Event::Deleted(thing(text)?)
    } else if let Some(text) = word.strip_prefix('?') {
        Event::Unreadable(unreadable(text))
    } else if let Some(version) = word.strip_prefix("bookmark@") {
        bookmark(version, false)
    } else if let Some(version) = word.strip_prefix("end@") {
        bookmark(version, true)
    } else if let Some(text) = word.strip_prefix("wait=") {
        return Ok(WatchStep::Wait(duration(text)?));
    } else if word == "close" {
        return Ok(WatchStep::Close);
    } else if word == "cut" {
        return Ok(WatchStep::Cut);
    } else {
        return status(word).map(WatchStep::Status).ok_or_else(wrong);
    };
    Ok(WatchStep::Item(event))
}

fn unreadable(text: &str) -> Unreadable {
    let (key, version) = text.split_once('@').unwrap_or((text, ""));
    Unreadable {
        key: key.parse::<ObjectKey>().ok(),
        resource_version: ResourceVersion::new(version),
        problem: "scripted".to_owned(),
    }
}

fn status(word: &str) -> Option<Status> {
    if let Some((word, after)) = word.split_once('!') {
        let mut status = status(word)?;
        let details = status.details.get_or_insert_default();
        details.retry_after_seconds = u32::try_from(duration(after).ok()?.as_secs()).ok()?;
        return Some(status);
    }
    Some(match word {
        "gone" => Status::failure(410, reason::GONE, "too old resource version"),
        "expired" => Status::failure(410, reason::EXPIRED, "too old resource version"),
        "toolarge" => Status {
            details: Some(StatusDetails {
                causes: vec![StatusCause {
                    reason: "ResourceVersionTooLarge".to_owned(),
                    message: "Too large resource version".to_owned(),
                    ..StatusCause::default()
                }],
                ..StatusDetails::default()
            }),
            ..Status::failure(
                504,
                reason::TIMEOUT,
                "Timeout: Too large resource version: 9, current: 5",
            )
        },
        _ => {
            let (code, given) = word.split_at_checked(3)?;
            let code = code.parse().ok()?;
            let given = if given.is_empty() { usual_reason(code) } else { given };
            Status::failure(code, given, "scripted")
        }
    })
}

/// The reason that kube-apiserver gives with a code.
fn usual_reason(code: u16) -> &'static str {
    match code {
        400 => reason::BAD_REQUEST,
        401 => reason::UNAUTHORIZED,
        403 => reason::FORBIDDEN,
        404 => reason::NOT_FOUND,
        409 => reason::CONFLICT,
        410 => reason::EXPIRED,
        422 => reason::INVALID,
        429 => reason::TOO_MANY_REQUESTS,
        500 => reason::INTERNAL_ERROR,
        503 => reason::SERVICE_UNAVAILABLE,
        504 => reason::TIMEOUT,
        _ => "",
    }
}

fn duration(text: &str) -> Result<Duration, ScriptError> {
    let parsed = if let Some(millis) = text.strip_suffix("ms") {
        millis.parse().map(Duration::from_millis)
    } else {
        text.strip_suffix('s').unwrap_or("").parse().map(Duration::from_secs)
    };
    parsed.map_err(|_| error(text, "duration"))
}
