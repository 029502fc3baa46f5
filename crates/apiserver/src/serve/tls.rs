//! A certificate authority of our own, for one certificate, for the life of the process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Names that clients in a cluster use (kube-apiserver puts them into its own certificate too).
const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// No certificate can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFailure {
    /// A name is no DNS name and no address, or there is no randomness.
    #[error("a certificate cannot be made")]
    Certificate(#[source] kubestrata_api_types::BoxError),
    /// The certificate is refused.
    #[error("the certificate cannot be used")]
    Config(#[source] kubestrata_api_types::BoxError),
}

/// The authority's certificate, and the server side made with it. The authority's key is forgotten at once.
pub(super) struct Authority {
    pub(super) certificate_pem: String,
    config: Arc<ServerConfig>,
}

impl Authority {
    pub(super) fn new(address: &SocketAddr, names: &[String]) -> Result<Self, TlsFailure> {
        let (certificate_pem, chain, key) =
            make(address, names).map_err(|error| TlsFailure::Certificate(error.into()))?;
        // Named here: a process may have several providers, or none installed.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| TlsFailure::Config(error.into()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { certificate_pem, config: Arc::new(config) })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

type Made = (String, Vec<rustls_pki_types::CertificateDer<'static>>, PrivateKeyDer<'static>);

fn make(address: &SocketAddr, names: &[String]) -> Result<Made, rcgen::Error> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    authority.distinguished_name.push(DnType::CommonName, "kubestrata-apiserver authority");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let mut all: Vec<String> = NAMES.map(str::to_owned).to_vec();
    for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), address.ip()] {
        if !ip.is_unspecified() {
            all.push(ip.to_string());
        }
    }
    all.extend_from_slice(names);
    all.sort_unstable();
    all.dedup();
    let mut leaf = CertificateParams::new(all)?;
    leaf.distinguished_name.push(DnType::CommonName, "kubestrata-apiserver");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let leaf = leaf.signed_by(&key, &authority)?;
    let der = PrivatePkcs8KeyDer::from(key.serialize_der());
    Ok((authority.pem(), vec![leaf.der().clone()], der.into()))
}
