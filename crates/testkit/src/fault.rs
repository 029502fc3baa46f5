//! A proxy of TCP connections that does what networks and dying servers do.
//!
//! It passes bytes on and knows nothing of what they mean, so TLS passes through it unopened. Where a fault must know the
//! frames of HTTP/2 ([`Fault::GoAway`]), the proxy is made by [`FaultProxy::start_http2`] and the connections are in the
//! clear.

mod flow;
mod frames;
mod line;

#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Connections at once, those that a fault holds open included. More are closed at once; no test needs as many.
const CONNECTIONS_MAX: usize = 256;

/// What goes wrong on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing passes in either direction and both sides stay open, as when a host has vanished or a firewall has forgotten
    /// the connection. [`FaultProxy::heal`] lets pass what has waited.
    Freeze,
    /// The server's side is closed, and the client hears nothing of it: what it sends goes nowhere.
    HalfOpen,
    /// A reset (RST) to both sides, as when a process is killed.
    Reset,
    /// An orderly end (FIN) to both sides wherever the bytes are: within TLS there is no `close_notify`.
    End,
    /// Answers come slowly: so many bytes, then such a pause. Requests pass as before.
    Trickle {
        /// Bytes between two pauses; at least 1.
        bytes: usize,
        /// The pause.
        every: Duration,
    },
    /// HTTP/2 in the clear: after the frame that is being passed comes a GOAWAY. The last stream that it names is the last
    /// one of which the server has been passed anything; what the client sends on later ones is swallowed, so that the
    /// GOAWAY tells the truth. With an error code the connection ends behind it, as servers do; with 0 (NO_ERROR) it goes
    /// on until one side ends it.
    GoAway {
        /// The error code (RFC 9113, 7).
        code: u32,
    },
}

/// When an armed fault strikes a connection: as soon as there are more bytes than these, counted from the arming. So many
/// pass, and the rest is held back. 0 is the moment before the first byte passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// From the client to the server.
    RequestBytes(u64),
    /// From the server to the client.
    AnswerBytes(u64),
}

/// What becomes of new connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newcomers {
    /// They are passed on to the server.
    Served,
    /// They are accepted, and nothing more happens until newcomers are served again.
    Frozen,
    /// They stay in the kernel's queue, where a client takes them for open. Later they are treated as those that come then.
    Unaccepted,
    /// They are accepted and ended at once.
    Ended,
}

/// Forwards TCP connections from a port of loopback to one address, and harms them when it is told to.
///
/// Orders come through shared references at any time, and concern connections: those that are open ([`strike`]), or the
/// next ones that reach a moment ([`arm`]). A fault may be followed by another on the same connection as long as that one is
/// open on both sides. Dropping the proxy ends all connections.
///
/// Not the place for load: each connection is one task with one buffer of 16 KiB for each direction, and there may be 256.
///
/// [`strike`]: Self::strike
/// [`arm`]: Self::arm
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    frames: bool,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

impl FaultProxy {
    /// A proxy to `target`, on a free port, that passes everything.
    ///
    /// # Errors
    ///
    /// No port could be had.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with IO and time.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        Self::listen(target, false).await
    }

    /// The same for connections that are HTTP/2 in the clear from their first byte, with [`Fault::GoAway`].
    ///
    /// # Errors
    ///
    /// No port could be had.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with IO and time.
    pub async fn start_http2(target: SocketAddr) -> io::Result<Self> {
        Self::listen(target, true).await
    }

    async fn listen(target: SocketAddr, frames: bool) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::new());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target, frames, Arc::clone(&shared)));
        Ok(Self { port, frames, shared, _accepting: accepting })
    }

    /// The port of loopback to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Harms every connection that is open and was passed on to the server, now. A connection that is being opened at this
    /// moment may escape; wait for an answer on it first.
    ///
    /// # Panics
    ///
    /// [`Fault::GoAway`] on a proxy that does not know frames.
    pub fn strike(&self, fault: Fault) {
        self.check(fault);
        self.shared.orders.send_modify(|orders| {
            orders.last_id += 1;
            orders.strike = Some((orders.last_id, fault));
        });
    }

    /// Harms the next `times` connections that reach the moment, old or new, each once. It replaces what was armed before.
    ///
    /// # Panics
    ///
    /// [`Fault::GoAway`] on a proxy that does not know frames.
    pub fn arm(&self, fault: Fault, moment: Moment, times: usize) {
        self.check(fault);
        self.shared.orders.send_modify(|orders| {
            orders.last_id += 1;
            let id = orders.last_id;
            orders.armed = (times > 0).then_some(Armed { id, fault, moment, left: times });
        });
    }

    /// Says what becomes of new connections from now on. At first they are served.
    pub fn newcomers(&self, newcomers: Newcomers) {
        self.shared.orders.send_modify(|orders| orders.newcomers = newcomers);
    }

    /// No more harm: nothing is armed, newcomers are served, and frozen connections go on with what has waited in them.
    /// What was ended stays ended, and what trickles goes on so.
    pub fn heal(&self) {
        self.shared.orders.send_modify(|orders| {
            orders.armed = None;
            orders.newcomers = Newcomers::Served;
            orders.heals += 1;
        });
    }

    /// How many connections were accepted so far.
    pub fn accepted(&self) -> usize {
        self.shared.counts.borrow().accepted
    }

    /// How often a fault has struck a connection so far.
    pub fn struck(&self) -> usize {
        self.shared.counts.borrow().struck
    }

    /// When a fault struck last.
    pub fn last_strike(&self) -> Option<Instant> {
        self.shared.counts.borrow().last_strike
    }

    /// Waits until faults have struck `times` connections in all. Cancel-safe; there is no limit, the caller sets one.
    pub async fn wait_struck(&self, times: usize) {
        let mut counts = self.shared.counts.subscribe();
        let reached = counts.wait_for(|counts| counts.struck >= times).await;
        reached.expect("the sender is in the value that is borrowed");
    }

    fn check(&self, fault: Fault) {
        let needs_frames = matches!(fault, Fault::GoAway { .. });
        assert!(self.frames || !needs_frames, "GOAWAY needs a proxy made by start_http2");
    }
}

/// An armed fault.
#[derive(Debug, Clone, Copy)]
struct Armed {
    id: u64,
    fault: Fault,
    moment: Moment,
    /// Connections that it still may strike.
    left: usize,
}

/// What the connections are told.
#[derive(Debug, Clone, Copy)]
struct Orders {
    newcomers: Newcomers,
    /// The last strike at all that are open, by its number.
    strike: Option<(u64, Fault)>,
    armed: Option<Armed>,
    heals: u64,
    last_id: u64,
}

/// What the connections tell.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    accepted: usize,
    struck: usize,
    last_strike: Option<Instant>,
}

#[derive(Debug)]
struct Shared {
    orders: watch::Sender<Orders>,
    counts: watch::Sender<Counts>,
}

impl Shared {
    fn new() -> Self {
        let orders = Orders {
            newcomers: Newcomers::Served,
            strike: None,
            armed: None,
            heals: 0,
            last_id: 0,
        };
        Self { orders: watch::Sender::new(orders), counts: watch::Sender::new(Counts::default()) }
    }

    /// Whether the armed fault `id` is ours to apply. Each is given out as often as it was armed for.
    fn claim(&self, id: u64) -> bool {
        let mut ours = false;
        self.orders.send_if_modified(|orders| {
            if let Some(armed) = orders.armed.as_mut().filter(|armed| armed.id == id) {
                ours = true;
                armed.left -= 1;
                if armed.left == 0 {
                    orders.armed = None;
                }
            }
            // Nobody waits for this; who reaches the moment looks.
            false
        });
        ours
    }

    fn count_strike(&self) {
        self.counts.send_modify(|counts| {
            counts.struck += 1;
            counts.last_strike = Some(Instant::now());
        });
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, frames: bool, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut orders = shared.orders.subscribe();
    loop {
        let unaccepted = orders.borrow_and_update().newcomers == Newcomers::Unaccepted;
        tokio::select! {
            // The order not to accept comes before what could be accepted.
            biased;
            changed = orders.changed() => {
                changed.expect("the sender is in what this task holds");
            }
            accepted = listener.accept(), if !unaccepted => {
                // An error concerns the one connection that ended before it was accepted.
                let Ok((client, _)) = accepted else { continue };
                while connections.try_join_next().is_some() {}
                if connections.len() < CONNECTIONS_MAX {
                    shared.counts.send_modify(|counts| counts.accepted += 1);
                    connections.spawn(line::run(client, target, frames, Arc::clone(&shared)));
                }
            }
        }
    }
}
