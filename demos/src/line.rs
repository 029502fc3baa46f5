//! A layer that can be cut, as a network can.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{StreamExt as _, stream};
use kubestrata_controller::api_types::{Answer, ApiRequest, ApiResponse, BoxError};
use kubestrata_controller::codec::{Encoded, EncodedService};
use tokio::sync::watch;
use tower::Service;

/// Breaks open watches and refuses requests while it is cut. Clones share the line.
#[derive(Debug, Clone)]
pub struct Line<S> {
    inner: S,
    whole: watch::Sender<bool>,
}

impl<S> Line<S> {
    pub fn new(inner: S) -> Self {
        Self { inner, whole: watch::Sender::new(true) }
    }

    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub fn heal(&self) {
        self.whole.send_replace(true);
    }
}

impl<S: EncodedService> Service<ApiRequest> for Line<S> {
    type Response = ApiResponse<Encoded>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        let mut whole = self.whole.subscribe();
        let call = self.inner.call(request);
        Box::pin(async move {
            if !*whole.borrow_and_update() {
                return Err(cut().into());
            }
            let mut response = call.await.map_err(Into::into)?;
            if let Answer::Watch(events) = response.answer {
                let until_cut = async move {
                    // The sender lives as long as any clone of the layer; without one the line is cut too.
                    let _ = whole.wait_for(|whole| !whole).await;
                };
                let broken = stream::once(async { Err(cut().into()) });
                response.answer =
                    Answer::Watch(Box::pin(events.take_until(until_cut).chain(broken)));
            }
            Ok(response)
        })
    }
}

/// What a transport says of a broken connection.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the line is cut")
}
