//! The kubeconfig file: what it says, where it says it, and how several of them become one.

mod encoding;
mod error;
mod file;
mod merge;
mod model;
mod resolve;
mod tree;
mod write;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, btree_map};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeSeed as _;
use serde_saphyr::Spanned;

pub use self::error::{KubeconfigError, Place};
use self::model::{Cluster, Context, File, User};
use self::tree::{Node, Texts};
pub use self::write::EntryName;

/// One kubeconfig, merged from one or several files.
///
/// Fields that this crate does not know are kept, and written back by [`Kubeconfig::save`]. Nothing in here is shown by
/// `Debug` but names.
#[derive(Default)]
pub struct Kubeconfig {
    current: Option<(String, Place)>,
    clusters: BTreeMap<String, Entry<Cluster>>,
    users: BTreeMap<String, Entry<User>>,
    contexts: BTreeMap<String, Entry<Context>>,
    documents: Vec<Document>,
}

/// One file.
struct Document {
    path: PathBuf,
    /// As it is read from or written to the file: what the lines in errors count.
    text: SecretString,
    /// All that the text says.
    tree: Node,
    /// What the file said when it was read, if this has been changed since.
    loaded: Option<Node>,
}

/// One named entry, and the file and line it comes from.
struct Entry<T> {
    value: T,
    place: Place,
}

impl Kubeconfig {
    /// Reads one file, in UTF-8, or in UTF-16 with a byte order mark.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no kubeconfig.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, KubeconfigError> {
        Self::parse(&file::read(path.as_ref())?, path.as_ref())
    }

    /// Reads several files and merges them: the first file that names a cluster, user, context or current context wins
    /// (client-go `ClientConfigLoadingRules`). Files that do not exist are passed over, and those that are named twice.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is no kubeconfig, or none of them exists.
    pub fn read_all<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, KubeconfigError> {
        let (mut documents, mut missing) = (Vec::new(), Vec::new());
        for path in paths {
            let path = path.as_ref();
            if documents.iter().any(|known: &Document| known.path == path) {
                continue;
            }
            match file::read(path).and_then(|text| Document::parse(&text, path)) {
                Ok(document) => documents.push(document),
                Err(KubeconfigError::Read { path, source })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    missing.push(path);
                }
                Err(error) => return Err(error),
            }
        }
        if documents.is_empty() {
            return Err(KubeconfigError::NotFound { tried: missing });
        }
        Self::of(documents).map_err(|(_, error)| error)
    }

    /// Parses the text of a file. Relative paths inside it are relative to the folder of `path`.
    ///
    /// # Errors
    ///
    /// The text is no kubeconfig.
    pub fn parse(text: &str, path: &Path) -> Result<Self, KubeconfigError> {
        Self::of(vec![Document::parse(text, path)?]).map_err(|(_, error)| error)
    }

    /// All files as one. On failure they are given back.
    fn of(documents: Vec<Document>) -> Result<Self, (Vec<Document>, KubeconfigError)> {
        let mut merged = Self::default();
        for document in &documents {
            let file = File::parse(document.text.expose_secret(), &document.path);
            if let Err(error) = file.and_then(|file| merged.absorb(file, &document.path)) {
                return Err((documents, error));
            }
        }
        merged.documents = documents;
        Ok(merged)
    }

    /// Adds what this one does not name yet.
    fn absorb(&mut self, file: File, path: &Path) -> Result<(), KubeconfigError> {
        let place = |location: &serde_saphyr::Location| Place::new(path, location.line());
        let current = file.current_context.filter(|name| !name.value.is_empty());
        let current = current.map(|name| (name.value, place(&name.referenced)));
        self.current = self.current.take().or(current);
        for named in file.clusters {
            add(&mut self.clusters, named.name, named.cluster, path)?;
        }
        for named in file.users {
            add(&mut self.users, named.name, named.user, path)?;
        }
        for named in file.contexts {
            add(&mut self.contexts, named.name, named.context, path)?;
        }
        Ok(())
    }

    /// The files that were read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.documents.iter().map(|document| document.path.as_path())
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

/// Adds an entry, unless another file has named it. One that the same file has named is an error, as for client-go: which of
/// the two is meant, nobody knows.
fn add<T: Default>(
    all: &mut BTreeMap<String, Entry<T>>,
    name: Option<Spanned<String>>,
    value: Option<T>,
    path: &Path,
) -> Result<(), KubeconfigError> {
    let line = name.as_ref().map_or(0, |name| name.referenced.line());
    let (name, place) = (name.map_or_else(String::new, |name| name.value), Place::new(path, line));
    match all.entry(name) {
        btree_map::Entry::Vacant(entry) => {
            entry.insert(Entry { value: value.unwrap_or_default(), place });
        }
        btree_map::Entry::Occupied(entry) if entry.get().place.path == path => {
            let problem = "is the name of an earlier entry too".to_owned();
            return Err(KubeconfigError::Malformed {
                place,
                field: Some("name".to_owned()),
                problem,
            });
        }
        btree_map::Entry::Occupied(_) => {}
    }
    Ok(())
}

impl Document {
    fn parse(text: &str, path: &Path) -> Result<Self, KubeconfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut tree = model::parse(text, path)?.unwrap_or(Node::Null);
        if tree != Node::Null {
            // Where it fails, as for a scalar with the tag of a number, that and what follows is written as what it means.
            let texts = |de: serde_saphyr::Deserializer<'_, '_>| Texts(&mut tree).deserialize(de);
            let _ = serde_saphyr::with_deserializer_from_str(text, texts);
        }
        Ok(Self { path: path.to_owned(), text: text.into(), tree, loaded: None })
    }
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("files", &self.files().collect::<Vec<_>>())
            .field("current_context", &self.current_context())
            .field("contexts", &self.contexts.keys())
            .field("clusters", &self.clusters.keys())
            .field("users", &self.users.keys())
            .finish()
    }
}
