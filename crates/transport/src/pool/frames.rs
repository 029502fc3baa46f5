//! What the peer of an HTTP/2 connection says of the connection itself, read from the bytes as they pass.
//!
//! hyper keeps to the peer's settings and obeys its farewell, but tells of neither until the next request comes to it; and
//! then that request is on this connection already, where it waits behind watches that last for an hour. So the frames
//! are looked at here: the kind of each, and the contents of SETTINGS.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::dial::Open;
use crate::tls::alert;

#[cfg(test)]
mod tests;

/// Length, kind, flags, and the number of a stream (RFC 9113, 4.1).
const HEAD_BYTES: usize = 9;
/// Number and value (RFC 9113, 6.5.1).
const SETTING_BYTES: usize = 6;
const SETTINGS: u8 = 0x4;
const GOAWAY: u8 = 0x7;
const ACK: u8 = 0x1;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;

/// What the peer allows.
#[derive(Debug)]
pub(super) struct Peer {
    /// Requests at a time. Relaxed, as `gone`: each is a word on its own, and what comes too late for a request is made good
    /// by the peer, which refuses the stream unseen.
    streams_max: AtomicUsize,
    /// It takes no new requests.
    gone: AtomicBool,
    /// Its first settings have come: told once, to the one who opened the connection.
    settled: Notify,
    /// Those who wait for a place, which may be elsewhere now.
    changed: Arc<Notify>,
    /// The TLS alert that ended the connection: h2 keeps no more of an error than its text.
    alert: OnceLock<AlertDescription>,
    opened: Instant,
    /// When bytes came last, in milliseconds since it was opened. Relaxed, too.
    heard: AtomicU64,
}

impl Peer {
    pub(super) fn new(changed: Arc<Notify>) -> Self {
        Self {
            // RFC 9113, 6.5.2: no limit until it names one.
            streams_max: AtomicUsize::new(usize::MAX),
            gone: AtomicBool::new(false),
            settled: Notify::new(),
            changed,
            alert: OnceLock::new(),
            opened: Instant::now(),
            heard: AtomicU64::new(0),
        }
    }

    /// For how long nothing has come.
    pub(super) fn silence(&self) -> Duration {
        let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(heard)
    }

    fn hear(&self) {
        let heard = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(heard, Ordering::Relaxed);
    }

    /// Sends nothing new from now on.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    pub(super) fn alert(&self) -> Option<AlertDescription> {
        self.alert.get().copied()
    }

    pub(super) fn streams_max(&self) -> usize {
        self.streams_max.load(Ordering::Relaxed)
    }

    /// Whether nothing new should be sent.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Waits for the first settings. Cancel-safe; to be called by one.
    pub(super) async fn settled(&self) {
        self.settled.notified().await;
    }
}

/// The bytes from and to the peer.
pub(super) struct Frames<T> {
    inner: T,
    parser: Parser,
    peer: Arc<Peer>,
    /// The connection is open for as long as this is there: requests under way outlive the last sender.
    _open: Open,
}

impl<T> Frames<T> {
    pub(super) fn new(inner: T, peer: Arc<Peer>, open: Open) -> Self {
        Self { inner, parser: Parser::default(), peer, _open: open }
    }
}

/// Where in the stream of frames we are.
#[derive(Debug, Default)]
struct Parser {
    /// The head of a frame, or one setting, as far as it has come.
    piece: [u8; HEAD_BYTES],
    have: usize,
    /// Bytes of the current frame's payload that are still to come.
    left: usize,
    /// Whether those are settings.
    settings: bool,
}

impl Parser {
    fn feed(&mut self, mut bytes: &[u8], peer: &Peer) {
        while !bytes.is_empty() {
            if self.left == 0 {
                if self.collect(&mut bytes, HEAD_BYTES) {
                    self.head(peer);
                }
            } else if self.settings {
                let (before, want) = (bytes.len(), SETTING_BYTES.min(self.have + self.left));
                let whole = self.collect(&mut bytes, want);
                self.left -= before - bytes.len();
                if whole && want == SETTING_BYTES {
                    self.setting(peer);
                }
                if self.left == 0 {
                    told(peer);
                }
            } else {
                let skipped = bytes.len().min(self.left);
                bytes = &bytes[skipped..];
                self.left -= skipped;
            }
        }
    }

    /// Takes bytes until there are `want`; whether there are.
    fn collect(&mut self, bytes: &mut &[u8], want: usize) -> bool {
        let more = bytes.len().min(want - self.have);
        let (taken, rest) = bytes.split_at(more);
        self.piece[self.have..self.have + more].copy_from_slice(taken);
        *bytes = rest;
        self.have += more;
        let whole = self.have == want;
        if whole {
            self.have = 0;
        }
        whole
    }

    fn head(&mut self, peer: &Peer) {
        let [a, b, c, kind, flags, ..] = self.piece;
        self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.settings = kind == SETTINGS && flags & ACK == 0;
        match kind {
            SETTINGS if self.settings && self.left == 0 => told(peer),
            GOAWAY => peer.leave(),
            _ => {}
        }
    }

    fn setting(&mut self, peer: &Peer) {
        let [a, b, c, d, e, f, ..] = self.piece;
        if u16::from_be_bytes([a, b]) == MAX_CONCURRENT_STREAMS {
            let most = u32::from_be_bytes([c, d, e, f]);
            peer.streams_max.store(usize::try_from(most).unwrap_or(usize::MAX), Ordering::Relaxed);
        }
    }
}

/// All settings of a frame were read.
fn told(peer: &Peer) {
    peer.settled.notify_one();
    peer.changed.notify_waiters();
}

impl<T: AsyncRead + Unpin> AsyncRead for Frames<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if let Err(error) = std::task::ready!(Pin::new(&mut this.inner).poll_read(cx, buffer)) {
            if let Some(alert) = alert(&error) {
                // There is but one: nothing comes after it.
                let _ = this.peer.alert.set(alert);
            }
            return Poll::Ready(Err(error));
        }
        this.peer.hear();
        this.parser.feed(&buffer.filled()[before..], &this.peer);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Frames<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
