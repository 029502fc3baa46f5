//! Time in the hands of a test, while sockets, processes and files are real: nothing here is decided by how busy a machine is.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use tokio::net::TcpSocket;

/// Longer than a busy machine keeps anybody waiting: what takes as long hangs.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Keeps the paused clock of a runtime of one thread where it is, but for what [`tokio::time::advance`] adds to it.
///
/// A paused clock alone jumps to the next deadline as soon as the runtime waits, also where it waits for a socket or a process.
/// Once this is dropped it does, which is right where nothing but time is waited for. After twice [`SOON`] it does so too, so
/// that deadlines end a test that hangs.
pub(crate) struct Still(
    #[expect(dead_code, reason = "dropped, it ends the work that holds the clock")] mpsc::Sender<()>,
);

impl Still {
    /// In a test that has `start_paused = true`, or has paused the clock itself.
    pub(crate) fn new() -> Self {
        let (held, dropped) = mpsc::channel();
        // No paused clock jumps while there is blocking work.
        drop(tokio::task::spawn_blocking(move || dropped.recv_timeout(2 * SOON)));
        Self(held)
    }
}

/// Waits for as long as this takes in the world, whatever the clock says.
pub(crate) async fn really(time: Duration) {
    tokio::task::spawn_blocking(move || std::thread::sleep(time)).await.unwrap();
}

/// Waits until this holds, whatever the clock says.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let pause = Duration::from_millis(2);
    for _ in 0..SOON.as_millis() / pause.as_millis() {
        if holds() {
            return;
        }
        really(pause).await;
    }
    panic!("still not so: {what}");
}

/// A port that refuses connections for as long as the socket is there. One that was only free a moment ago may be given to
/// another test, or to the very connection that is to be refused.
pub(crate) fn closed_port(ip: &str) -> std::io::Result<(TcpSocket, SocketAddr)> {
    let address = SocketAddr::new(ip.parse().unwrap(), 0);
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(address)?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}
