//! Files on the disk: read whole, and replaced in one step.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use secrecy::zeroize::Zeroizing;

use super::{KubeconfigError, encoding};

/// The largest kubeconfig file that is read, in bytes. Real ones hold some certificates per cluster.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<Zeroizing<String>, KubeconfigError> {
    let failed = |source| KubeconfigError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len().min(FILE_BYTES_MAX);
    // With room for all of it: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1));
    // What is no plain file does not tell its size.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(KubeconfigError::TooLarge { path: path.to_owned(), limit: FILE_BYTES_MAX });
    }
    encoding::decode(&bytes).ok_or_else(|| KubeconfigError::Encoding { path: path.to_owned() })
}

/// Keeps other programs from writing a file; kubectl's is the same. Removed when dropped.
pub(super) struct Lock(PathBuf);

impl Lock {
    /// Takes the lock of a file. The folder is made if it is not there, as by kubectl.
    pub(super) fn take(path: &Path) -> Result<Self, KubeconfigError> {
        let failed = |source| KubeconfigError::Write { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock = beside(path, ".lock");
        match OpenOptions::new().write(true).create_new(true).open(&lock) {
            Ok(_) => Ok(Self(lock)),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                Err(KubeconfigError::Locked { lock, source })
            }
            Err(source) => Err(failed(source)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // One that cannot be removed is told to the next who wants it.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Replaces a file, or makes it. It keeps its owner and its permissions; a new one is its owner's alone.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), KubeconfigError> {
    // Through links: the file that is meant is replaced, not the link to it.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let new = beside(&target, ".new");
    let written = write(&new, &target, text);
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.map_err(|source| KubeconfigError::Write { path: path.to_owned(), source })
}

fn write(new: &Path, target: &Path, text: &str) -> io::Result<()> {
    // Left behind by who was ended while he wrote: with permissions of its own, it could be read by others.
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(new)?;
    file.write_all(text.as_bytes())?;
    if let Ok(old) = std::fs::metadata(target) {
        resemble(&file, &old)?;
    }
    file.sync_all()?;
    std::fs::rename(new, target)
}

/// The owner, group and permissions of the old file. Where the first two cannot be, as only root can give files away, nobody
/// but the owner may read it: those who might read the old one need not be those who might read this.
#[cfg(unix)]
fn resemble(file: &File, old: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let mut mode = old.mode() & 0o777;
    let new = file.metadata()?;
    let same = (new.uid(), new.gid()) == (old.uid(), old.gid());
    if !same && fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        mode &= 0o700;
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn resemble(file: &File, old: &std::fs::Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}
