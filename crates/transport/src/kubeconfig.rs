//! The kubeconfig file: what it says, where it says it, and how several of them become one.

mod error;
mod model;
mod resolve;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use self::error::{KubeconfigError, Place};
use self::model::{Cluster, Context, File, User};

/// The largest kubeconfig file that is read, in bytes. Real ones hold some certificates per cluster.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// One kubeconfig, merged from one or several files.
///
/// Fields that this crate does not know are ignored, as client-go does. Nothing in here is shown by `Debug` but names.
#[derive(Default)]
pub struct Kubeconfig {
    current: Option<(String, Place)>,
    clusters: BTreeMap<String, Entry<Cluster>>,
    users: BTreeMap<String, Entry<User>>,
    contexts: BTreeMap<String, Entry<Context>>,
    files: Vec<PathBuf>,
}

/// One named entry, and the file and line it comes from.
struct Entry<T> {
    value: T,
    place: Place,
}

impl Kubeconfig {
    /// Reads one file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no kubeconfig.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, KubeconfigError> {
        let path = path.as_ref();
        let read = |source| KubeconfigError::Read { path: path.to_owned(), source };
        let size = std::fs::metadata(path).map_err(read)?.len();
        if size > FILE_BYTES_MAX {
            return Err(KubeconfigError::TooLarge { path: path.to_owned(), limit: FILE_BYTES_MAX });
        }
        Self::parse(&std::fs::read_to_string(path).map_err(read)?, path)
    }

    /// Reads several files and merges them: the first file that names a cluster, user, context or current context wins
    /// (client-go `ClientConfigLoadingRules`). Files that do not exist are passed over.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is no kubeconfig, or none of them exists.
    pub fn read_all<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, KubeconfigError> {
        let (mut merged, mut missing) = (Self::default(), Vec::new());
        for path in paths {
            match Self::read(path.as_ref()) {
                Ok(next) => merged.absorb(next),
                Err(KubeconfigError::Read { path, source })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    missing.push(path);
                }
                Err(error) => return Err(error),
            }
        }
        if merged.files.is_empty() {
            return Err(KubeconfigError::NotFound { tried: missing });
        }
        Ok(merged)
    }

    /// Parses the text of a file. Relative paths inside it are relative to the folder of `path`.
    ///
    /// # Errors
    ///
    /// The text is no kubeconfig.
    pub fn parse(text: &str, path: &Path) -> Result<Self, KubeconfigError> {
        let file = File::parse(text, path)?;
        let place = |location: &serde_saphyr::Location| Place::new(path, location.line());
        let current = file
            .current_context
            .filter(|name| !name.value.is_empty())
            .map(|name| (name.value, place(&name.referenced)));
        let mut config = Self { current, files: vec![path.to_owned()], ..Self::default() };
        for named in file.clusters.unwrap_or_default() {
            let place = place(&named.name.referenced);
            let entry = Entry { value: named.cluster.unwrap_or_default(), place };
            config.clusters.entry(named.name.value).or_insert(entry);
        }
        for named in file.users.unwrap_or_default() {
            let place = place(&named.name.referenced);
            let entry = Entry { value: named.user.unwrap_or_default(), place };
            config.users.entry(named.name.value).or_insert(entry);
        }
        for named in file.contexts.unwrap_or_default() {
            let place = place(&named.name.referenced);
            let entry = Entry { value: named.context.unwrap_or_default(), place };
            config.contexts.entry(named.name.value).or_insert(entry);
        }
        Ok(config)
    }

    /// Adds what this one does not name yet.
    fn absorb(&mut self, other: Self) {
        self.current = self.current.take().or(other.current);
        for (name, entry) in other.clusters {
            self.clusters.entry(name).or_insert(entry);
        }
        for (name, entry) in other.users {
            self.users.entry(name).or_insert(entry);
        }
        for (name, entry) in other.contexts {
            self.contexts.entry(name).or_insert(entry);
        }
        self.files.extend(other.files);
    }

    /// Name of the current context, if one is set.
    pub fn current_context(&self) -> Option<&str> {
        self.current.as_ref().map(|(name, _)| name.as_str())
    }

    /// Names of all contexts, sorted.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        self.contexts.keys().map(String::as_str)
    }
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("files", &self.files)
            .field("current_context", &self.current_context())
            .field("contexts", &self.contexts.keys())
            .field("clusters", &self.clusters.keys())
            .field("users", &self.users.keys())
            .finish()
    }
}
