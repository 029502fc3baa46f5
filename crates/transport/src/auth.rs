//! Who we are: credentials, and how they reach a request.

mod exec;
mod file;
mod header;
mod layer;
mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

pub(crate) use self::exec::{ClusterInfo, ExecPlugin};
pub(crate) use self::header::basic;
pub use self::layer::{AuthLayer, AuthService};
pub(crate) use self::source::Source;

/// Credentials that go with every request. A client certificate is part of [`Tls`](crate::Tls) instead, unless a plugin of
/// the kubeconfig makes it.
///
/// A clone is cheap. `Debug` names the method only.
#[derive(Clone, Default)]
pub struct Auth(Method);

#[derive(Clone, Default)]
enum Method {
    /// No credentials but, perhaps, a client certificate.
    #[default]
    None,
    /// `Authorization: Bearer`.
    Token(Arc<SecretString>),
    /// The same, from a file that something else renews.
    TokenFile(Arc<PathBuf>),
    /// `Authorization: Basic`.
    Basic(Arc<(String, SecretString)>),
    /// A token, a client certificate or both, which a program prints.
    Exec(Arc<ExecPlugin>),
}

impl Auth {
    /// No credentials.
    pub fn none() -> Self {
        Self(Method::None)
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self.0, Method::None)
    }

    /// A bearer token that never changes.
    pub fn token(token: impl Into<String>) -> Self {
        Self::secret_token(token.into().into())
    }

    /// A bearer token in a file, of at most 1 MiB. It is read again when it is a minute old
    /// ([`Timeouts::files`](crate::Timeouts::files)) and after an answer 401, so that a rotated
    /// token is used in time (client-go `NewCachedFileTokenSource`). If it cannot be read then, or not in
    /// [`Timeouts::token_file`](crate::Timeouts::token_file), the old token is used on, and the file is tried again after a
    /// second, later ten.
    pub fn token_file(path: impl Into<PathBuf>) -> Self {
        Self(Method::TokenFile(Arc::new(path.into())))
    }

    /// A user name and a password.
    pub fn basic(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self::secret_basic(&username.into(), password.into().into())
    }

    pub(crate) fn secret_token(token: SecretString) -> Self {
        Self(Method::Token(Arc::new(token)))
    }

    pub(crate) fn secret_basic(username: &str, password: SecretString) -> Self {
        Self(Method::Basic(Arc::new((username.to_owned(), password))))
    }

    pub(crate) fn exec(plugin: ExecPlugin) -> Self {
        Self(Method::Exec(Arc::new(plugin)))
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Method::None => f.write_str("None"),
            Method::Token(_) => f.write_str("Token"),
            Method::TokenFile(path) => write!(f, "TokenFile({})", path.display()),
            Method::Basic(_) => f.write_str("Basic"),
            Method::Exec(plugin) => write!(f, "Exec({})", plugin.command.display()),
        }
    }
}

/// Acting as somebody else, where the server allows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "written as literals with ..Default; mirrors the API"
)]
pub struct Impersonation {
    /// User name; required.
    pub user: String,
    /// UID.
    pub uid: Option<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// Extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Credentials cannot be had. No message holds any part of them.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The token file cannot be read.
    #[error("token file {} cannot be read", .path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Arc<std::io::Error>,
    },
    /// The token file holds nothing.
    #[error("token file {} is empty", .path.display())]
    EmptyTokenFile {
        /// The file.
        path: PathBuf,
    },
    /// Reading the token file takes too long.
    #[error("token file {} was not read within {limit:?}", .path.display())]
    TokenFileTimeout {
        /// The file.
        path: PathBuf,
        /// The limit ([`Timeouts::token_file`](crate::Timeouts::token_file)).
        limit: Duration,
    },
    /// The task that got credentials ended without any: it panicked, or the runtime that it ran on shuts down.
    #[error("what got the credentials was ended before it had any")]
    Interrupted,
    /// A credential cannot stand in a header.
    #[error("{what} holds characters that no HTTP header may have")]
    Header {
        /// Which one.
        what: &'static str,
    },
    /// [`Impersonation`] without a user: passing over it would act with rights that were to be given up.
    #[error("the user to act as is missing")]
    NobodyToActAs,
    /// The plugin cannot be started, or fails.
    #[error("credential plugin {command:?} failed: {problem}{}", hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
    Exec {
        /// The program.
        command: PathBuf,
        /// What went wrong, without anything that the plugin printed.
        problem: String,
        /// `installHint` of the kubeconfig, if the program is missing.
        hint: Option<String>,
    },
    /// The plugin did not finish in time, and was killed.
    #[error("credential plugin {command:?} did not finish within {limit:?}")]
    ExecTimeout {
        /// The program.
        command: PathBuf,
        /// The limit.
        limit: Duration,
    },
}
