//! The way through a proxy.

mod connect;
mod socks;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::auth::{Auth, Source};
use crate::config::{Config, Endpoint, Protocol, Proxy, ProxyScheme};
use crate::error::ConnectError;
use crate::tls::{Connector, TlsError};

/// A proxy, and how it is verified.
#[derive(Debug)]
pub(super) struct Via {
    proxy: Proxy,
    tls: Option<Connector>,
}

impl Via {
    pub(super) fn new(proxy: &Proxy, config: &Config) -> Result<Self, TlsError> {
        let tls = if proxy.scheme() == ProxyScheme::Https {
            let timeouts = &config.timeouts;
            let nobody = Arc::new(Source::new(Auth::none(), timeouts, &config.metrics));
            let (tls, host) = (proxy.tls_for(&config.tls), &proxy.endpoint().host);
            Some(Connector::new(tls, host, Protocol::Http1, nobody, timeouts)?)
        } else {
            None
        };
        Ok(Self { proxy: proxy.clone(), tls })
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        self.proxy.endpoint()
    }

    pub(super) fn unreachable(&self, source: ConnectError) -> ConnectError {
        ConnectError::ProxyUnreachable { proxy: self.proxy.to_string(), source: Box::new(source) }
    }

    /// TLS with the proxy itself, where it wants that.
    pub(super) async fn secure(&self, stream: TcpStream) -> Result<Wire, ConnectError> {
        let Some(connector) = &self.tls else { return Ok(Wire::Tcp(stream)) };
        let (config, session) = connector.config().await?;
        let stream = TlsConnector::from(config).connect(connector.name(), stream).await;
        stream.map(|stream| Wire::Tls(Box::new(stream))).map_err(|error| {
            let address = self.proxy.endpoint().to_string();
            ConnectError::handshake(address, connector.refusal(&error), session.shown(), error)
        })
    }

    /// Asks for a tunnel to `target`.
    pub(super) async fn tunnel(
        &self,
        mut stream: Wire,
        target: &Endpoint,
    ) -> Result<Wire, ConnectError> {
        let credentials = self.proxy.credentials();
        let opened = match self.proxy.scheme() {
            ProxyScheme::Http | ProxyScheme::Https => {
                connect::open(&mut stream, credentials, target).await
            }
            ProxyScheme::Socks5 => socks::open(&mut stream, credentials, target).await,
        };
        let refused = |problem| ConnectError::Proxy { proxy: self.proxy.to_string(), problem };
        opened.map(|()| stream).map_err(refused)
    }
}

/// What bytes to and from the server go over, below any TLS with it.
pub(super) enum Wire {
    Tcp(TcpStream),
    /// TLS with a proxy.
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
