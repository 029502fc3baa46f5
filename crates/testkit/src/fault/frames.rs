//! Where frames of HTTP/2 begin and end (RFC 9113, 4.1), and nothing of what is in them.

/// Length, type, flags, stream.
const HEADER: usize = 9;
/// What a client sends before its first frame (RFC 9113, 3.4).
const PREFACE: usize = 24;
const GOAWAY: u8 = 7;

/// The place in one direction of a connection.
#[derive(Debug)]
pub(super) struct Frames {
    /// Bytes of the current frame, its header included; of the preface before the first one.
    size: usize,
    /// Those that have not been consumed.
    left: usize,
    stream: u32,
    /// The current frame is swallowed.
    swallowed: bool,
    /// The highest stream of which anything was passed on.
    highest: u32,
}

impl Frames {
    /// From the client to the server, which begins with a preface.
    pub(super) fn of_client() -> Self {
        Self { size: PREFACE, left: PREFACE, stream: 0, swallowed: false, highest: 0 }
    }

    /// From the server to the client.
    pub(super) fn of_server() -> Self {
        Self { size: 0, left: 0, stream: 0, swallowed: false, highest: 0 }
    }

    /// Whether a frame of our own can stand here.
    pub(super) fn at_boundary(&self) -> bool {
        self.left == 0 || self.left == self.size
    }

    /// The highest stream of which anything was passed on.
    pub(super) fn highest(&self) -> u32 {
        self.highest
    }

    /// How many of these bytes, which come next, belong to one frame, and whether that is to be swallowed, as those of
    /// streams above `last` are. `None` if more bytes are needed to say it.
    pub(super) fn piece(&mut self, bytes: &[u8], last: Option<u32>) -> Option<(usize, bool)> {
        if self.left == 0 {
            let header = bytes.first_chunk::<HEADER>()?;
            let [a, b, c, _kind, _flags, stream @ ..] = *header;
            self.size = HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
            self.left = self.size;
            // The highest bit is reserved.
            self.stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
        }
        if self.left == self.size {
            self.swallowed = last.is_some_and(|last| self.stream > last);
        }
        Some((self.left.min(bytes.len()), self.swallowed))
    }

    /// So many bytes of the current frame were consumed.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.left -= bytes;
        if !self.swallowed {
            self.highest = self.highest.max(self.stream);
        }
    }
}

/// A GOAWAY frame (RFC 9113, 6.8).
pub(super) fn go_away(last_stream: u32, code: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, GOAWAY, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last_stream.to_be_bytes());
    frame.extend_from_slice(&code.to_be_bytes());
    frame
}
