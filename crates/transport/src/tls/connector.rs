//! The rustls configuration of the next connection, and whether it still is that of the last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;

use super::explain::{CertificateProblem, Refusal};
use super::loader::{Loader, State};
use super::refused::Shown;
use super::{Tls, TlsError};
use crate::auth::Source;
use crate::blocking::Blocking;
use crate::config::{Protocol, Timeouts};
use crate::errand::Errand;

/// Makes rustls configurations, and makes them anew when a file or the certificate of a plugin has changed.
#[derive(Debug)]
pub(crate) struct Connector {
    name: ServerName<'static>,
    loader: Arc<Loader>,
    /// Not a part of the loader, which it holds: dropped, it ends the reading of files.
    loading: Errand<Result<(), TlsError>>,
}

/// Which configuration a connection was made with, and whether it is still the one to use.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    made: u64,
    current: Arc<AtomicU64>,
    shown: Option<Arc<Shown>>,
}

impl Session {
    pub(super) fn new(made: u64, current: Arc<AtomicU64>, shown: Option<Arc<Shown>>) -> Self {
        Self { made, current, shown }
    }

    /// For a connection without TLS: nothing can replace it.
    pub(crate) fn plain() -> Self {
        Self { made: 0, current: Arc::default(), shown: None }
    }

    /// The certificate that the connection shows.
    pub(crate) fn shown(&self) -> Option<&Shown> {
        self.shown.as_deref()
    }

    /// Whether files or certificates have changed since. What is under way goes on; nothing new should begin.
    pub(crate) fn is_outdated(&self) -> bool {
        self.current.load(Ordering::Acquire) != self.made
    }
}

impl Connector {
    pub(crate) fn new(
        tls: Tls,
        host: &str,
        protocol: Protocol,
        source: Arc<Source>,
        timeouts: &Timeouts,
    ) -> Result<Self, TlsError> {
        let name = tls.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsError::ServerName { name: name.to_owned() })?;
        let offers: &[&[u8]] = match protocol {
            Protocol::Auto => &[b"h2", b"http/1.1"],
            Protocol::Http1 => &[b"http/1.1"],
            Protocol::Http2 => &[b"h2"],
        };
        let protocols = offers.iter().map(|offer| offer.to_vec()).collect();
        if tls.insecure {
            tracing::warn!(
                host,
                "the server's certificate is not verified (insecure-skip-tls-verify): whoever answers in its place can \
                 read and change everything"
            );
        }
        let loader = Arc::new(Loader {
            tls,
            protocols,
            source,
            file_period: timeouts.files,
            // Half of the time for the whole handshake, which begins with them.
            limit: timeouts.tls / 2,
            readings: Blocking::default(),
            refusal: Refusal::default(),
            state: Mutex::new(State::default()),
            current: Arc::default(),
        });
        Ok(Self { name, loader, loading: Errand::default() })
    }

    pub(crate) fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// What was wrong with the server's certificate, if `error`, of a handshake of this connector, says so.
    pub(crate) fn refusal(&self, error: &std::io::Error) -> Option<CertificateProblem> {
        self.loader.refusal.of(error)
    }

    /// The configuration for the next connection. Files are read each time, as connections are rare.
    ///
    /// Where they cannot be used, as while they are replaced one after the other, or are not read within half of
    /// `Timeouts::tls`, the last configuration is. Cancel-safe.
    pub(crate) async fn config(&self) -> Result<(Arc<ClientConfig>, Session), TlsError> {
        self.load().await?;
        let unavailable = || TlsError::Provider { problem: "nothing was loaded".to_owned() };
        self.loader.last().ok_or_else(unavailable)
    }

    /// Notices what has changed since the last connection was made, so that requests leave connections that show an old
    /// certificate. Cheap, but once a minute (`Timeouts::files`), when it reads the files. Cancel-safe.
    pub(crate) async fn refresh(&self) {
        // Twice: what came while files were being read for somebody else may not be among what was read.
        for _ in 0..2 {
            if !self.loader.is_due() {
                return;
            }
            if let Err(error) = self.load().await {
                // Cannot be, as there is a configuration to keep; and if so, the next connection tells.
                tracing::warn!(%error, "TLS cannot be set up");
            }
        }
    }

    async fn load(&self) -> Result<(), TlsError> {
        let loader = Arc::clone(&self.loader);
        let loaded = self.loading.run(|| async move { loader.load().await }).await;
        loaded.unwrap_or_else(|| {
            Err(TlsError::Provider { problem: "loading ended early".to_owned() })
        })
    }
}
