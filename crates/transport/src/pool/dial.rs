//! Opening a connection: name, TCP, TLS, HTTP.

use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper::rt::Executor as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use kubestrata_api_types::{BoxError, FOREVER};
use kubestrata_telemetry::{Gauge, Histogram};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::crew::{Crew, Run};
use super::frames::{Frames, Peer};
use super::proxy::{Via, Wire};
use super::{Http1, Http2, address, meters};
use crate::auth::Source;
use crate::config::{Config, Endpoint, Limits, Protocol, Resolver, Timeouts};
use crate::error::{ConnectError, Phase};
use crate::tasks::Spawner;
use crate::tls::{Connector, Session, TlsError, about_ours, refusal};

/// Silence after which the kernel probes a connection, the pause between probes, and how many may go unanswered: as with
/// pings, a dead peer is noticed within 45 s (Go's dialer probes nine times, every 15 s).
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(5), 3);
/// How long what we have sent may go without a sign that it arrived: probes are for silence, and there are none while bytes
/// are on their way, which the kernel would repeat for a quarter of an hour.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(45);
/// How long an HTTP/1.1 connection that nobody wants any more may take to close. What a server does not read, as the body of
/// a request that was given up, would else be sent to it whenever it does.
const CLOSE: Duration = Duration::from_secs(1);
/// Headers of an answer over HTTP/1.1; hyper takes 100. kube-apiserver sends each warning as one, 4,096 characters in all.
const HEADERS_MAX: usize = 512;
/// HTTP/2 flow control counts in 31 bits.
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// What each stream has before anybody asks for more (RFC 9113, 6.9.2), and one.
const WINDOW_MIN: u32 = 1 << 16;

#[derive(Debug)]
pub(super) struct Dialer {
    endpoint: Endpoint,
    /// The endpoint, and the proxy on the way to it: what errors name.
    shown: String,
    proxy: Option<Via>,
    tls: Option<Arc<Connector>>,
    protocol: Protocol,
    resolver: Resolver,
    timeouts: Timeouts,
    limits: Limits,
    spawner: Spawner,
    open: Gauge,
    /// How long names take, if that is measured.
    resolving: Histogram,
}

/// One connection, as long as it is open.
pub(super) struct Open(Gauge);

impl Open {
    fn new(gauge: &Gauge) -> Self {
        gauge.add(1.0);
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}

/// An open connection, driven by a task.
pub(super) enum Connected {
    Http1(Http1),
    Http2(Http2),
}

impl Dialer {
    pub(super) fn new(
        config: &Config,
        source: Arc<Source>,
        spawner: Spawner,
    ) -> Result<Self, TlsError> {
        let endpoint = config.endpoint();
        let proxy = config.proxy.as_ref().map(|proxy| Via::new(proxy, config)).transpose()?;
        let shown = match &config.proxy {
            None => endpoint.to_string(),
            Some(proxy) => format!("{endpoint} (through proxy {proxy})"),
        };
        let tls = if config.is_tls() {
            let tls = config.tls.clone();
            let timeouts = &config.timeouts;
            Some(Arc::new(Connector::new(tls, &endpoint.host, config.protocol, source, timeouts)?))
        } else {
            None
        };
        Ok(Self {
            endpoint,
            shown,
            proxy,
            tls,
            protocol: config.protocol,
            resolver: config.resolver.clone(),
            timeouts: config.timeouts,
            limits: config.limits,
            spawner,
            open: meters::connections(config),
            resolving: meters::resolving(config),
        })
    }

    /// Notices changed certificates; see [`Connector::refresh`].
    pub(super) async fn refresh(&self) {
        if let Some(connector) = &self.tls {
            connector.refresh().await;
        }
    }

    /// Tells each phase as it begins, and later, by `changed`, that the connection takes more requests, or no more.
    ///
    /// Cancel-safe: a dropped future leaves no connection behind.
    pub(super) async fn dial(
        &self,
        changed: &Arc<Notify>,
        tell: impl Fn(Phase),
    ) -> Result<Connected, ConnectError> {
        let (connect, tls) = (self.timeouts.connect, self.timeouts.tls);
        tell(Phase::Connect);
        let stream = self.within(Phase::Connect, connect, self.reach()).await??;
        tell(Phase::Tls);
        self.within(Phase::Tls, tls, self.secure(stream, changed)).await?
    }

    async fn within<T>(
        &self,
        phase: Phase,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, ConnectError> {
        tokio::time::timeout(limit, future).await.map_err(|_| ConnectError::Timeout {
            address: self.shown.clone(),
            phase,
            limit,
        })
    }

    async fn reach(&self) -> Result<Wire, ConnectError> {
        match &self.proxy {
            None => self.tcp(&self.endpoint).await.map(Wire::Tcp),
            Some(via) => {
                let unreachable = |source| via.unreachable(source);
                let stream = self.tcp(via.endpoint()).await.map_err(unreachable)?;
                let secure = self.within(Phase::Tls, self.timeouts.tls, via.secure(stream));
                let stream = secure.await.flatten().map_err(unreachable)?;
                via.tunnel(stream, &self.endpoint).await
            }
        }
    }

    async fn tcp(&self, to: &Endpoint) -> Result<TcpStream, ConnectError> {
        let (host, most) = (&*to.host, self.limits.addresses.max(1));
        let started = Instant::now();
        let addresses = self.resolver.resolve(host, to.port, most).await;
        self.resolving.observe(started.elapsed().as_secs_f64());
        let addresses =
            addresses.map_err(|source| ConnectError::Resolve { host: host.to_owned(), source })?;
        let stream =
            address::first(addresses, self.timeouts.next_address, TcpStream::connect).await;
        let stream =
            stream.map_err(|source| ConnectError::Tcp { address: to.to_string(), source })?;
        tune(&stream);
        Ok(stream)
    }

    async fn secure(&self, stream: Wire, changed: &Arc<Notify>) -> Result<Connected, ConnectError> {
        let Some(connector) = &self.tls else {
            return if self.protocol == Protocol::Http2 {
                self.speak_http2(stream, Session::plain(), changed).await
            } else {
                self.speak_http1(stream, Session::plain()).await
            };
        };
        let (config, session) = connector.config().await?;
        let connecting = TlsConnector::from(config).connect(connector.name(), stream);
        let stream = connecting.await.map_err(|error| {
            let problem = connector.refusal(&error);
            ConnectError::handshake(self.shown.clone(), problem, session.shown(), error)
        })?;
        let http2 = match stream.get_ref().1.alpn_protocol() {
            Some(protocol) => protocol == b"h2",
            None => self.protocol == Protocol::Http2,
        };
        if http2 {
            self.speak_http2(stream, session, changed).await
        } else {
            self.speak_http1(stream, session).await
        }
    }

    /// Begins HTTP/2, up to the server's settings: before them nobody knows how many requests it takes, and a server that
    /// does not speak HTTP/2 after all is known before any request is sent.
    async fn speak_http2<T>(
        &self,
        stream: T,
        session: Session,
        changed: &Arc<Notify>,
    ) -> Result<Connected, ConnectError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let peer = Arc::new(Peer::new(Arc::clone(changed)));
        let frames = Frames::new(stream, Arc::clone(&peer), Open::new(&self.open));
        let (crew, run) = Run::new();
        let handshake = self.http2(crew).handshake(TokioIo::new(frames));
        let (sender, connection) = handshake.await.map_err(|error| self.no_http(error))?;
        let (end, early_end) = oneshot::channel();
        self.spawner.execute(run.led_by(async move {
            let result = connection.await;
            // Sent in vain once the settings have come: then nobody waits for it.
            if let Err(Err(error)) = end.send(result) {
                ended(&error);
            }
        }));
        tokio::select! {
            // Settings first: a server that says all and goes has said all.
            biased;
            () = peer.settled() => {
                let answered = Arc::default();
                Ok(Connected::Http2(Http2 { sender, peer, session, answered }))
            }
            end = early_end => {
                let source: BoxError = match end {
                    Ok(Err(error)) => error.into(),
                    Ok(Ok(())) | Err(_) => "it ended before it began".into(),
                };
                let refusal = peer.alert().and_then(|alert| about_ours(alert, session.shown()));
                let Some(refusal) = refusal else { return Err(self.no_http(source)) };
                let address = self.shown.clone();
                Err(ConnectError::ClientCertificate { address, refusal, source })
            }
        }
    }

    async fn speak_http1<T>(&self, stream: T, session: Session) -> Result<Connected, ConnectError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::Builder::new()
            .max_header_size(usize::try_from(self.limits.header_bytes).unwrap_or(usize::MAX))
            .max_headers(HEADERS_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.no_http(error))?;
        let open = Open::new(&self.open);
        let (in_use, unused) = oneshot::channel();
        self.spawner.execute(async move {
            let _open = open;
            tokio::pin!(connection);
            let end = tokio::select! {
                // The connection first: one that has ended needs no grace.
                biased;
                end = &mut connection => Some(end),
                _ = unused => tokio::time::timeout(CLOSE, connection).await.ok(),
            };
            if let Some(Err(error)) = end {
                ended(&error);
            }
        });
        Ok(Connected::Http1(Http1 { sender, session, answered: false, _in_use: in_use }))
    }

    /// The error of a connection, if it ended because the server refused our certificate; else what it was.
    pub(super) fn not_let_in(
        &self,
        source: BoxError,
        session: &Session,
    ) -> Result<ConnectError, BoxError> {
        let address = self.shown.clone();
        match refusal(&*source, session.shown()) {
            Some(refusal) => Ok(ConnectError::ClientCertificate { address, refusal, source }),
            None => Err(source),
        }
    }

    /// Why there is no connection if the task that opens it ends before it has an outcome.
    pub(super) fn ended_early(&self) -> ConnectError {
        ConnectError::EndedEarly { address: self.shown.clone() }
    }

    pub(super) fn no_http(&self, error: impl Into<BoxError>) -> ConnectError {
        ConnectError::Http { address: self.shown.clone(), source: error.into() }
    }

    fn http2(&self, crew: Crew) -> http2::Builder<Crew> {
        // As many stream windows as there are streams: bytes of a watch that nobody reads stay in its own share. Where that is
        // more than a connection can have, the shares are smaller.
        let streams = u32::try_from(self.limits.streams.max(1)).unwrap_or(u32::MAX);
        let window = self.limits.stream_window.min(WINDOW_MAX / streams).max(WINDOW_MIN);
        let Timeouts { ping_interval, ping_answer, .. } = self.timeouts;
        let mut builder = http2::Builder::new(crew);
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(window)
            .initial_connection_window_size(window.saturating_mul(streams).min(WINDOW_MAX))
            .max_header_list_size(self.limits.header_bytes)
            .keep_alive_interval(
                Some(ping_interval.min(FOREVER)).filter(|period| !period.is_zero()),
            )
            .keep_alive_timeout(ping_answer.min(FOREVER))
            .keep_alive_while_idle(true);
        builder
    }
}

/// A request waits for nothing but itself, and a dead peer is noticed. Neither is worth an error: a socket of a kind
/// that refuses works as well without.
fn tune(stream: &TcpStream) {
    let (time, interval, retries) = KEEP_ALIVE;
    let keep_alive =
        TcpKeepalive::new().with_time(time).with_interval(interval).with_retries(retries);
    let tuned = stream
        .set_nodelay(true)
        .and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keep_alive));
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let tuned =
        tuned.and_then(|()| SockRef::from(stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED)));
    if let Err(error) = tuned {
        tracing::debug!(%error, "socket option refused");
    }
}

/// Whoever has a request on the connection gets the error there; here it is only told.
fn ended(error: &hyper::Error) {
    tracing::debug!(%error, "connection ended");
}

#[cfg(test)]
mod tests;
