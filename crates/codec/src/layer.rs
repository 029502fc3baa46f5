//! The layer that turns encoded answers into decoded ones.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use kubestrata_api_types::{Answer, ApiRequest, ApiResponse, ListPart, Object};
use serde::de::DeserializeOwned;
use tower::{Layer, Service};

use crate::{Decoded, Encoded};

/// Makes a service of [`Decoded<K>`] out of one of [`Encoded`].
///
/// It touches answers only; a request's body is encoded already. An object that does not decode is passed on as such.
pub struct DecodeLayer<K>(PhantomData<fn() -> K>);

/// The service that [`DecodeLayer`] makes.
pub struct Decode<S, K> {
    inner: S,
    kind: PhantomData<fn() -> K>,
}

impl<K> DecodeLayer<K> {
    /// A layer for one kind.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<K> Default for DecodeLayer<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Clone for DecodeLayer<K> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<K> fmt::Debug for DecodeLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecodeLayer")
    }
}

impl<S, K> Layer<S> for DecodeLayer<K> {
    type Service = Decode<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        Decode { inner, kind: PhantomData }
    }
}

impl<S: Clone, K> Clone for Decode<S, K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), kind: PhantomData }
    }
}

impl<S: fmt::Debug, K> fmt::Debug for Decode<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decode").field("inner", &self.inner).finish()
    }
}

impl<S, K> Service<ApiRequest> for Decode<S, K>
where
    S: Service<ApiRequest, Response = ApiResponse<Encoded>>,
    K: Object + DeserializeOwned,
{
    type Response = ApiResponse<Decoded<K>>;
    type Error = S::Error;
    type Future = DecodeFuture<S::Future, K>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        DecodeFuture { inner: Box::pin(self.inner.call(request)), kind: PhantomData }
    }
}

/// The future of [`Decode`]. Dropping it drops the call.
pub struct DecodeFuture<F, K> {
    inner: Pin<Box<F>>,
    kind: PhantomData<fn() -> K>,
}

impl<F, K> fmt::Debug for DecodeFuture<F, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecodeFuture")
    }
}

impl<F, K, E> Future for DecodeFuture<F, K>
where
    F: Future<Output = Result<ApiResponse<Encoded>, E>>,
    K: Object + DeserializeOwned,
{
    type Output = Result<ApiResponse<Decoded<K>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.as_mut().poll(cx).map_ok(decode)
    }
}

fn decode<K: Object + DeserializeOwned>(response: ApiResponse<Encoded>) -> ApiResponse<Decoded<K>> {
    let answer = match response.answer {
        Answer::Object(object) => Answer::Object(Decoded::decode(&object)),
        Answer::List(list) => Answer::List(Box::pin(list.map(|part| {
            part.map(|part| match part {
                ListPart::Item(object) => ListPart::Item(Decoded::decode(&object)),
                ListPart::Unreadable(unreadable) => ListPart::Unreadable(unreadable),
                ListPart::Meta(meta) => ListPart::Meta(meta),
            })
        }))),
        Answer::Watch(watch) => Answer::Watch(Box::pin(
            watch.map(|event| event.map(|event| event.map(|object| Decoded::decode(&object)))),
        )),
        Answer::Status(status) => Answer::Status(status),
    };
    let mut decoded = ApiResponse::new(answer);
    decoded.warnings = response.warnings;
    decoded
}
