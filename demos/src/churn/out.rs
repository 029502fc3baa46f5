//! Where the results go.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The files of one run.
#[derive(Debug, PartialEq, Eq)]
pub struct Files {
    pub table: PathBuf,
    pub picture: PathBuf,
}

/// Results cannot be written there.
#[derive(Debug)]
pub struct NoPlace {
    path: PathBuf,
    error: io::Error,
}

impl std::fmt::Display for NoPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cannot be written: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for NoPlace {}

/// Names the file in the error of writing it.
pub fn failed(path: &Path) -> impl FnOnce(io::Error) -> NoPlace {
    let path = path.to_owned();
    move |error| NoPlace { path, error }
}

impl Files {
    /// The files that `out` stands for. They are tried, and left as they were.
    pub fn at(out: Option<&Path>) -> Result<Self, NoPlace> {
        let default = std::env::temp_dir().join("kubestrata-churn");
        let out = out.unwrap_or(&default);
        // A name that ends as one of the files stands for both; any other end is a part of the name.
        let ends = |end: &str| out.extension() == Some(OsStr::new(end));
        let stem = if ends("csv") || ends("svg") { &out.with_extension("") } else { out };
        let ends_with_slash = out.as_os_str().as_encoded_bytes().ends_with(b"/");
        if stem.is_dir() || stem.file_name().is_none() || ends_with_slash {
            let error = io::Error::other("want the name of a file, and this is a folder");
            return Err(NoPlace { path: out.to_owned(), error });
        }
        let with = |end: &str| {
            let mut path = OsString::from(stem);
            path.push(end);
            PathBuf::from(path)
        };
        let files = Self { table: with(".csv"), picture: with(".svg") };
        for path in [&files.table, &files.picture] {
            probe(path).map_err(failed(path))?;
        }
        Ok(files)
    }
}

/// Opens the file for writing. One that was not there is removed again.
fn probe(path: &Path) -> io::Result<()> {
    match File::create_new(path) {
        Ok(file) => {
            drop(file);
            std::fs::remove_file(path)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            File::options().append(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_dots_and_folders_are_refused() {
        let folder = std::env::temp_dir().join(format!("kubestrata-out-{}", std::process::id()));
        // A process of the same number may have left it.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("inner.csv")).unwrap();
        let at = |name: &str| Files::at(Some(&folder.join(name)));
        let names = |name: &str| {
            let Files { table, picture } = at(name).unwrap();
            [table, picture].map(|path| path.strip_prefix(&folder).unwrap().display().to_string())
        };
        assert_eq!(names("run"), ["run.csv", "run.svg"]);
        assert_eq!(names("run-1.2"), ["run-1.2.csv", "run-1.2.svg"]);
        assert_eq!(names("run-1.2.svg"), ["run-1.2.csv", "run-1.2.svg"]);
        assert_eq!(names("run.csv"), ["run.csv", "run.svg"]);
        let entries = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(entries, 1, "trying leaves nothing behind");

        std::fs::write(folder.join("old.csv"), "kept").unwrap();
        assert!(at("old").is_ok());
        assert_eq!(std::fs::read_to_string(folder.join("old.csv")).unwrap(), "kept");

        for (name, refused) in
            [("", ""), ("new/", "new/"), ("inner", "inner.csv"), ("missing/run", "missing/run.csv")]
        {
            let error = at(name).unwrap_err().to_string();
            let file = folder.join(refused).display().to_string();
            assert!(error.starts_with(&format!("{file} cannot be written: ")), "{error}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
