//! What `cargo metadata` says of this workspace.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::run::Failure;

/// The workspace that this program was built from.
pub(crate) struct Workspace {
    pub(crate) metadata: Metadata,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self, Failure> {
        let metadata = MetadataCommand::new()
            .manifest_path(root().join("Cargo.toml"))
            .exec()
            .map_err(|error| Failure::new(format!("cargo metadata: {error}")))?;
        Ok(Self { metadata })
    }

    /// The members, by name.
    pub(crate) fn members(&self) -> Vec<&Package> {
        let mut members = self.metadata.workspace_packages();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members
    }

    /// Whether there is a member of this name.
    pub(crate) fn has_member(&self, name: &str) -> bool {
        self.members().iter().any(|package| package.name.as_str() == name)
    }

    /// Where build products go.
    pub(crate) fn target(&self) -> PathBuf {
        self.metadata.target_directory.clone().into_std_path_buf()
    }
}

/// The root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the root")
}
