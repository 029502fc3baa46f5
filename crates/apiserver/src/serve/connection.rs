//! One connection: TLS, version of HTTP, requests, end.

use std::sync::{Arc, Weak};

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Listen;
use super::accept::Shared;

/// What an HTTP/2 client sends first (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How often a connection that has sent a part of that is looked at again.
const PREFACE_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);
/// Bytes that a client may send ahead on one stream: bodies of requests are at most 3 MiB.
const STREAM_WINDOW: u32 = 1 << 20;
/// Silence after which a client is asked whether it is there, and how long its answer may take (Go: 30 s and 15 s).
const PING: (std::time::Duration, std::time::Duration) =
    (std::time::Duration::from_secs(30), std::time::Duration::from_secs(15));

/// The tasks of HTTP/2 streams. Dropping it ends them.
#[derive(Debug, Default)]
pub(super) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    pub(super) fn spawner(&self) -> Spawner {
        Spawner(Arc::downgrade(&self.0))
    }
}

/// Starts tasks as long as their owner is there.
#[derive(Debug, Clone)]
pub(super) struct Spawner(Weak<Mutex<JoinSet<()>>>);

impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        if let Some(tasks) = self.0.upgrade() {
            let mut tasks = tasks.lock();
            // Ended ones are let go here, so that no more stay than ran at a time.
            while tasks.try_join_next().is_some() {}
            tasks.spawn(future);
        }
    }
}

/// Serves a connection until it ends, or a shutdown ends it.
pub(super) async fn serve(
    stream: TcpStream,
    shared: Shared,
    streams: Spawner,
    stopped: watch::Receiver<bool>,
) {
    // Watches send small frames that must not wait for more.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "socket option refused");
    }
    match &shared.acceptor {
        None => {
            let Ok(Some(http2)) = timeout(shared.listen.head_timeout, is_http2(&stream)).await
            else {
                return;
            };
            speak(stream, http2, &shared, streams, stopped).await;
        }
        Some(acceptor) => {
            match timeout(shared.listen.handshake_timeout, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    speak(stream, http2, &shared, streams, stopped).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            }
        }
    }
}

/// Whether the client speaks HTTP/2, by its first bytes, which stay unread. `None` if it is gone.
async fn is_http2(stream: &TcpStream) -> Option<bool> {
    let mut start = [0; PREFACE.len()];
    loop {
        let length = stream.peek(&mut start).await.ok().filter(|length| *length > 0)?;
        if start[..length] != PREFACE[..length] {
            return Some(false);
        }
        if length == PREFACE.len() {
            return Some(true);
        }
        // A peek is ready as long as anything is unread, so the rest cannot be waited for.
        tokio::time::sleep(PREFACE_PAUSE).await;
    }
}

async fn speak<T>(
    stream: T,
    http2: bool,
    shared: &Shared,
    streams: Spawner,
    mut stopped: watch::Receiver<bool>,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let builder = builder(http2, &shared.listen, streams);
    let service = TowerToHyperService::new(shared.service.clone());
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut stopping = false;
    loop {
        let end = tokio::select! {
            // A stop must be heard under any load; requests under way go on either way.
            biased;
            _ = stopped.changed(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
                continue;
            }
            end = connection.as_mut() => end,
        };
        if let Err(error) = end {
            tracing::debug!(%error, "connection ended");
        }
        return;
    }
}

fn builder(http2: bool, listen: &Listen, streams: Spawner) -> auto::Builder<Spawner> {
    let mut builder = auto::Builder::new(streams);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(listen.head_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(listen.streams)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAM_WINDOW.saturating_mul(listen.streams).min(1 << 30))
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1);
    if http2 { builder.http2_only() } else { builder.http1_only() }
}
