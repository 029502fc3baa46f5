//! What the configurations of rustls are made of, read and built.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubestrata_api_types::{FOREVER, Timestamp};
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::Instant;

use super::certificate::Summary;
use super::connector::Session;
use super::explain::{Explaining, Refusal};
use super::pem::Contents;
use super::refused::Shown;
use super::verify::{Anything, ChainOrPinned};
use super::{Identity, Pem, Tls, TlsError, provider};
use crate::auth::Source;
use crate::blocking::Blocking;

/// How long until files that could not be used are read again: they are being replaced, most likely.
const BROKEN_PERIOD: Duration = Duration::from_secs(1);

/// Reads files and certificates, and makes a configuration of them. One at a time: else a slow look could put old contents
/// over new ones.
#[derive(Debug)]
pub(super) struct Loader {
    pub(super) tls: Tls,
    pub(super) protocols: Vec<Vec<u8>>,
    pub(super) source: Arc<Source>,
    pub(super) file_period: Duration,
    /// How long all files together may take to be read.
    pub(super) limit: Duration,
    pub(super) readings: Blocking,
    pub(super) refusal: Refusal,
    pub(super) state: Mutex<State>,
    /// Counts configurations. Release, paired with the Acquire of connections, which are not used again once theirs is
    /// not the last.
    pub(super) current: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    cached: Option<Cached>,
    /// When to look at files again.
    look: Option<Instant>,
    /// The plugin's certificates that have been seen.
    identities: u64,
}

/// A configuration.
#[derive(Debug)]
pub(super) struct Cached {
    /// What it was made of.
    of: Material,
    config: Arc<ClientConfig>,
    /// The client certificate in it.
    shown: Option<Arc<Shown>>,
}

/// The contents of all PEM sources.
#[derive(PartialEq, Eq)]
pub(super) struct Material {
    authority: Option<Contents>,
    identity: Option<(Contents, Contents)>,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Material")
    }
}

impl Loader {
    /// Whether there may be something to load that is not loaded yet. Who is told so has to load it; the others hear no more
    /// of files for a while.
    pub(super) fn is_due(&self) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        let due = state.look.is_some_and(|look| now >= look)
            || (state.cached.is_some() && state.identities != self.identities());
        if due {
            state.look = self.has_files().then(|| now + self.file_period);
        }
        due
    }

    /// The configuration that was loaded last.
    pub(super) fn last(&self) -> Option<(Arc<ClientConfig>, Session)> {
        let state = self.state.lock();
        let Cached { config, shown, .. } = state.cached.as_ref()?;
        let made = self.current.load(Ordering::Acquire);
        let session = Session::new(made, Arc::clone(&self.current), shown.clone());
        Some((Arc::clone(config), session))
    }

    fn has_files(&self) -> bool {
        let identity = self.tls.identity.as_ref();
        self.tls.authority.as_ref().is_some_and(Pem::is_file)
            || identity.is_some_and(|pair| pair.certificate.is_file() || pair.key.is_file())
    }

    fn identities(&self) -> u64 {
        if self.source.has_identities() { self.source.identities() } else { 0 }
    }

    /// Where files cannot be used, as while they are replaced one after the other, the last configuration is kept.
    pub(super) async fn load(&self) -> Result<(), TlsError> {
        // Before the certificate is fetched: one that comes in between is seen as new by the next.
        let identities = self.identities();
        let built = match self.read().await {
            Ok(material) => self.build_if_new(material),
            Err(error) => Err(error),
        };
        let now = Instant::now();
        let mut state = self.state.lock();
        state.identities = identities;
        state.look = self.has_files().then(|| now + self.file_period);
        match built {
            Ok(None) => Ok(()),
            Ok(Some(cached)) => {
                if state.cached.is_some() {
                    tracing::info!("certificates have changed; new connections use the new ones");
                    self.current.fetch_add(1, Ordering::Release);
                }
                state.cached = Some(cached);
                Ok(())
            }
            Err(error) if state.cached.is_some() => {
                tracing::warn!(error = %chain(&error), "the last certificates are kept");
                // A request waits for the reading, so one that hangs is not tried for each.
                if !hangs(&error) {
                    state.look = Some(now + BROKEN_PERIOD.min(self.file_period));
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn read(&self) -> Result<Material, TlsError> {
        let until = Instant::now() + self.limit.min(FOREVER);
        let read = async |pem: &Pem, what| {
            let text = tokio::time::timeout_at(until, pem.read(what, &self.readings)).await;
            text.unwrap_or_else(|_| Err(pem.hangs(what, self.limit)))
        };
        let authority = match &self.tls.authority {
            Some(pem) => Some(read(pem, "certificate authority").await?),
            None => None,
        };
        let identity = match self.tls.identity.clone().or_else(|| self.source.identity()) {
            Some(Identity { certificate, key }) => Some((
                read(&certificate, "client certificate").await?,
                read(&key, "client key").await?,
            )),
            None => None,
        };
        Ok(Material { authority, identity })
    }

    fn build_if_new(&self, material: Material) -> Result<Option<Cached>, TlsError> {
        if self.state.lock().cached.as_ref().is_some_and(|cached| cached.of == material) {
            return Ok(None);
        }
        let config = Arc::new(self.build(&material)?);
        let chain =
            material.identity.as_ref().map(|(chain, _)| chain.certificates()).transpose()?;
        let shown = chain.and_then(|chain| Some(Arc::new(Shown::of(chain.first()?))));
        Ok(Some(Cached { of: material, config, shown }))
    }

    fn build(&self, material: &Material) -> Result<ClientConfig, TlsError> {
        let provider = provider()?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Provider { problem: error.to_string() })?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(material, provider)?);
        let mut config = match &material.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificate.certificates()?;
                warn_if_expired(&chain);
                let key = PrivateKeyDer::from_pem_slice(key.bytes()).map_err(|_| key.not_pem())?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| TlsError::Identity { problem: error.to_string() })?
            }
        };
        config.alpn_protocols = self.protocols.clone();
        Ok(config)
    }

    fn verifier(
        &self,
        material: &Material,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        if self.tls.insecure {
            return Ok(Arc::new(Anything::new(provider)));
        }
        let (inner, trusted): (Arc<dyn ServerCertVerifier>, _) = match &material.authority {
            None => {
                let platform = rustls_platform_verifier::Verifier::new(provider)
                    .map_err(|error| TlsError::NoRoots { problem: error.to_string() })?;
                (Arc::new(platform), Vec::new())
            }
            Some(authority) => {
                let certificates = authority.certificates()?;
                (Arc::new(ChainOrPinned::new(certificates.clone(), provider)?), certificates)
            }
        };
        Ok(Arc::new(Explaining { inner, trusted, refusal: self.refusal.clone() }))
    }
}

/// Says that our own certificate is of no more use: the server's answer, 401, would not.
fn warn_if_expired(chain: &[CertificateDer<'_>]) {
    let Some(certificate) = chain.first() else { return };
    let Summary { subject, validity, .. } = Summary::of(certificate);
    let until =
        validity.and_then(|(_, until)| Timestamp::from_second(i64::try_from(until).ok()?).ok());
    if let Some(until) = until
        && until < Timestamp::now()
    {
        tracing::warn!(subject, %until, "the client certificate has expired");
    }
}

fn hangs(error: &TlsError) -> bool {
    matches!(error, TlsError::Read { source, .. } if source.kind() == std::io::ErrorKind::TimedOut)
}

/// The error and its causes in one line.
fn chain(error: &TlsError) -> String {
    let first: &dyn std::error::Error = error;
    let all = std::iter::successors(Some(first), |error| error.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
