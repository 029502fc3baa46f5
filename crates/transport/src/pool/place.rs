//! Sending one request on the connection that it was given.

use std::error::Error;
use std::sync::atomic::Ordering;

use http::Uri;
use http::header::HOST;
use kubestrata_api_types::{BoxError, cause_ref};

use super::body::PooledBody;
use super::{Http1, Http2, Slot};
use crate::error::TransportError;
use crate::tls::Session;
use crate::wire::{HttpRequest, HttpResponse, ResponseBody};

/// A place for one request.
pub(super) enum Place {
    Http1 { sender: Http1, slot: Slot },
    Http2 { sender: Http2, slot: Slot },
}

/// A request without an answer.
pub(super) struct Failed {
    pub(super) error: BoxError,
    /// It was handed back: the server has not seen it.
    pub(super) unsent: bool,
    /// The connection had brought an answer before, and may have been closed by the server meanwhile.
    pub(super) reused: bool,
    pub(super) session: Session,
}

impl Place {
    pub(super) async fn send(self, mut request: HttpRequest) -> Result<HttpResponse, Failed> {
        match self {
            Self::Http1 { mut sender, slot } => {
                origin_form(&mut request);
                match sender.sender.try_send_request(request).await {
                    Ok(response) => {
                        sender.answered = true;
                        Ok(response.map(|body| {
                            ResponseBody::new(PooledBody::new(body, slot, Some(sender)))
                        }))
                    }
                    Err(mut error) => Err(Failed {
                        unsent: error.take_message().is_some(),
                        error: error.into_error().into(),
                        reused: sender.answered,
                        session: sender.session,
                    }),
                }
            }
            Self::Http2 { mut sender, slot } => {
                // Before it is sent: what an answer to another request says of the connection came too late for this one.
                let reused = sender.answered.load(Ordering::Relaxed);
                match sender.sender.try_send_request(request).await {
                    Ok(response) => {
                        if !reused {
                            sender.answered.store(true, Ordering::Relaxed);
                        }
                        let body = |body| ResponseBody::new(PooledBody::new(body, slot, None));
                        Ok(response.map(body))
                    }
                    Err(mut error) => {
                        let unsent = error.take_message().is_some() || is_refused(error.error());
                        let error = error.into_error().into();
                        Err(Failed { unsent, error, reused, session: sender.session })
                    }
                }
            }
        }
    }
}

/// Whether the server says that it has not looked at the request (RFC 9113, 8.7): it refused the stream, or it is going
/// away and the stream came too late. Go's client repeats both for every method, as a server with `--goaway-chance`
/// does the latter all day.
fn is_refused(error: &hyper::Error) -> bool {
    let Some(error) = cause_ref::<h2::Error>(error) else { return false };
    let expected =
        if error.is_go_away() { h2::Reason::NO_ERROR } else { h2::Reason::REFUSED_STREAM };
    error.is_remote() && error.reason() == Some(expected)
}

/// Whether an answer came that cannot be read, and would come again.
pub(super) fn is_no_http(error: &(dyn Error + 'static)) -> bool {
    cause_ref::<hyper::Error>(error).is_some_and(hyper::Error::is_parse)
}

/// Puts the server before a path that stands alone.
pub(super) fn complete(request: &mut HttpRequest, server: &Uri) -> Result<(), TransportError> {
    let mut parts = server.clone().into_parts();
    parts.path_and_query = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from_parts(parts)
        .map_err(|_| TransportError::Request { problem: "it has no path".to_owned() })?;
    Ok(())
}

/// HTTP/1.1 wants the path in the request line and the authority in `Host`.
fn origin_form(request: &mut HttpRequest) {
    let uri = std::mem::take(request.uri_mut());
    if let Some(authority) = uri.authority()
        && let Ok(host) = authority.as_str().parse()
    {
        request.headers_mut().insert(HOST, host);
    }
    *request.uri_mut() = uri.into_parts().path_and_query.map_or_else(Uri::default, Uri::from);
}
