//! One direction of one connection.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use super::frames::Frames;
use super::{Armed, Fault, Moment, Shared};

/// Bytes that are here at most. More stay with the sender.
const BUFFER: usize = 16 << 10;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Answer,
}

/// Why passing stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// An armed fault reached its moment here.
    Struck(Fault),
    /// What was to be said before the end has been said.
    Farewell,
    /// One of the sockets is broken.
    Broken,
}

/// What is under way in one direction. It outlives the futures that move it: a fault may hold bytes back for a while.
#[derive(Debug)]
pub(super) struct Flow {
    side: Side,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The sender has ended.
    ended: bool,
    passed: u64,
    /// The armed fault that is being waited for, and `passed` when it was armed.
    waiting: Option<(u64, u64)>,
    /// Bytes at a time, and the pause after them.
    pace: Option<(usize, Duration)>,
    frames: Option<Frames>,
    /// Frames of streams above this one are swallowed.
    last_stream: Option<u32>,
    farewell: Farewell,
}

/// Bytes of our own, to be said between two frames.
#[derive(Debug, Default)]
struct Farewell {
    bytes: Vec<u8>,
    said: usize,
    /// The connection ends behind them.
    then_end: bool,
}

impl Flow {
    pub(super) fn new(side: Side, frames: bool) -> Self {
        let frames = frames.then(|| match side {
            Side::Request => Frames::of_client(),
            Side::Answer => Frames::of_server(),
        });
        Self {
            side,
            buffer: vec![0; BUFFER].into(),
            start: 0,
            end: 0,
            ended: false,
            passed: 0,
            waiting: None,
            pace: None,
            frames,
            last_stream: None,
            farewell: Farewell::default(),
        }
    }

    pub(super) fn pace(&mut self, bytes: usize, every: Duration) {
        self.pace = Some((bytes.max(1), every));
    }

    /// Says this between two frames, and perhaps ends then.
    pub(super) fn say(&mut self, bytes: Vec<u8>, then_end: bool) {
        self.farewell = Farewell { bytes, said: 0, then_end };
    }

    /// Swallows from now on the frames of streams of which nothing was passed on, and gives the last one of which something
    /// was.
    pub(super) fn swallow_new_streams(&mut self) -> u32 {
        let last = self.frames.as_ref().map_or(0, Frames::highest);
        *self.last_stream.get_or_insert(last)
    }

    /// Passes bytes until the sender's end has been passed too. Cancel-safe: nothing is lost, and nothing passes twice.
    pub(super) async fn run(
        &mut self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        shared: &Shared,
    ) -> Result<(), Stop> {
        loop {
            self.bid_farewell(&mut to).await?;
            let Some((length, swallowed)) = self.piece() else {
                if self.ended {
                    // Twice does no harm.
                    return to.shutdown().await.map_err(|_| Stop::Broken);
                }
                self.fill(&mut from).await?;
                continue;
            };
            if swallowed {
                self.consume(length);
                continue;
            }
            let Some(allowed) = self.allowed(length as u64, shared)? else { continue };
            let pace = self.pace;
            let length = allowed.min(pace.map_or(length, |(bytes, _)| bytes));
            let bytes = &self.buffer[self.start..self.start + length];
            let written = to.write(bytes).await.map_err(|_| Stop::Broken)?;
            self.consume(written);
            self.passed += written as u64;
            if let Some((_, every)) = pace {
                tokio::time::sleep(every).await;
            }
        }
    }

    /// How many of the bytes that are here go together, and whether they go nowhere. `None` if more must come first.
    fn piece(&mut self) -> Option<(usize, bool)> {
        let bytes = &self.buffer[self.start..self.end];
        match &mut self.frames {
            _ if bytes.is_empty() => None,
            // The rest of a frame that will never be whole.
            Some(_) if self.ended => Some((bytes.len(), false)),
            Some(frames) => frames.piece(bytes, self.last_stream),
            None => Some((bytes.len(), false)),
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        if let Some(frames) = self.frames.as_mut().filter(|_| !self.ended) {
            frames.advance(bytes);
        }
    }

    /// How many of so many bytes may pass before the armed fault strikes. `None`: look again.
    fn allowed(&mut self, length: u64, shared: &Shared) -> Result<Option<usize>, Stop> {
        // The lock is gone before anything is claimed.
        let armed = shared.orders.borrow().armed;
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(Armed { id, fault, moment, .. }) = armed else { return Ok(Some(whole)) };
        let (side, bytes) = match moment {
            Moment::RequestBytes(bytes) => (Side::Request, bytes),
            Moment::AnswerBytes(bytes) => (Side::Answer, bytes),
        };
        if side != self.side {
            return Ok(Some(whole));
        }
        let from = match self.waiting {
            Some((waiting, from)) if waiting == id => from,
            _ => self.waiting.insert((id, self.passed)).1,
        };
        match (from + bytes).saturating_sub(self.passed) {
            0 if shared.claim(id) => Err(Stop::Struck(fault)),
            // Another connection was struck instead.
            0 => Ok(None),
            room => Ok(Some(usize::try_from(room.min(length)).unwrap_or(usize::MAX))),
        }
    }

    async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> Result<(), Stop> {
        // A frame's header may be here in part.
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let length = from.read(&mut self.buffer[self.end..]).await.map_err(|_| Stop::Broken)?;
        self.end += length;
        self.ended = length == 0;
        Ok(())
    }

    async fn bid_farewell(&mut self, to: &mut (impl AsyncWrite + Unpin)) -> Result<(), Stop> {
        let Farewell { bytes, said, then_end } = &mut self.farewell;
        let between = self.frames.as_ref().is_none_or(Frames::at_boundary);
        if bytes.is_empty() || !between {
            return Ok(());
        }
        while *said < bytes.len() {
            *said += to.write(&bytes[*said..]).await.map_err(|_| Stop::Broken)?;
        }
        let then_end = *then_end;
        self.farewell = Farewell::default();
        if then_end { Err(Stop::Farewell) } else { Ok(()) }
    }
}
