//! What was wrong with which certificate, in words for the person who has to put it right.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::Timestamp;
use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::certificate::Summary;

/// How many trusted authorities an error names.
const NAMED_AUTHORITIES: usize = 3;

/// Why a certificate was refused: what is wrong, and which certificate it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateProblem {
    /// The kind of problem.
    pub kind: CertificateProblemKind,
    /// Subject of the certificate that the peer showed, as in `O=acme, CN=api`.
    pub subject: String,
    /// Its issuer.
    pub issuer: String,
    /// From when it is valid, if that can be read.
    pub not_before: Option<Timestamp>,
    /// Until when.
    pub not_after: Option<Timestamp>,
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateProblemKind {
    /// None of the trusted authorities has signed it.
    UnknownIssuer {
        /// The subjects of what is trusted, the first few; empty for the authorities of the platform.
        trusted: Vec<String>,
        /// Whether something trusted has the name of the issuer, and another key: it was made anew, most likely.
        same_name: bool,
    },
    /// It is a certificate for other names.
    Name {
        /// The name of the server that was asked for.
        expected: String,
        /// What the certificate is for.
        presented: Vec<String>,
    },
    /// It is no longer valid.
    Expired {
        /// Our clock.
        now: Option<Timestamp>,
    },
    /// It is not valid yet.
    NotYetValid {
        /// Our clock.
        now: Option<Timestamp>,
    },
    /// Anything else, in the words of the TLS library.
    Other(String),
}

impl fmt::Display for CertificateProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |time: &Option<Timestamp>| {
            time.map_or_else(|| "an unknown time".to_owned(), |time| time.to_string())
        };
        match &self.kind {
            CertificateProblemKind::UnknownIssuer { trusted, same_name } => {
                write!(f, "it is issued by {:?}, ", self.issuer)?;
                if *same_name {
                    f.write_str("of which another key is trusted: the authority was made anew")?;
                } else if trusted.is_empty() {
                    f.write_str("which the platform does not trust")?;
                } else {
                    write!(f, "and trusted are only {trusted:?}")?;
                }
            }
            CertificateProblemKind::Name { expected, presented } => {
                write!(
                    f,
                    "it is not valid for name {expected:?}, only for {}",
                    presented.join(", ")
                )?;
            }
            CertificateProblemKind::Expired { now } => {
                write!(f, "it expired at {}, and it is {}", shown(&self.not_after), shown(now))?;
            }
            CertificateProblemKind::NotYetValid { now } => write!(
                f,
                "it is not valid yet, only from {}, and it is {}",
                shown(&self.not_before),
                shown(now)
            )?,
            CertificateProblemKind::Other(problem) => f.write_str(problem)?,
        }
        write!(f, " (certificate of {:?}, issued by {:?})", self.subject, self.issuer)
    }
}

/// The last refusal of the verifiers of one server. Handshakes that go on at the same time share it: they are with the
/// same server, whose certificates are refused for the same reason.
#[derive(Debug, Clone, Default)]
pub(super) struct Refusal(Arc<Mutex<Option<CertificateProblem>>>);

impl Refusal {
    /// What was wrong, if `error` is such a refusal.
    pub(super) fn of(&self, error: &std::io::Error) -> Option<CertificateProblem> {
        let error = error.get_ref()?.downcast_ref::<Error>()?;
        matches!(error, Error::InvalidCertificate(_)).then(|| self.0.lock().clone()).flatten()
    }
}

/// Notes why the verifier inside refuses. The error itself stays: rustls makes the alert of it that the server logs.
#[derive(Debug)]
pub(super) struct Explaining {
    pub(super) inner: Arc<dyn ServerCertVerifier>,
    /// The certificates that are trusted; empty for those of the platform.
    pub(super) trusted: Vec<CertificateDer<'static>>,
    pub(super) refusal: Refusal,
}

impl Explaining {
    fn problem(
        &self,
        certificate: &CertificateDer<'_>,
        error: &CertificateError,
    ) -> CertificateProblem {
        let shown = Summary::of(certificate);
        let time = |time: UnixTime| timestamp(time.as_secs());
        let kind = match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => self.issuer(&shown),
            CertificateError::NotValidForNameContext { expected, presented } => {
                CertificateProblemKind::Name {
                    expected: expected.to_str().into_owned(),
                    presented: presented.iter().map(|name| bare(name).to_owned()).collect(),
                }
            }
            CertificateError::ExpiredContext { time: now, .. } => {
                CertificateProblemKind::Expired { now: time(*now) }
            }
            CertificateError::NotValidYetContext { time: now, .. } => {
                CertificateProblemKind::NotYetValid { now: time(*now) }
            }
            other => CertificateProblemKind::Other(other.to_string()),
        };
        CertificateProblem {
            kind,
            subject: shown.subject,
            issuer: shown.issuer,
            not_before: shown.validity.and_then(|(from, _)| timestamp(from)),
            not_after: shown.validity.and_then(|(_, until)| timestamp(until)),
        }
    }

    fn issuer(&self, shown: &Summary) -> CertificateProblemKind {
        let names: Vec<String> =
            self.trusted.iter().map(|trusted| Summary::of(trusted).subject).collect();
        let same_name = names.contains(&shown.issuer);
        let trusted = names.into_iter().take(NAMED_AUTHORITIES).collect();
        CertificateProblemKind::UnknownIssuer { trusted, same_name }
    }
}

/// The name in `DnsName("api")` or `IpAddress(10.0.0.1)`, as rustls writes it.
fn bare(name: &str) -> &str {
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(name).trim_matches('"')
}

fn timestamp(seconds: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

impl ServerCertVerifier for Explaining {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let result = self.inner.verify_server_cert(certificate, intermediates, name, ocsp, now);
        if let Err(Error::InvalidCertificate(error)) = &result {
            *self.refusal.0.lock() = Some(self.problem(certificate, error));
        }
        result
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
