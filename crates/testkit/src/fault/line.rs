//! One connection: its two directions, and what becomes of it when a fault strikes.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::flow::{Flow, Side, Stop};
use super::frames::go_away;
use super::{Fault, Newcomers, Orders, Shared};

/// Passes a connection on, until it ends in one way or another.
pub(super) async fn run(client: TcpStream, target: SocketAddr, frames: bool, shared: Arc<Shared>) {
    let mut orders = shared.orders.subscribe();
    let served = orders.wait_for(|orders| orders.newcomers != Newcomers::Frozen).await;
    if !served.is_ok_and(|orders| orders.newcomers == Newcomers::Served) {
        return;
    }
    // The server may be down; then the client sees its connection end.
    let Ok(server) = TcpStream::connect(target).await else { return };
    for stream in [&client, &server] {
        // Small pieces must not wait for larger ones. Without the option they only come later.
        let _ = stream.set_nodelay(true);
    }
    let seen = orders.borrow_and_update().strike.map_or(0, |(id, _)| id);
    let (up, down) = (Flow::new(Side::Request, frames), Flow::new(Side::Answer, frames));
    Line { client, server, up, down, seen, shared }.run(orders).await;
}

struct Line {
    client: TcpStream,
    server: TcpStream,
    up: Flow,
    down: Flow,
    /// The last strike at all connections that this one has heard of.
    seen: u64,
    shared: Arc<Shared>,
}

impl Line {
    async fn run(mut self, mut orders: watch::Receiver<Orders>) {
        let mut frozen = false;
        loop {
            let stop = if frozen {
                let heals = orders.borrow_and_update().heals;
                tokio::select! {
                    // Both come by the same way, and the strike was there first or replaces the healing.
                    biased;
                    fault = strike(&mut self.seen, orders.clone()) => Stop::Struck(fault),
                    healed = orders.wait_for(|orders| orders.heals != heals) => {
                        if healed.is_err() {
                            return;
                        }
                        frozen = false;
                        continue;
                    }
                }
            } else {
                let Err(stop) = self.pass(orders.clone()).await else { return };
                stop
            };
            let fault = match stop {
                Stop::Broken => return,
                Stop::Farewell => return self.end().await,
                Stop::Struck(fault) => fault,
            };
            self.shared.count_strike();
            frozen = false;
            match fault {
                Fault::Freeze => frozen = true,
                Fault::HalfOpen => {
                    drop(self.server);
                    return swallow(self.client).await;
                }
                Fault::Reset => return reset([self.client, self.server]),
                Fault::End => return self.end().await,
                Fault::Trickle { bytes, every } => self.down.pace(bytes, every),
                Fault::GoAway { code } => {
                    let last = self.up.swallow_new_streams();
                    self.down.say(go_away(last, code), code != 0);
                }
            }
        }
    }

    /// Passes bytes both ways. Without an error both sides have ended.
    async fn pass(&mut self, orders: watch::Receiver<Orders>) -> Result<(), Stop> {
        let (from_client, to_client) = self.client.split();
        let (from_server, to_server) = self.server.split();
        let both = async {
            tokio::try_join!(
                self.up.run(from_client, to_server, &self.shared),
                self.down.run(from_server, to_client, &self.shared),
            )
        };
        tokio::select! {
            // A strike comes before what could still be passed.
            biased;
            fault = strike(&mut self.seen, orders) => Err(Stop::Struck(fault)),
            end = both => end.map(|_| ()),
        }
    }

    /// An end to both sides. The client's socket is kept until the client has ended too: closed with bytes unread, it would
    /// send a reset after all.
    async fn end(self) {
        let Self { mut client, mut server, .. } = self;
        // One that has ended meanwhile needs no end.
        let _ = server.shutdown().await;
        if client.shutdown().await.is_ok() {
            tokio::join!(swallow(client), swallow(server));
        }
    }
}

/// Waits for a strike that is new.
async fn strike(seen: &mut u64, mut orders: watch::Receiver<Orders>) -> Fault {
    let new = |orders: &Orders| orders.strike.filter(|(id, _)| *id > *seen);
    let strike = orders.wait_for(|orders| new(orders).is_some()).await;
    let found = strike.ok().and_then(|orders| new(&orders));
    let (id, fault) = found.expect("the sender is in what the connection holds");
    *seen = id;
    fault
}

/// Reads and forgets until the other side ends.
async fn swallow(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(1..) = stream.read(&mut buffer).await {}
}

/// Closes so that the other side gets a reset.
fn reset(streams: [TcpStream; 2]) {
    for stream in streams {
        // Refused only by a socket that is gone already.
        let _ = stream.set_zero_linger();
    }
}
