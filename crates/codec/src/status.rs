//! Reading the API's `Status` from whatever a server or a proxy before it answers.

use std::time::Duration;

use kubestrata_api_types::{Format, Status, StatusCause, StatusDetails, reason};
use serde::Deserialize;

use crate::json::ScanError;
use crate::wire::{Reader, Value};
use crate::{envelope, format_of};

/// How much of a body that is no Status goes into the message (client-go `maxUnstructuredResponseTextBytes`).
const TEXT_BYTES_MAX: usize = 2048;

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
    let mut status = parsed.unwrap_or_else(|| generic(http_code, body));
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
fn generic(http_code: u16, body: &[u8]) -> Status {
    let reason = match http_code {
        400 => reason::BAD_REQUEST,
        401 => reason::UNAUTHORIZED,
        403 => reason::FORBIDDEN,
        404 => reason::NOT_FOUND,
        405 => reason::METHOD_NOT_ALLOWED,
        406 => reason::NOT_ACCEPTABLE,
        // 409 stays without: it may be Conflict or AlreadyExists.
        410 => reason::GONE,
        413 => reason::REQUEST_ENTITY_TOO_LARGE,
        415 => reason::UNSUPPORTED_MEDIA_TYPE,
        422 => reason::INVALID,
        429 => reason::TOO_MANY_REQUESTS,
        500 => reason::INTERNAL_ERROR,
        503 => reason::SERVICE_UNAVAILABLE,
        504 => reason::TIMEOUT,
        _ => "",
    };
    let text = String::from_utf8_lossy(&body[..body.len().min(TEXT_BYTES_MAX)]);
    let text = text.trim();
    let printable = !text.contains(|c: char| c.is_control() && !c.is_whitespace());
    let message = if text.is_empty() || !printable {
        format!("the server answered HTTP {http_code} without a readable message")
    } else {
        text.to_owned()
    };
    Status::failure(http_code, reason, message)
}
