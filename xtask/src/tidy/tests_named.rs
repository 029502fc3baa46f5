//! The tests that `docs/requirements.md` names.

use std::collections::BTreeSet;

use super::Findings;
use crate::workspace::root;

/// Functions of the project, each as `crate::function`: of which crate a file is, its path tells.
#[derive(Debug, Default)]
pub(crate) struct Functions(BTreeSet<String>);

impl Functions {
    /// Notes the functions of a file, whose path is relative to the root.
    pub(crate) fn note(&mut self, path: &str, text: &str) {
        let mut parts = path.split('/');
        let member = match (parts.next(), parts.next()) {
            (Some("crates"), Some(name)) => name,
            (Some("tests"), Some(_)) => "it",
            (Some(name), _) => name,
            (None, _) => return,
        };
        for line in text.lines() {
            let mut line = line.trim_start();
            for before in ["pub(crate) ", "pub(super) ", "async "] {
                line = line.strip_prefix(before).unwrap_or(line);
            }
            if let Some(rest) = line.strip_prefix("fn ") {
                let name: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                self.0.insert(format!("{member}::{name}"));
            }
        }
    }

    /// Finds names of tests in the rows of the list that no function has.
    pub(crate) fn check(&self, findings: &mut Findings) {
        let path = root().join("docs/requirements.md");
        let Ok(text) = std::fs::read_to_string(path) else { return };
        for name in self.missing(&text) {
            findings
                .error(format!("docs/requirements.md names the test {name}, which is not there"));
        }
    }

    /// The names in backticks, within rows, that have two colons and belong to no function.
    pub(crate) fn missing<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let rows = text.lines().filter(|line| line.starts_with('|'));
        let names = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        names.filter(|name| name.contains("::") && !self.0.contains(*name)).collect()
    }
}
