//! The accept loop.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::Listen;
use super::connection::{self, Tasks};
use super::token::Gate;

/// Pause after an error of `accept`, most often "too many open files": an immediate next try would fail too.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// What all connections share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) service: Gate,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) listen: Arc<Listen>,
}

/// Accepts until told to stop, then waits for the connections, but not for ever.
pub(super) async fn run(listener: TcpListener, shared: Shared, mut stopped: watch::Receiver<bool>) {
    let drain = shared.listen.drain;
    let room = Arc::new(Semaphore::new(shared.listen.connections.min(Semaphore::MAX_PERMITS)));
    // The tasks of HTTP/2 streams. They end when this function does.
    let streams = Tasks::default();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // The word to stop comes first, and ended connections before new ones: under load they would pile up.
            biased;
            _ = stopped.changed() => break,
            Some(_) = connections.join_next() => {}
            (stream, permit) = next(&listener, &room) => {
                let (shared, stopped, streams) = (shared.clone(), stopped.clone(), streams.spawner());
                connections.spawn(async move {
                    connection::serve(stream, shared, streams, stopped).await;
                    drop(permit);
                });
            }
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(drain, all).await.is_err() {
        tracing::debug!("closing connections that did not end in time");
    }
}

/// The next connection, once there is room for one. Cancel-safe: what was accepted is returned at once.
async fn next(listener: &TcpListener, room: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let permit = Arc::clone(room).acquire_owned().await.expect("nobody closes the semaphore");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
}
