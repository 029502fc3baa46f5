//! TLS: what is trusted, who we are, and the rustls configuration made of it.

mod certificate;
mod connector;
mod explain;
mod loader;
mod pem;
mod refused;
mod verify;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kubestrata_api_types::Timestamp;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

pub(crate) use self::connector::{Connector, Session};
pub use self::explain::{CertificateProblem, CertificateProblemKind};
pub use self::pem::Pem;
pub use self::refused::ClientCertificateRefusal;
pub(crate) use self::refused::{Shown, about_ours, alert, refusal};

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
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair of two fields")]
pub struct Identity {
    /// The chain, our own certificate first.
    pub certificate: Pem,
    /// The private key.
    pub key: Pem,
}

/// TLS cannot be set up.
#[derive(Debug, Clone, thiserror::Error)]
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
        source: Arc<std::io::Error>,
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

/// From when and until when the first of these certificates is valid. `None` if they are in a file, or are no certificates.
pub(crate) fn validity(certificates: &Pem) -> Option<(Timestamp, Timestamp)> {
    let first = CertificateDer::pem_slice_iter(certificates.memory()?).next()?.ok()?;
    let (from, until) = certificate::validity(&first)?;
    // Such as the last second of the year 9999, which stands for no end (RFC 5280, 4.1.2.5), are a day beyond what there is.
    let time = |seconds| {
        let time = Timestamp::from_second(i64::try_from(seconds).ok()?);
        Some(time.unwrap_or(Timestamp::MAX))
    };
    Some((time(from)?, time(until)?))
}
