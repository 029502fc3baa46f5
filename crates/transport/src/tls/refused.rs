//! Our own certificate, as the server sees it.
//!
//! With TLS 1.3 the handshake is over for us before the server has looked at our certificate: its refusal is the first
//! thing that we read, and looks like a connection that breaks under a request.

use std::error::Error;
use std::fmt;
use std::io;

use kubestrata_api_types::Timestamp;
use rustls::AlertDescription;
use rustls_pki_types::CertificateDer;

use super::certificate::Summary;

/// What the server said of our certificate, or of there being none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCertificateRefusal {
    /// The server's reason, by the name of the TLS alert, as in `UnknownCA`.
    pub alert: String,
    /// Subject of the certificate that we showed, as in `O=system:masters, CN=admin`. `None` if we have none.
    pub subject: Option<String>,
    /// Until when it is valid, if that can be read.
    pub not_after: Option<Timestamp>,
}

impl fmt::Display for ClientCertificateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(subject) = &self.subject else {
            return write!(f, "it wants a client certificate, and we have none ({})", self.alert);
        };
        write!(f, "it refuses our client certificate of {subject:?}")?;
        if let Some(until) = self.not_after {
            let word = if until < Timestamp::now() { "expired at" } else { "is valid until" };
            write!(f, ", which {word} {until}")?;
        }
        write!(f, " ({})", self.alert)
    }
}

/// The certificate that a connection shows.
#[derive(Debug)]
pub(crate) struct Shown {
    subject: String,
    not_after: Option<Timestamp>,
}

impl Shown {
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Self {
        let Summary { subject, validity, .. } = Summary::of(certificate);
        let not_after =
            validity.and_then(|(_, until)| Timestamp::from_second(i64::try_from(until).ok()?).ok());
        Self { subject, not_after }
    }
}

/// Whether this is why a connection, or its handshake, failed.
pub(crate) fn refusal(
    error: &(dyn Error + 'static),
    shown: Option<&Shown>,
) -> Option<ClientCertificateRefusal> {
    let mut current = Some(error);
    while let Some(error) = current {
        let alert = match error.downcast_ref::<io::Error>() {
            Some(error) => alert(error),
            None => error.downcast_ref().and_then(received),
        };
        if let Some(alert) = alert {
            return about_ours(alert, shown);
        }
        current = error.source();
    }
    None
}

/// What an alert says of our certificate, if it is about that.
pub(crate) fn about_ours(
    alert: AlertDescription,
    shown: Option<&Shown>,
) -> Option<ClientCertificateRefusal> {
    // These are about a certificate of the one who gets them, and the server verifies none but ours.
    let ours = matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::CertificateRequired
    );
    ours.then(|| ClientCertificateRefusal {
        alert: format!("{alert:?}"),
        subject: shown.map(|shown| shown.subject.clone()),
        not_after: shown.and_then(|shown| shown.not_after),
    })
}

/// The alert that ended a connection, as TLS streams tell of it: inside an error of IO, which does not show it as its
/// source.
pub(crate) fn alert(error: &io::Error) -> Option<AlertDescription> {
    error.get_ref()?.downcast_ref().and_then(received)
}

fn received(error: &rustls::Error) -> Option<AlertDescription> {
    match error {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}
