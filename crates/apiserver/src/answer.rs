//! From outcomes to HTTP.

use http::{HeaderValue, Response, StatusCode, header};
use kubestrata_api_types::{Format, Status};
use kubestrata_codec::{PROTOBUF, envelope, schema, transcode};
use serde_json::{Map, Value};

use crate::body::Body;
use crate::failure::Failure;

pub(crate) type Answer = Response<Body>;

/// An answer with a body of a type.
pub(crate) fn with(code: u16, content_type: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}

pub(crate) fn json(code: u16, value: &Value) -> Answer {
    let mut text = value.to_string();
    text.push('\n');
    with(code, "application/json", Body::whole(text))
}

pub(crate) fn text(code: u16, text: &'static str) -> Answer {
    with(code, "text/plain; charset=utf-8", Body::whole(text))
}

/// A `Status` as JSON, in the order of Go.
pub(crate) fn status_json(status: &Status) -> Vec<u8> {
    let mut metadata = Map::new();
    if let Some(token) = &status.continue_token {
        metadata.insert("continue".to_owned(), token.as_str().into());
    }
    let metadata = Value::Object(metadata);
    let body = serde_json::to_string(status).expect("a status is written to memory");
    let head = format!("{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{metadata}");
    let rest = &body[1..];
    let comma = if rest.starts_with('}') { "" } else { "," };
    format!("{head}{comma}{rest}").into_bytes()
}

/// A `Status` as a protobuf message, without envelope.
pub(crate) fn status_protobuf(status: &Status) -> Vec<u8> {
    let mut raw = Vec::new();
    let message =
        schema::kind_of("v1", "Status").expect("the schema has the kinds of its machinery");
    transcode::to_protobuf(&status_json(status), message, &mut raw)
        .expect("a status as JSON fits its schema");
    raw
}

/// A `Status` as an answer.
pub(crate) fn status(status: &Status, format: Format) -> Answer {
    let code = if status.code == 0 { 200 } else { status.code };
    let mut answer = match format {
        Format::Json => {
            let mut body = status_json(status);
            body.push(b'\n');
            with(code, "application/json", Body::whole(body))
        }
        Format::Protobuf => {
            let body = envelope::close("v1", "Status", &status_protobuf(status));
            with(code, PROTOBUF, Body::whole(body))
        }
    };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

pub(crate) fn failure(failure: &Failure, format: Format) -> Answer {
    match failure {
        Failure::Status(error) => status(error, format),
        Failure::Text(code, message) => text(*code, message),
    }
}
