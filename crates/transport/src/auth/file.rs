//! Tokens in files.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::zeroize::Zeroizing;

use super::AuthError;
use crate::blocking::Blocking;

/// The largest token file that is read, in bytes: a server takes no header as large as that.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The text of a token, wiped when dropped.
pub(super) type Token = Zeroizing<String>;

/// Reads one file, on a thread where it may take its time: it can be a pipe that nobody writes to, or on a disk that is no
/// longer there.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: Arc<PathBuf>,
    limit: Duration,
    readings: Blocking,
}

impl TokenFile {
    /// A file whose reading is waited for as long as `limit`.
    pub(super) fn new(path: Arc<PathBuf>, limit: Duration) -> Self {
        Self { path, limit, readings: Blocking::default() }
    }

    /// What it says now, without the white space around it. Cancel-safe.
    pub(super) async fn read(&self) -> Result<Token, AuthError> {
        let path = || (*self.path).clone();
        let (file, limit) = (Arc::clone(&self.path), self.limit);
        let read = self.readings.run(move || text_of(&file));
        let read = tokio::time::timeout(limit, read).await;
        let read = read.map_err(|_| AuthError::TokenFileTimeout { path: path(), limit })?;
        let failed = |source| AuthError::TokenFile { path: path(), source: Arc::new(source) };
        let token = read.map_err(failed)?;
        if token.is_empty() {
            return Err(AuthError::EmptyTokenFile { path: path() });
        }
        Ok(token)
    }
}

fn text_of(path: &Path) -> io::Result<Token> {
    let file = std::fs::File::open(path)?;
    // With room for all of it: a buffer that grows leaves copies behind.
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut bytes = Zeroizing::new(Vec::with_capacity(size.clamp(16 << 10, FILE_BYTES_MAX) + 1));
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_BYTES_MAX {
        let problem = format!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    let text = std::str::from_utf8(&bytes);
    let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
    Ok(Zeroizing::new(text.trim().to_owned()))
}
