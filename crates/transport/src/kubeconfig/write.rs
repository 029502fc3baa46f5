//! Changing a kubeconfig, and writing it back.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;

use super::tree::Node;
use super::{Document, Kubeconfig, KubeconfigError};

/// A named entry of a kubeconfig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "what a kubeconfig has names for")]
pub enum EntryName<'a> {
    /// Of `clusters`.
    Cluster(&'a str),
    /// Of `users`.
    User(&'a str),
    /// Of `contexts`.
    Context(&'a str),
}

impl<'a> EntryName<'a> {
    /// List, field of its entries, and name.
    fn parts(self) -> (&'static str, &'static str, &'a str) {
        match self {
            Self::Cluster(name) => ("clusters", "cluster", name),
            Self::User(name) => ("users", "user", name),
            Self::Context(name) => ("contexts", "context", name),
        }
    }
}

impl Kubeconfig {
    /// Makes this the current context, in the file that names one now, or else in the first (`kubectl config
    /// use-context`).
    ///
    /// # Errors
    ///
    /// There is no such context.
    pub fn set_current_context(&mut self, name: &str) -> Result<(), KubeconfigError> {
        if !self.contexts.contains_key(name) {
            return Err(KubeconfigError::Unknown {
                place: None,
                kind: "context",
                name: name.to_owned(),
                known: self.contexts.keys().cloned().collect(),
            });
        }
        let owner = self.current.as_ref().and_then(|(_, place)| {
            self.documents.iter().position(|document| document.path == place.path)
        });
        self.change(owner.unwrap_or(0), |tree| *tree.entry("current-context") = Node::text(name))
    }

    /// Sets a field of an entry, as `namespace` of a context or `token` of a user, or removes it; in the file that the
    /// entry is from, or else in a new entry of the first. The path leads through maps, as in
    /// `["exec", "installHint"]`.
    ///
    /// # Errors
    ///
    /// The field cannot have this value, or the path is empty. Nothing has changed then.
    pub fn set(
        &mut self,
        entry: EntryName<'_>,
        path: &[&str],
        value: Option<&str>,
    ) -> Result<(), KubeconfigError> {
        let (list, field, name) = entry.parts();
        let owner = self.documents.iter_mut().position(|document| {
            let entries = document.tree.get(list).cloned();
            entries.is_some_and(|mut entries| entries.named(name).is_some())
        });
        let Some((last, above)) = path.split_last() else {
            return Err(KubeconfigError::NoField);
        };
        self.change(owner.unwrap_or(0), |tree| {
            let entries = tree.entry(list);
            if entries.named(name).is_none() {
                let new = Node::Map(vec![("name".to_owned(), Node::text(name))]);
                if let Node::List(items) = entries {
                    items.push(new);
                } else {
                    *entries = Node::List(vec![new]);
                }
            }
            let Some(mut at) = entries.named(name) else { return };
            at = at.entry(field);
            for key in above {
                at = at.entry(key);
            }
            match value {
                Some(value) => *at.entry(last) = Node::text(value),
                None => at.remove(last),
            }
        })
    }

    fn change(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut Node),
    ) -> Result<(), KubeconfigError> {
        let Some(old) = self.documents.get(index) else {
            return Err(KubeconfigError::NotFound { tried: Vec::new() });
        };
        let mut tree = old.tree.clone();
        change(&mut tree);
        let (path, text) = (old.path.clone(), tree.render());
        // Read again as anybody would read it: what cannot be understood must not be written.
        let mut document = Document::parse(text.expose_secret(), &path)?;
        document.changed = true;
        let mut documents = std::mem::take(&mut self.documents);
        let old = std::mem::replace(&mut documents[index], document);
        match Self::of(documents) {
            Ok(changed) => {
                *self = changed;
                Ok(())
            }
            Err((mut documents, error)) => {
                documents[index] = old;
                self.documents = documents;
                Err(error)
            }
        }
    }

    /// Writes the files that have been changed. All that was in them stays, but for comments and the form of the text,
    /// which becomes UTF-8 in block style; a file that has not been changed is not touched.
    ///
    /// A file is replaced in one step, with the permissions that it has, under the lock that kubectl takes
    /// (`config.lock` beside it).
    ///
    /// # Errors
    ///
    /// A file is locked or cannot be written. It is as it was then, and files before it are written.
    pub fn save(&mut self) -> Result<(), KubeconfigError> {
        for document in self.documents.iter_mut().filter(|document| document.changed) {
            document.save()?;
            document.changed = false;
        }
        Ok(())
    }
}

/// Removes the lock when dropped.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> Result<Self, KubeconfigError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let name = PathBuf::from(name);
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(_) => Ok(Self(name)),
            Err(source) => Err(KubeconfigError::Locked { lock: name, source }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // One that cannot be removed is told to the next who wants it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Document {
    fn save(&self) -> Result<(), KubeconfigError> {
        let failed = |source| KubeconfigError::Write { path: self.path.clone(), source };
        let _lock = Lock::take(&self.path)?;
        // Through links: the file that is meant is replaced, not the link to it.
        let target = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let mut name = target.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let written = self.write(&new, &target);
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written.map_err(failed)
    }

    fn write(&self, new: &Path, target: &Path) -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(new)?;
        file.write_all(self.text.expose_secret().as_bytes())?;
        if let Ok(old) = std::fs::metadata(target) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        std::fs::rename(new, target)
    }
}
