//! A relay of TCP connections that can be cut.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Connections at once. More are closed at once; no test needs as many.
const CONNECTIONS_MAX: usize = 64;

/// What a relay does with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Bytes pass.
    Whole,
    /// Connections end, and new ones end at once.
    Cut,
    /// Connections stay open and nothing passes, as when a peer has vanished. One that was silent ends when the line is
    /// whole again.
    Silent,
}

/// Forwards TCP connections from a port of loopback to one address, until it is told to harm them.
///
/// Dropping it ends all connections.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    line: watch::Sender<Line>,
    _accepting: JoinSet<()>,
}

impl Relay {
    /// A relay to `target`, on a free port.
    ///
    /// # Errors
    ///
    /// No port could be had.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (line, watched) = watch::channel(Line::Whole);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target, watched));
        Ok(Self { port, line, _accepting: accepting })
    }

    /// The port of loopback to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends all connections, perhaps in the middle of a frame, and from now on every new one.
    pub fn cut(&self) {
        self.line.send_replace(Line::Cut);
    }

    /// Lets all connections stay open without passing anything on, in either direction.
    pub fn silence(&self) {
        self.line.send_replace(Line::Silent);
    }

    /// New connections work again.
    pub fn heal(&self) {
        self.line.send_replace(Line::Whole);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, line: watch::Receiver<Line>) {
    let mut connections = JoinSet::new();
    loop {
        // An error concerns the one connection that ended before it was accepted.
        let Ok((client, _)) = listener.accept().await else { continue };
        while connections.try_join_next().is_some() {}
        if connections.len() < CONNECTIONS_MAX {
            connections.spawn(forward(client, target, line.clone()));
        }
    }
}

async fn forward(mut client: TcpStream, target: SocketAddr, mut line: watch::Receiver<Line>) {
    // Held until the end, so that a silent line is silent on both sides.
    let mut server = None;
    if *line.borrow_and_update() == Line::Whole {
        // The server may be down; then the client sees its connection end.
        let Ok(connected) = TcpStream::connect(target).await else { return };
        let server = server.insert(connected);
        tokio::select! {
            // A cut comes before what could still be copied.
            biased;
            _ = line.wait_for(|line| *line != Line::Whole) => {}
            _ = copy_bidirectional(&mut client, server) => return,
        }
    }
    let _ = line.wait_for(|line| *line != Line::Silent).await;
    drop(server);
}
