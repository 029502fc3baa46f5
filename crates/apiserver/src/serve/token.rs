//! What stands between the network and the server: the token, and the deadline of a request.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use kubestrata_api_types::{BoxError, BoxFuture, Status, reason};
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;
use tower::Service;

use crate::{Body, Server, answer, media};

/// Lets through who knows the token, if there is one.
#[derive(Clone)]
pub(super) struct Gate {
    server: Server,
    token: Option<Arc<SecretString>>,
    limit: Duration,
}

impl Gate {
    pub(super) fn new(server: Server, token: Option<SecretString>, limit: Duration) -> Self {
        Self { server, token: token.map(Arc::new), limit }
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .is_some_and(|(scheme, have)| {
                let same = equal(have.trim().as_bytes(), token.expose_secret().as_bytes());
                scheme.eq_ignore_ascii_case("bearer") && same
            })
    }
}

/// Compares in a time that tells nothing of where the difference is.
fn equal(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

impl<B> Service<Request<B>> for Gate
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.admits(request.headers()) {
            let status = Status::failure(401, reason::UNAUTHORIZED, "Unauthorized");
            return Box::pin(std::future::ready(Ok(answer::status(
                &status,
                media::status_format(request.headers()),
            ))));
        }
        let format = media::status_format(request.headers());
        let (limit, call) = (self.limit, self.server.call(request));
        Box::pin(async move {
            match tokio::time::timeout(limit, call).await {
                Ok(answer) => answer,
                // The text of kube-apiserver's timeout filter.
                Err(_) => {
                    let message = "Timeout: request did not complete within the allotted timeout";
                    Ok(answer::status(&Status::failure(504, reason::TIMEOUT, message), format))
                }
            }
        })
    }
}
