//! PEM from a file or from memory.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretSlice};

use super::TlsError;
use crate::blocking::Blocking;

/// PEM text: certificates or a key. A clone is cheap; `Debug` shows the file's name only.
#[derive(Clone)]
pub struct Pem(Source);

#[derive(Clone)]
enum Source {
    File(Arc<PathBuf>),
    Inline(Arc<SecretSlice<u8>>),
}

impl Pem {
    /// In a file, which is read again for every new connection, and when it was last read a minute ago.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(Arc::new(path.into())))
    }

    /// In memory, which is wiped when the last clone is dropped.
    pub fn inline(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Source::Inline(Arc::new(bytes.into().into())))
    }

    /// Whether it can change.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.0, Source::File(_))
    }

    /// The error of a reading that was not done within `limit`.
    pub(super) fn hangs(&self, what: &'static str, limit: Duration) -> TlsError {
        let path = match &self.0 {
            Source::File(path) => (**path).clone(),
            Source::Inline(_) => PathBuf::new(),
        };
        let problem = format!("it was not read within {limit:?}");
        let source = Arc::new(std::io::Error::new(std::io::ErrorKind::TimedOut, problem));
        TlsError::Read { what, path, source }
    }

    /// The text, if it is in memory.
    pub(super) fn memory(&self) -> Option<&[u8]> {
        match &self.0 {
            Source::File(_) => None,
            Source::Inline(bytes) => Some(bytes.expose_secret()),
        }
    }

    /// The text. `what` names its purpose in errors. It has no deadline of its own.
    pub(crate) async fn read(
        &self,
        what: &'static str,
        readings: &Blocking,
    ) -> Result<Contents, TlsError> {
        match &self.0 {
            Source::Inline(bytes) => {
                Ok(Contents { what, from: "inline".into(), bytes: Arc::clone(bytes) })
            }
            Source::File(path) => {
                let file = Arc::clone(path);
                match readings.run(move || std::fs::read(&*file)).await {
                    Ok(bytes) => Ok(Contents {
                        what,
                        from: path.display().to_string(),
                        bytes: Arc::new(bytes.into()),
                    }),
                    Err(source) => {
                        let (path, source) = ((**path).clone(), Arc::new(source));
                        Err(TlsError::Read { what, path, source })
                    }
                }
            }
        }
    }
}

/// The same file, or the same text.
impl PartialEq for Pem {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Source::File(one), Source::File(other)) => one == other,
            (Source::Inline(one), Source::Inline(other)) => {
                one.expose_secret() == other.expose_secret()
            }
            _ => false,
        }
    }
}

impl Eq for Pem {}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::File(path) => write!(f, "Pem({})", path.display()),
            Source::Inline(_) => f.write_str("Pem(inline)"),
        }
    }
}

/// PEM text that has been read.
pub(crate) struct Contents {
    what: &'static str,
    from: String,
    bytes: Arc<SecretSlice<u8>>,
}

impl Contents {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.expose_secret()
    }

    /// All certificates; at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.bytes()).collect();
        match all {
            Ok(certificates) if !certificates.is_empty() => Ok(certificates),
            _ => Err(self.not_pem()),
        }
    }

    pub(super) fn not_pem(&self) -> TlsError {
        TlsError::Pem { what: self.what, from: self.from.clone() }
    }
}

impl PartialEq for Contents {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes) || self.bytes() == other.bytes()
    }
}

impl Eq for Contents {}
