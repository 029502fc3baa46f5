//! The body of one answer on its way.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, future, stream};
use http::Response;
use http_body_util::{BodyExt as _, StreamBody};
use kubestrata_api_types::{BoxError, Format};
use kubestrata_apiserver::Body;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Network, Rates, frames};
use crate::log::note;

/// A piece of a body, or how it breaks.
type Piece = Result<http_body::Frame<Bytes>, BoxError>;

/// A body on its way.
pub(crate) type Chunks = StreamBody<Pin<Box<dyn Stream<Item = Piece> + Send>>>;

/// An answer with a body of one piece.
pub(super) fn whole(body: Vec<u8>) -> Response<Chunks> {
    let pieces = stream::iter([Ok(http_body::Frame::data(body.into()))]);
    Response::new(StreamBody::new(Box::pin(pieces)))
}

/// How a connection ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Reset,
    Close,
    Silence,
    Expired,
    Internal,
    Throttled,
}

/// When it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Never,
    At(Instant),
    /// After so many frames; `within` the next, or before it.
    After {
        frames: u64,
        within: bool,
    },
}

/// One answer between server and client.
pub(super) struct Connection {
    network: Arc<Network>,
    number: u64,
    body: Body,
    /// The format of a watch, whose frames are known. Anything else is bytes.
    watch: Option<Format>,
    /// A part of a frame.
    rest: Vec<u8>,
    out: VecDeque<Bytes>,
    sent: u64,
    when: When,
    end: End,
    /// Whether it ends so even when the network is good again.
    forced: bool,
    /// It ends in this way now.
    ending: Option<End>,
    over: bool,
    /// The crashes that do not concern it.
    crashes: u64,
}

impl Connection {
    pub(super) fn new(
        network: Arc<Network>,
        number: u64,
        body: Body,
        watch: Option<Format>,
        crashes: u64,
    ) -> Self {
        Self {
            network,
            number,
            body,
            watch,
            rest: Vec::new(),
            out: VecDeque::new(),
            sent: 0,
            when: When::Never,
            end: End::Close,
            forced: false,
            ending: None,
            over: false,
            crashes,
        }
    }

    /// Appoints its end. One that begins in the `future` must end in time, with or without faults.
    pub(super) fn doomed(mut self, rates: Rates, future: bool) -> Self {
        let world = &self.network.world;
        if future {
            self.when = When::At(Instant::now() + Duration::from_secs(20));
            self.end = End::Expired;
            self.forced = true;
            return self;
        }
        let is_watch = self.watch.is_some();
        // A watch that ends is opened again, a list that breaks is lost: with pages, one in many would never succeed.
        if !world.chance(if is_watch { rates.doom } else { rates.doom / 3 }) {
            return self;
        }
        self.end = match world.below(if is_watch { 6 } else { 3 }) {
            0 => End::Reset,
            1 => End::Close,
            2 => End::Silence,
            3 => End::Expired,
            4 => End::Internal,
            _ => End::Throttled,
        };
        self.when = if is_watch && world.chance(40) {
            When::At(Instant::now() + Duration::from_millis(world.below(60_000)))
        } else {
            let most = if is_watch { 20 } else { 1 };
            When::After { frames: world.below(most), within: world.chance(50) }
        };
        self
    }

    /// The next piece for the client.
    pub(super) async fn next(mut self) -> Option<(Piece, Self)> {
        let piece = self.piece().await?;
        Some((piece, self))
    }

    async fn piece(&mut self) -> Option<Piece> {
        loop {
            if self.over {
                return None;
            }
            if let Some(end) = self.ending {
                return self.finish(end).await;
            }
            if self.network.crashes.count() != self.crashes {
                self.crashed();
            } else if let Some(frame) = self.out.pop_front() {
                if let Some(piece) = self.send(frame).await {
                    return Some(Ok(http_body::Frame::data(piece)));
                }
            } else {
                self.receive().await;
            }
        }
    }

    /// Waits for what comes first: bytes of the server, its crash, or the appointed end.
    async fn receive(&mut self) {
        let at = match self.when {
            When::At(at) => Some(at),
            When::Never | When::After { .. } => None,
        };
        tokio::select! {
            // In the order of urgency, and always the same, so that a seed replays.
            biased;
            () = self.network.crashes.beyond(self.crashes) => self.crashed(),
            () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {
                self.when = When::Never;
                self.doom();
            }
            frame = self.body.frame() => match frame {
                Some(Ok(frame)) => if let Ok(bytes) = frame.into_data() { self.take(&bytes); },
                Some(Err(_)) => self.ending = Some(End::Reset),
                None => self.ending = Some(End::Close),
            },
        }
    }

    /// Takes bytes of the server, frame by frame.
    fn take(&mut self, bytes: &Bytes) {
        let rates = self.network.rates();
        let Some(format) = self.watch else {
            self.out.push_back(bytes.clone());
            if self.network.chance(rates.twice, "list twice") {
                self.out.push_back(bytes.clone());
            }
            return;
        };
        self.rest.extend_from_slice(bytes);
        while let Some(length) = frames::length(format, &self.rest) {
            let frame: Bytes = self.rest.drain(..length).collect::<Vec<u8>>().into();
            if frames::is_bookmark(&frame) && self.network.chance(rates.bookmark, "lost bookmark") {
                note!(self.network.sim.log, "#{} loses a bookmark", self.number);
                continue;
            }
            if self.network.chance(rates.twice, "frame twice") {
                note!(self.network.sim.log, "#{} repeats a frame", self.number);
                self.out.push_back(frame.clone());
            }
            self.out.push_back(frame);
        }
    }

    /// Sends a frame, or the part of it after which the connection ends.
    async fn send(&mut self, frame: Bytes) -> Option<Bytes> {
        if let When::After { frames, within } = self.when
            && frames <= self.sent
        {
            self.when = When::Never;
            if self.doom() {
                let cut = frame.len() / 2;
                return (within && cut > 0).then(|| frame.slice(..cut));
            }
        }
        if self.network.chance(self.network.rates().lag, "slow frame") {
            let lag = Duration::from_millis(self.network.world.below(2500));
            tokio::select! {
                // What is on its way when the server crashes never arrives.
                biased;
                () = self.network.crashes.beyond(self.crashes) => {
                    self.crashed();
                    return None;
                }
                () = sleep(lag) => {}
            }
        }
        self.sent += 1;
        Some(frame)
    }

    /// Ends the connection as its fate says, unless the network has become good meanwhile.
    fn doom(&mut self) -> bool {
        if !self.forced && !self.network.rates().any() {
            return false;
        }
        self.stop(self.end);
        true
    }

    fn crashed(&mut self) {
        self.crashes = self.network.crashes.count();
        let end = match self.network.world.below(3) {
            0 => End::Reset,
            1 => End::Close,
            _ => End::Silence,
        };
        self.stop(end);
    }

    fn stop(&mut self, end: End) {
        note!(self.network.sim.log, "#{} ends: {end:?}", self.number);
        self.network.sim.log.count(match end {
            End::Reset => "cut",
            End::Close => "closed",
            End::Silence => "half-open",
            End::Expired => "410 as event",
            End::Internal => "500 as event",
            End::Throttled => "429 as event",
        });
        self.out.clear();
        self.ending = Some(end);
    }

    async fn finish(&mut self, end: End) -> Option<Piece> {
        let status = match end {
            End::Reset => {
                self.over = true;
                return Some(Err(io::Error::from(io::ErrorKind::ConnectionReset).into()));
            }
            End::Close => return None,
            End::Silence => return future::pending().await,
            End::Expired => super::expired(),
            End::Internal => super::internal(),
            End::Throttled => super::throttled(),
        };
        self.over = true;
        let format = self.watch?;
        Some(Ok(http_body::Frame::data(frames::error(format, &status).into())))
    }
}
