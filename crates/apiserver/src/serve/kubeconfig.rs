//! The file by which clients find the server.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};

/// One cluster, user and context, all of one name.
pub(super) fn text(url: &str, authority: Option<&str>, token: Option<&SecretString>) -> String {
    let mut cluster = format!("    server: {url}\n");
    if let Some(authority) = authority {
        cluster.push_str("    certificate-authority-data: ");
        cluster.push_str(&STANDARD.encode(authority));
        cluster.push('\n');
    }
    // A JSON string is a YAML string, whatever it holds.
    let user = match token {
        Some(token) => {
            let quoted = serde_json::Value::from(token.expose_secret()).to_string();
            format!("  user:\n    token: {quoted}\n")
        }
        None => "  user: {}\n".to_owned(),
    };
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: kubestrata\n\
         clusters:\n- name: kubestrata\n  cluster:\n{cluster}\
         users:\n- name: kubestrata\n{user}\
         contexts:\n- name: kubestrata\n  context:\n    cluster: kubestrata\n    user: kubestrata\n    namespace: default\n"
    )
}

/// Writes a file beside the place and moves it there: whoever looks finds the old one or the new one.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let written = create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    if written.is_err() {
        // What is left of the attempt is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}
