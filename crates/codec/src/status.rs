//! Reading the API's `Status` from whatever a server or a proxy before it answers.

use std::time::Duration;

use kubestrata_api_types::{Format, Status, StatusCause, StatusDetails, reason};
use serde::Deserialize;

use crate::json::ScanError;
use crate::wire::{Reader, Value};
use crate::{envelope, format_of};

/// How much of a body that is no Status is looked at (client-go `maxUnstructuredResponseTextBytes`).
const SEARCHED_BYTES: usize = 2048;

/// How many characters of it are quoted at most.
const SAID_CHARS_MAX: usize = 200;

/// The type of a cause that quotes a body that is no Status (client-go `CauseTypeUnexpectedServerResponse`).
const UNEXPECTED_RESPONSE: &str = "UnexpectedServerResponse";

/// The Status of a failed request, from its body and headers. Never fails: what cannot be read gives a generic Status
/// of the HTTP code, as client-go's `NewGenericServerResponse` does it.
///
/// `retry_after` is the `Retry-After` header; it counts where the body names no delay.
pub fn decode_status(
    content_type: Option<&str>,
    http_code: u16,
    retry_after: Option<Duration>,
    body: &[u8],
) -> Status {
    let parsed = match content_type.and_then(format_of) {
        Some(Format::Json) => from_json(body),
        Some(Format::Protobuf) => from_envelope(body),
        None => None,
    };
    let mut status = parsed.unwrap_or_else(|| generic(content_type, http_code, body));
    if status.code == 0 {
        status.code = http_code;
    }
    if let Some(wait) = retry_after {
        let details = status.details.get_or_insert_default();
        if details.retry_after_seconds == 0 {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            details.retry_after_seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        }
    }
    status
}

/// A Status from JSON text, if it is one.
pub(crate) fn from_json(text: &[u8]) -> Option<Status> {
    #[derive(Deserialize)]
    struct Outer {
        kind: String,
        #[serde(default)]
        metadata: Option<Metadata>,
        #[serde(flatten)]
        status: Status,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default, rename = "continue")]
        token: Option<String>,
    }
    let outer: Outer = serde_json::from_slice(text).ok()?;
    if outer.kind != "Status" {
        return None;
    }
    let token = outer.metadata.and_then(|metadata| metadata.token);
    Some(Status { continue_token: token.filter(|token| !token.is_empty()), ..outer.status })
}

/// A Status from its message in an envelope, if it is one.
pub(crate) fn from_envelope(body: &[u8]) -> Option<Status> {
    let envelope = envelope::open(body).ok()?;
    if envelope.kind != "Status" { None } else { from_protobuf(envelope.message).ok() }
}

/// A Status from its message.
///
/// Fields: 1 metadata {3 continue}, 2 status, 3 message, 4 reason, 5 details {1 name, 2 group, 3 kind, 4 causes
/// {1 reason, 2 message, 3 field}, 5 retryAfterSeconds, 6 uid}, 6 code.
pub(crate) fn from_protobuf(message: &[u8]) -> Result<Status, ScanError> {
    let mut status = Status::default();
    let mut reader = Reader::new(message);
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(range)) => {
                let mut metadata = reader.inner(range);
                while let Some(field) = metadata.next()? {
                    if let (3, Value::Bytes(range)) = (field.number, field.value) {
                        let token = metadata.text(range)?;
                        status.continue_token = (!token.is_empty()).then(|| token.to_owned());
                    }
                }
            }
            (2, Value::Bytes(range)) => status.status = reader.text(range)?.to_owned(),
            (3, Value::Bytes(range)) => status.message = reader.text(range)?.to_owned(),
            (4, Value::Bytes(range)) => status.reason = reader.text(range)?.to_owned(),
            (5, Value::Bytes(range)) => status.details = Some(details(reader.inner(range))?),
            (6, Value::Varint(code)) => status.code = u16::try_from(code).unwrap_or_default(),
            _ => {}
        }
    }
    Ok(status)
}

fn details(mut reader: Reader<'_>) -> Result<StatusDetails, ScanError> {
    let mut details = StatusDetails::default();
    while let Some(field) = reader.next()? {
        match (field.number, field.value) {
            (1, Value::Bytes(range)) => details.name = reader.text(range)?.to_owned(),
            (2, Value::Bytes(range)) => details.group = reader.text(range)?.to_owned(),
            (3, Value::Bytes(range)) => details.kind = reader.text(range)?.to_owned(),
            (4, Value::Bytes(range)) => {
                let mut inner = reader.inner(range);
                let mut cause = StatusCause::default();
                while let Some(field) = inner.next()? {
                    match (field.number, field.value) {
                        (1, Value::Bytes(range)) => cause.reason = inner.text(range)?.to_owned(),
                        (2, Value::Bytes(range)) => cause.message = inner.text(range)?.to_owned(),
                        (3, Value::Bytes(range)) => cause.field = inner.text(range)?.to_owned(),
                        _ => {}
                    }
                }
                details.causes.push(cause);
            }
            (5, Value::Varint(seconds)) => {
                details.retry_after_seconds = u32::try_from(seconds).unwrap_or_default();
            }
            (6, Value::Bytes(range)) => details.uid = reader.text(range)?.to_owned(),
            _ => {}
        }
    }
    Ok(details)
}

/// The Status of an answer that is none: of a proxy, of the priority and fairness filter, of a path that is not there.
///
/// Reason and message are those of client-go's `NewGenericServerResponse`. What the body says goes where client-go puts
/// it too, into a cause of the details; but where client-go quotes up to 2 KiB of it, here it is one line of plain text,
/// or the title of a page: the page of a proxy may show the request's headers, and errors end up in logs and statuses.
fn generic(content_type: Option<&str>, http_code: u16, body: &[u8]) -> Status {
    let (reason, message) = match http_code {
        400 => (reason::BAD_REQUEST, "the server rejected our request for an unknown reason"),
        401 => (reason::UNAUTHORIZED, "the server has asked for the client to provide credentials"),
        403 => (reason::FORBIDDEN, "the server does not allow the request"),
        404 => (reason::NOT_FOUND, "the server could not find the requested resource"),
        405 => (
            reason::METHOD_NOT_ALLOWED,
            "the server does not allow this method on the requested resource",
        ),
        406 => (
            reason::NOT_ACCEPTABLE,
            "the server was unable to respond with a content type that the client supports",
        ),
        // It may be Conflict or AlreadyExists.
        409 => ("", "the server reported a conflict"),
        410 => (reason::GONE, "the server no longer has what was asked for"),
        413 => (reason::REQUEST_ENTITY_TOO_LARGE, "the request is too large for the server"),
        415 => (
            reason::UNSUPPORTED_MEDIA_TYPE,
            "the server does not take the content type of the request",
        ),
        422 => (reason::INVALID, "the server rejected our request due to an error in our request"),
        429 => (
            reason::TOO_MANY_REQUESTS,
            "the server has received too many requests and has asked us to try again later",
        ),
        503 => {
            (reason::SERVICE_UNAVAILABLE, "the server is currently unable to handle the request")
        }
        504 => (
            reason::TIMEOUT,
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request",
        ),
        500..=599 => (
            reason::INTERNAL_ERROR,
            "an error on the server has prevented the request from succeeding",
        ),
        _ => ("", "the server responded with a status code and without further information"),
    };
    let said = said(content_type, body);
    let message = match &said {
        Some(said) => format!("{message}: {said}"),
        None => message.to_owned(),
    };
    let mut status = Status::failure(http_code, reason, message);
    if let Some(said) = said {
        let details = status.details.get_or_insert_default();
        details.causes.push(StatusCause {
            reason: UNEXPECTED_RESPONSE.to_owned(),
            message: said,
            field: String::new(),
        });
    }
    status
}

/// What a body that is no Status may be quoted with: the first line of plain text, the title of a page, or nothing.
///
/// A body without a type is taken for text, as by client-go.
fn said(content_type: Option<&str>, body: &[u8]) -> Option<String> {
    let media_type = content_type.and_then(|text| text.split(';').next()).unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    let text = String::from_utf8_lossy(&body[..body.len().min(SEARCHED_BYTES)]);
    let line = match media_type.as_str() {
        "" | "text/plain" if !text.trim_start().starts_with('<') => text.trim_start(),
        "" | "text/plain" | "text/html" | "application/xhtml+xml" => title(&text)?,
        _ => return None,
    };
    let line = line.lines().next().unwrap_or_default().trim();
    let printable = !line.contains(|c: char| c.is_control() && c != '\t');
    let mut short: String = line.chars().take(SAID_CHARS_MAX).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    (printable && !line.is_empty()).then_some(short)
}

/// The contents of the first `title` of a page.
fn title(page: &str) -> Option<&str> {
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    Some(page[start..end].trim())
}
