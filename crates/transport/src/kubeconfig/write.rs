//! Changing a kubeconfig, and writing it back.

use secrecy::ExposeSecret as _;

use super::file::{self, Lock};
use super::merge::merge;
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
        let loaded = old.loaded.clone().unwrap_or_else(|| old.tree.clone());
        // Read again as anybody would read it: what cannot be understood must not be written.
        let mut document = Document::parse(tree.render().expose_secret(), &old.path)?;
        document.loaded = Some(loaded);
        self.replace(index, document)
    }

    /// Another document in the place of this one. Nothing has changed if that cannot be.
    fn replace(&mut self, index: usize, document: Document) -> Result<(), KubeconfigError> {
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

    /// Writes what has been changed into its files. All that was in them stays, but for comments and the form of the text,
    /// which becomes UTF-8 in block style; a file in which nothing has been changed is not touched.
    ///
    /// What others have written meanwhile stays too, and is here from then on: a file is read again, and gets the entries
    /// (clusters, users, contexts, and whatever else is at the top) that are not as they were when it was read first. An
    /// entry that others have changed as well is as it is here. One that is no longer there comes
    /// back if it has been changed here.
    ///
    /// A file is replaced in one step, with the owner and permissions that it has, under the lock that kubectl takes
    /// (`config.lock` beside it). One that does not exist is made with the permissions 0600.
    ///
    /// # Errors
    ///
    /// A file is locked, cannot be read or written, or is no kubeconfig any more. It is as it was then, and files before it
    /// are written.
    pub fn save(&mut self) -> Result<(), KubeconfigError> {
        for index in 0..self.documents.len() {
            if let Some(loaded) = &self.documents[index].loaded {
                let saved = self.documents[index].save(loaded)?;
                self.replace(index, saved)?;
            }
        }
        Ok(())
    }
}

impl Document {
    /// Writes what differs from `loaded`, and returns what the file says then.
    fn save(&self, loaded: &Node) -> Result<Self, KubeconfigError> {
        let _lock = Lock::take(&self.path)?;
        let tree = match file::read(&self.path) {
            Ok(text) => merge(loaded, &self.tree, Self::parse(&text, &self.path)?.tree),
            Err(KubeconfigError::Read { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                self.tree.clone()
            }
            Err(error) => return Err(error),
        };
        let merged = Self::parse(tree.render().expose_secret(), &self.path)?;
        // What others have written need not be what a kubeconfig may say.
        let mut alone = Kubeconfig::of(vec![merged]).map_err(|(_, error)| error)?;
        let merged = alone.documents.pop().expect("it is of one document");
        file::replace(&self.path, merged.text.expose_secret())?;
        Ok(merged)
    }
}
