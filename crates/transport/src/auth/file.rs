//! Tokens in files.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::zeroize::Zeroizing;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::AuthError;

/// The largest token file that is read, in bytes: a server takes no header as large as that.
const FILE_BYTES_MAX: usize = 1 << 20;

/// How many readings of one file may hang. More than one, so that a file which takes the place of one that hangs is seen; and
/// each holds a thread of the runtime's.
const READINGS_MAX: usize = 4;

/// The text of a token, wiped when dropped.
pub(super) type Token = Zeroizing<String>;

/// Reads one file, on a thread where it may take its time: it can be a pipe that nobody writes to, or on a disk that is no
/// longer there.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: Arc<PathBuf>,
    limit: Duration,
    /// Those that nobody waits for any more, and which may hang; and the last.
    readings: Mutex<Vec<JoinHandle<io::Result<Token>>>>,
}

impl TokenFile {
    /// A file whose reading is waited for as long as `limit`.
    pub(super) fn new(path: Arc<PathBuf>, limit: Duration) -> Self {
        Self { path, limit, readings: Mutex::default() }
    }

    /// What it says now, without the white space around it. Cancel-safe: a reading goes on, and the next call knows of it.
    pub(super) async fn read(&self) -> Result<Token, AuthError> {
        let path = || (*self.path).clone();
        let read = tokio::time::timeout(self.limit, self.reading()).await;
        let limit = self.limit;
        let read = read.map_err(|_| AuthError::TokenFileTimeout { path: path(), limit })?;
        let failed = |source| AuthError::TokenFile { path: path(), source: Arc::new(source) };
        let token = read.map_err(failed)?;
        if token.is_empty() {
            return Err(AuthError::EmptyTokenFile { path: path() });
        }
        Ok(token)
    }

    async fn reading(&self) -> io::Result<Token> {
        let mut readings = self.readings.lock().await;
        // What an earlier call did not wait for is as old as that call.
        readings.retain(|reading| !reading.is_finished());
        if readings.len() < READINGS_MAX {
            let path = Arc::clone(&self.path);
            readings.push(tokio::task::spawn_blocking(move || text_of(&path)));
        }
        let last = readings.last_mut().expect("there is one, as there may be more than none");
        let read = last.await;
        // It must not be polled again.
        readings.pop();
        read.unwrap_or_else(|error| Err(io::Error::other(error)))
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
