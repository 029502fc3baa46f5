//! Deadlines, sizes and counts.

use std::time::Duration;

/// Deadlines. Every wait on the network has one, each for one phase, so that an error tells which phase hung; and beside
/// them stands one for all phases together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Timeouts {
    /// The whole of a request, from the call to the last byte of its answer: credentials, retries and their waits
    /// included. Of a watch, all that is before its first event. Default 3 min: the two minutes in which retries begin
    /// ([`Retry::total`](crate::Retry::total)), and the one that the last of them may take.
    pub request: Duration,
    /// The whole of a list, in the same way, but only the time that it waits for the server: a reader may be slow, and
    /// what it does between two items is its own time. Default 10 min.
    pub list: Duration,
    /// For a free place on a connection, when all are busy. While another is being opened, as long as that may take beside.
    /// Default 30 s.
    pub wait: Duration,
    /// For resolving the name and opening a TCP connection, with the tunnel through a proxy. Default 30 s (client-go's
    /// dialer).
    pub connect: Duration,
    /// How long an address of the server's name may take before the next is tried beside it (RFC 8305, 5). Default
    /// 300 ms (Go: `FallbackDelay`).
    pub next_address: Duration,
    /// For the TLS handshake. Default 10 s (client-go).
    pub tls: Duration,
    /// From sending a request, with its body, to the head of its answer, watches excepted. Default 60 s: kube-apiserver gives itself
    /// as much (`--request-timeout`).
    pub answer: Duration,
    /// The same for a watch, whose head comes before any event. Default 30 s.
    pub watch_answer: Duration,
    /// For the next piece of a body, from when it is waited for, watches excepted. Default 30 s.
    pub body: Duration,
    /// How long after the end that a watch asked for (`WatchOptions::timeout`) the server may take to close it.
    /// Default 30 s.
    pub watch_margin: Duration,
    /// How long a watch that asked for no end may live. Default 1 h 1 min: kube-apiserver closes watches after 30 to
    /// 60 minutes.
    pub watch_life: Duration,
    /// HTTP/2: how long a connection may be silent before it is pinged. Default 30 s (Go: `ReadIdleTimeout`). Zero for no
    /// pings.
    pub ping_interval: Duration,
    /// HTTP/2: how long the answer to a ping may take before the connection is given up. Default 15 s (Go: `PingTimeout`).
    pub ping_answer: Duration,
    /// How long what was read from files of tokens and certificates is believed. Default 60 s (client-go: one minute for
    /// tokens, five for certificates).
    pub files: Duration,
    /// How long the reading of a token file is waited for; it may be on a network disk. Default 10 s (client-go: as long as
    /// it takes). For certificates it is half of [`Timeouts::tls`].
    pub token_file: Duration,
    /// How long a credential plugin may run before it is killed; some ask a cloud over the network. Default 60 s.
    pub exec: Duration,
    /// How long an HTTP/1.1 connection is kept without use. Default 90 s (Go: `IdleConnTimeout`). At least 100 ms, within
    /// which one that was opened is taken.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            request: seconds(180),
            list: seconds(600),
            wait: seconds(30),
            connect: seconds(30),
            next_address: Duration::from_millis(300),
            tls: seconds(10),
            answer: seconds(60),
            watch_answer: seconds(30),
            body: seconds(30),
            watch_margin: seconds(30),
            watch_life: seconds(3660),
            ping_interval: seconds(30),
            ping_answer: seconds(15),
            files: seconds(60),
            token_file: seconds(10),
            exec: seconds(60),
            idle: seconds(90),
        }
    }
}

/// Sizes and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Limits {
    /// HTTP/2: requests at a time on one connection; fewer if the server says so. Default 90: kube-apiserver allows
    /// 100, and a request over that limit would wait behind watches that last for minutes.
    pub streams: usize,
    /// HTTP/2 connections for requests, and as many for watches. Default 16. Beside them are those that get no new requests,
    /// because the server said farewell or a certificate has changed, until what is under way on them has ended.
    pub http2_connections: usize,
    /// HTTP/1.1 connections for requests. Default 64.
    pub http1_connections: usize,
    /// HTTP/1.1 connections for watches, each of which carries one. Default 1024.
    pub http1_watches: usize,
    /// HTTP/2: bytes that the server may send ahead on one stream. Default 2 MiB. A connection gets as much for each of
    /// its streams, so that a watch that nobody reads does not stop the others; less, down to 64 KiB, where all of them
    /// together would be more than the 2 GiB that a connection can have.
    pub stream_window: u32,
    /// Addresses of the server's name that are tried, in the order of the resolver. Default 16.
    pub addresses: usize,
    /// Largest body of a unary answer, in bytes, after decompression. Default 64 MiB.
    pub body_bytes: usize,
    /// How much of the body of a failure is read for its `Status`, in bytes. Default 1 MiB.
    pub error_bytes: usize,
    /// Largest head of an answer, in bytes. Default 64 KiB. Over HTTP/1.1 it has no more than 512 headers either.
    pub header_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: 90,
            http2_connections: 16,
            http1_connections: 64,
            http1_watches: 1024,
            stream_window: 2 << 20,
            addresses: 16,
            body_bytes: 64 << 20,
            error_bytes: 1 << 20,
            header_bytes: 64 << 10,
        }
    }
}
