//! Opening a connection: name, TCP, TLS, HTTP.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper::rt::Executor as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use kubestrata_telemetry::Gauge;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::proxy::{Via, Wire};
use super::tasks::{Spawner, Tasks};
use super::{Http1, Http2, meters};
use crate::auth::Source;
use crate::config::{Config, Endpoint, Limits, Protocol, Timeouts};
use crate::error::{ConnectError, Phase};
use crate::tls::{Connector, Session, TlsError};

/// Silence after which the kernel probes a connection, and the pause between probes (Go's dialer: 30 s and 15 s).
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(15));
/// HTTP/2 flow control counts in 31 bits.
const WINDOW_MAX: u32 = (1 << 31) - 1;

#[derive(Debug)]
pub(super) struct Dialer {
    endpoint: Endpoint,
    /// The endpoint, and the proxy on the way to it: what errors name.
    shown: String,
    proxy: Option<Via>,
    tls: Option<Connector>,
    protocol: Protocol,
    timeouts: Timeouts,
    limits: Limits,
    tasks: Tasks,
    open: Gauge,
}

/// One connection, as long as it is open.
struct Open(Gauge);

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
    pub(super) fn new(config: &Config, source: Arc<Source>) -> Result<Self, TlsError> {
        let endpoint = config.endpoint();
        let proxy = config.proxy.as_ref().map(|proxy| Via::new(proxy, config)).transpose()?;
        let shown = match &config.proxy {
            None => endpoint.to_string(),
            Some(proxy) => format!("{endpoint} (through proxy {proxy})"),
        };
        let tls = if config.is_tls() {
            let tls = config.tls.clone();
            let period = config.timeouts.files;
            Some(Connector::new(tls, &endpoint.host, config.protocol, source, period)?)
        } else {
            None
        };
        Ok(Self {
            endpoint,
            shown,
            proxy,
            tls,
            protocol: config.protocol,
            timeouts: config.timeouts,
            limits: config.limits,
            tasks: Tasks::default(),
            open: meters::connections(config),
        })
    }

    /// Notices changed certificates; see [`Connector::refresh`].
    pub(super) async fn refresh(&self) {
        if let Some(connector) = &self.tls {
            connector.refresh().await;
        }
    }

    /// Cancel-safe: a dropped future leaves no connection behind.
    pub(super) async fn dial(&self) -> Result<Connected, ConnectError> {
        let (connect, tls) = (self.timeouts.connect, self.timeouts.tls);
        let stream = self.within(Phase::Connect, connect, self.reach()).await??;
        self.within(Phase::Tls, tls, self.secure(stream)).await?
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
        let host = &*to.host;
        let resolve = |source| ConnectError::Resolve { host: host.to_owned(), source };
        let addresses: Vec<SocketAddr> =
            tokio::net::lookup_host((host, to.port)).await.map_err(resolve)?.collect();
        let mut last = ConnectError::Tcp {
            address: to.to_string(),
            source: std::io::ErrorKind::AddrNotAvailable.into(),
        };
        // A dead address must leave time for the others.
        let share = self.timeouts.connect / u32::try_from(addresses.len().max(1)).unwrap_or(1);
        for address in addresses {
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    tune(&stream);
                    return Ok(stream);
                }
                Ok(Err(source)) => last = ConnectError::Tcp { address: to.to_string(), source },
                Err(_) => {
                    let (address, phase) = (to.to_string(), Phase::Connect);
                    last = ConnectError::Timeout { address, phase, limit: share };
                }
            }
        }
        Err(last)
    }

    async fn secure(&self, stream: Wire) -> Result<Connected, ConnectError> {
        let Some(connector) = &self.tls else {
            let http2 = self.protocol == Protocol::Http2;
            return self.speak(stream, http2, Session::plain()).await;
        };
        let (config, session) = connector.config().await?;
        let connecting = TlsConnector::from(config).connect(connector.name(), stream);
        let stream = connecting.await.map_err(|error| {
            ConnectError::handshake(self.shown.clone(), connector.refusal(&error), error)
        })?;
        let http2 = match stream.get_ref().1.alpn_protocol() {
            Some(protocol) => protocol == b"h2",
            None => self.protocol == Protocol::Http2,
        };
        self.speak(stream, http2, session).await
    }

    async fn speak<T>(
        &self,
        stream: T,
        http2: bool,
        session: Session,
    ) -> Result<Connected, ConnectError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let failed = |error: hyper::Error| ConnectError::Http {
            address: self.shown.clone(),
            source: error.into(),
        };
        let (io, spawner) = (TokioIo::new(stream), self.tasks.spawner());
        if http2 {
            let (sender, mut connection) =
                self.http2(spawner.clone()).handshake(io).await.map_err(failed)?;
            let streams_max = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
            let shared = Arc::clone(&streams_max);
            let open = Open::new(&self.open);
            spawner.execute(async move {
                let _open = open;
                let end = std::future::poll_fn(|cx| {
                    let end = Pin::new(&mut connection).poll(cx);
                    // Relaxed: see `Http2::streams_max`.
                    shared.store(connection.current_max_send_streams(), Ordering::Relaxed);
                    end
                });
                ended(end.await);
            });
            return Ok(Connected::Http2(Http2 { sender, streams_max, session }));
        }
        let (sender, connection) = http1::Builder::new()
            .max_header_size(usize::try_from(self.limits.header_bytes).unwrap_or(usize::MAX))
            .handshake(io)
            .await
            .map_err(failed)?;
        let open = Open::new(&self.open);
        spawner.execute(async move {
            let _open = open;
            ended(connection.await);
        });
        Ok(Connected::Http1(Http1 { sender, session }))
    }

    fn http2(&self, spawner: Spawner) -> http2::Builder<Spawner> {
        let window = self.limits.stream_window.clamp(1 << 16, WINDOW_MAX);
        // As many stream windows as there are streams: bytes of a watch that nobody reads stay in its own share.
        let streams = u32::try_from(self.limits.streams).unwrap_or(u32::MAX);
        let mut builder = http2::Builder::new(spawner);
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(window)
            .initial_connection_window_size(window.saturating_mul(streams).min(WINDOW_MAX))
            .max_header_list_size(self.limits.header_bytes)
            .keep_alive_interval(self.timeouts.ping_interval)
            .keep_alive_timeout(self.timeouts.ping_answer)
            .keep_alive_while_idle(true);
        builder
    }
}

/// A request waits for nothing but itself, and a dead peer is noticed. Neither is worth an error: a socket of a kind
/// that refuses works as well without.
fn tune(stream: &TcpStream) {
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE.0).with_interval(KEEP_ALIVE.1);
    let tuned = stream
        .set_nodelay(true)
        .and_then(|()| SockRef::from(stream).set_tcp_keepalive(&keep_alive));
    if let Err(error) = tuned {
        tracing::debug!(%error, "socket option refused");
    }
}

/// Whoever has a request on the connection gets the error there; here it is only told.
fn ended(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection ended");
    }
}
