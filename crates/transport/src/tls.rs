//! TLS: what is trusted, who we are, and the rustls configuration made of it.

mod pem;
mod validity;
mod verify;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

pub use self::pem::Pem;
use self::verify::{Anything, ChainOrPinned};
use crate::config::Protocol;

/// How the server is verified, and our client certificate. The default trusts what the platform trusts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Tls {
    /// Certificates to trust instead of the platform's: authorities, or the server's own certificate.
    pub authority: Option<Pem>,
    /// Our client certificate.
    pub identity: Option<Identity>,
    /// The name to expect in the server's certificate, if it is not the host of the URL.
    pub server_name: Option<String>,
    /// Trust anybody. Whoever can answer in the server's place can then read and change everything.
    pub insecure: bool,
}

impl Tls {
    /// Trusts these certificates, and no others.
    pub fn trust(authority: Pem) -> Self {
        Self { authority: Some(authority), ..Self::default() }
    }

    /// The same with a client certificate.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }
}

/// A client certificate chain and its key.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a pair of two fields")]
pub struct Identity {
    /// The chain, our own certificate first.
    pub certificate: Pem,
    /// The private key.
    pub key: Pem,
}

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{what} {} cannot be read", .path.display())]
    Read {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not the PEM that it should be.
    #[error("{what} ({from}) is not valid PEM, or has no such section")]
    Pem {
        /// What it should be.
        what: &'static str,
        /// File name, or `inline`.
        from: String,
    },
    /// No usable certificate of an authority.
    #[error("no certificate to trust: {problem}")]
    NoRoots {
        /// Why.
        problem: String,
    },
    /// Key and certificate do not fit, or are of a kind that is not supported.
    #[error("the client certificate cannot be used: {problem}")]
    Identity {
        /// Why.
        problem: String,
    },
    /// The host is neither a DNS name nor an IP address.
    #[error("{name:?} is no name that a certificate could have")]
    ServerName {
        /// The name.
        name: String,
    },
    /// The cryptography provider lacks something.
    #[error("TLS is not available: {problem}")]
    Provider {
        /// What.
        problem: String,
    },
}

/// Makes rustls configurations, and makes them anew when a file has changed.
#[derive(Debug)]
pub(crate) struct Connector {
    tls: Tls,
    name: ServerName<'static>,
    protocols: Vec<Vec<u8>>,
    cached: Mutex<Option<(Material, Arc<ClientConfig>)>>,
}

/// The contents of all PEM sources.
#[derive(PartialEq, Eq)]
struct Material {
    authority: Option<pem::Contents>,
    identity: Option<(pem::Contents, pem::Contents)>,
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Material")
    }
}

impl Connector {
    pub(crate) fn new(tls: Tls, host: &str, protocol: Protocol) -> Result<Self, TlsError> {
        let name = tls.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsError::ServerName { name: name.to_owned() })?;
        let offers: &[&[u8]] = match protocol {
            Protocol::Auto => &[b"h2", b"http/1.1"],
            Protocol::Http1 => &[b"http/1.1"],
            Protocol::Http2 => &[b"h2"],
        };
        let protocols = offers.iter().map(|offer| offer.to_vec()).collect();
        Ok(Self { tls, name, protocols, cached: Mutex::new(None) })
    }

    pub(crate) fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// The configuration for the next connection. Files are read each time, as connections are rare: a renewed
    /// authority or client certificate is used from the next connection on.
    pub(crate) async fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let authority = match &self.tls.authority {
            Some(pem) => Some(pem.read("certificate authority").await?),
            None => None,
        };
        let identity = match &self.tls.identity {
            Some(Identity { certificate, key }) => {
                Some((certificate.read("client certificate").await?, key.read("client key").await?))
            }
            None => None,
        };
        let material = Material { authority, identity };
        if let Some((of, config)) = &*self.cached.lock()
            && *of == material
        {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.build(&material)?);
        *self.cached.lock() = Some((material, Arc::clone(&config)));
        Ok(config)
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
        let Some(authority) = &material.authority else {
            return match rustls_platform_verifier::Verifier::new(provider) {
                Ok(verifier) => Ok(Arc::new(verifier)),
                Err(error) => Err(TlsError::NoRoots { problem: error.to_string() }),
            };
        };
        let certificates: Vec<CertificateDer<'static>> = authority.certificates()?;
        Ok(Arc::new(ChainOrPinned::new(certificates, provider)?))
    }
}

/// The provider is named here and handed to rustls: a process with two providers, or with none installed, works.
fn provider() -> Result<Arc<CryptoProvider>, TlsError> {
    #[cfg(feature = "ring")]
    {
        Ok(Arc::new(rustls::crypto::ring::default_provider()))
    }
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    {
        Ok(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
    }
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    {
        // Built without cryptography: what the program installed for the process.
        CryptoProvider::get_default().cloned().ok_or_else(|| TlsError::Provider {
            problem:
                "built without the features ring and aws-lc-rs, and the process has no default"
                    .into(),
        })
    }
}
