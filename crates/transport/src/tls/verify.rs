//! Whom to believe.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::TlsError;
use super::certificate::validity;

/// Believes a chain to one of the given certificates, or a server that shows one of them as its own.
///
/// The second is what kube-apiserver's self-signed certificate needs, and what Go accepts: it is authority and server in
/// one, and WebPKI refuses an authority's certificate in a server's place, whatever the roots say. Being byte for byte
/// the certificate that the user gave, it needs no signature of another; name, time and possession of the key are still
/// checked.
#[derive(Debug)]
pub(super) struct ChainOrPinned {
    chain: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ChainOrPinned {
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        // Of a bundle, what is no certificate is passed over, as by Go, if anything else is there.
        let mut problem = None;
        for certificate in &certificates {
            if let Err(error) = roots.add(certificate.clone()) {
                tracing::warn!(%error, "one of the certificates to trust cannot be used");
                problem = Some(error.to_string());
            }
        }
        if let (true, Some(problem)) = (roots.is_empty(), problem) {
            return Err(TlsError::NoRoots { problem });
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| TlsError::NoRoots { problem: error.to_string() })?;
        Ok(Self { chain, pinned: certificates })
    }

    fn pinned(
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        let (not_before, not_after) = validity(certificate)
            .ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if now.as_secs() < not_before {
            let not_before = UnixTime::since_unix_epoch(Duration::from_secs(not_before));
            let error = CertificateError::NotValidYetContext { time: now, not_before };
            return Err(Error::InvalidCertificate(error));
        }
        if now.as_secs() > not_after {
            let not_after = UnixTime::since_unix_epoch(Duration::from_secs(not_after));
            let error = CertificateError::ExpiredContext { time: now, not_after };
            return Err(Error::InvalidCertificate(error));
        }
        Ok(ServerCertVerified::assertion())
    }
}

impl ServerCertVerifier for ChainOrPinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let refused =
            match self.chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
                Ok(verified) => return Ok(verified),
                Err(error) => error,
            };
        // Only where the role of the certificate was refused. Every other refusal stands, pinned or not.
        if is_wrong_role(&refused) && self.pinned.iter().any(|pinned| pinned == certificate) {
            return Self::pinned(certificate, name, now);
        }
        Err(refused)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Whether WebPKI refused an authority's certificate in a server's place.
fn is_wrong_role(error: &Error) -> bool {
    // rustls has no variant for it and wraps WebPKI's error, whose type is not ours to name; its name is stable.
    matches!(error, Error::InvalidCertificate(CertificateError::Other(OtherError(inner)))
        if format!("{inner:?}").contains("CaUsedAsEndEntity"))
}

/// Believes anybody, for `insecure-skip-tls-verify`. The handshake's signature is checked nevertheless.
#[derive(Debug)]
pub(super) struct Anything {
    provider: Arc<CryptoProvider>,
}

impl Anything {
    pub(super) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider }
    }
}

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
