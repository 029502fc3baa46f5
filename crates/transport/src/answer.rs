//! From HTTP to a typed answer. The status code is looked at before any of the body.

mod chunks;
mod gunzip;
mod list;
mod warnings;
mod watch;

use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use kubestrata_api_types::{
    Answer, ApiRequest, ApiResponse, BoxError, Collection, Format, ListPart, ListStream, Operation,
    Representation, Status,
};
use kubestrata_codec::{Encoded, ListDecoder, decode_object, decode_status, format_of};
use kubestrata_telemetry::Histogram;
use tokio::time::Instant;

pub(crate) use self::chunks::Chunks;
use self::list::ListBody;
use self::watch::WatchBody;
use crate::config::Config;
use crate::error::TransportError;
use crate::retry::retry_after;
use crate::wire::HttpResponse;

/// Reads the answer to `request`; all of it must be there at `until`, but for a list whose reader is slow, and a watch.
pub(crate) async fn read(
    request: &ApiRequest,
    response: HttpResponse,
    config: &Config,
    sizes: Option<Histogram>,
    until: Instant,
) -> Result<ApiResponse<Encoded>, BoxError> {
    let collection = &request.collection;
    let warnings = warnings::texts(response.headers());
    config.warnings.call(&collection.resource, &warnings);
    let response = check(response, config).await?;
    let format = format(&response)?;
    let answer = match &request.operation {
        Operation::Watch(options) => {
            let life = options.timeout.map_or(config.timeouts.watch_life, |asked| {
                asked.saturating_add(config.timeouts.watch_margin)
            });
            let chunks = Chunks::watch(response, life)?;
            let watch = WatchBody::new(chunks, collection.clone(), format, config.decoding);
            Answer::Watch(Box::pin(watch))
        }
        // A table is one object, whatever it tells of.
        Operation::List(_) if collection.representation != Representation::Table => {
            let timeouts = &config.timeouts;
            let left = until.saturating_duration_since(Instant::now());
            let chunks = Chunks::plain(response, timeouts)?.whole(timeouts.list, left);
            let chunks = chunks.measured(sizes);
            let list = ListBody::new(chunks, collection.clone(), format, config.decoding);
            Answer::List(Box::pin(list))
        }
        operation => {
            let chunks = Chunks::plain(response, &config.timeouts)?.measured(sizes);
            let body = chunks.collect(config.limits.body_bytes).await?;
            let answer =
                decode_object(collection, format, &body).map_err(TransportError::Answer)?;
            let many = matches!(operation, Operation::DeleteCollection { .. });
            match answer {
                Answer::Object(_) if many => {
                    Answer::List(whole_list(collection, format, body, config)?)
                }
                // A 2xx with a failure inside: the body is the server's word.
                Answer::Status(status) if !status.is_success() => return Err(status),
                answer => answer,
            }
        }
    };
    let mut answer = ApiResponse::new(answer);
    answer.warnings = warnings;
    Ok(answer)
}

/// Passes on a success; reads the `Status` of anything else.
pub(crate) async fn check(
    response: HttpResponse,
    config: &Config,
) -> Result<HttpResponse, BoxError> {
    if response.status().is_success() {
        return Ok(response);
    }
    let code = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let content_type = content_type(&response).map(str::to_owned);
    // A body that breaks off, is too long, or is compressed in a way that nobody asked for, tells as much as can be had of
    // it: the code is what counts.
    let body = match Chunks::plain(response, &config.timeouts) {
        Ok(chunks) => chunks.prefix(config.limits.error_bytes).await,
        Err(_) => Vec::new(),
    };
    let status: Status = decode_status(content_type.as_deref(), code, retry_after, &body);
    if status.is_success() {
        // The code is what counts (client-go makes a Status of its own as well).
        let unread: Status = decode_status(None, code, retry_after, &[]);
        return Err(unread.into());
    }
    Err(status.into())
}

fn content_type(response: &HttpResponse) -> Option<&str> {
    response.headers().get(CONTENT_TYPE)?.to_str().ok()
}

fn format(response: &HttpResponse) -> Result<Format, TransportError> {
    let content_type = content_type(response).unwrap_or_default();
    format_of(content_type)
        .ok_or_else(|| TransportError::ContentType { content_type: content_type.to_owned() })
}

/// A list that is already here as a whole: kube-apiserver answers a delete-collection with what it deleted.
fn whole_list(
    collection: &Collection,
    format: Format,
    body: Bytes,
    config: &Config,
) -> Result<ListStream<Encoded>, BoxError> {
    let mut decoder = ListDecoder::new(collection.clone(), format, config.decoding);
    decoder.push(body);
    let mut parts: Vec<Result<ListPart<Encoded>, BoxError>> = Vec::new();
    while let Some(part) = decoder.next()? {
        parts.push(Ok(part));
    }
    decoder.finish()?;
    Ok(Box::pin(stream::iter(parts)))
}
