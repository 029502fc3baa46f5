//! The value of the `Authorization` header, cached for as long as it may be.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::exec;
use super::{Auth, AuthError, Method};

/// How long a token from a file is used before the file is read again (client-go: one minute).
const FILE_PERIOD: Duration = Duration::from_secs(60);

/// Makes and keeps the header. One per transport.
#[derive(Debug)]
pub(super) struct Source {
    auth: Auth,
    /// Held while a file is read or a plugin runs, so that many requests cause one refresh.
    cached: Mutex<Option<Cached>>,
}

#[derive(Debug, Clone)]
struct Cached {
    value: HeaderValue,
    /// When to make a new one; `None` for never.
    until: Option<Instant>,
}

impl Source {
    pub(super) fn new(auth: Auth) -> Self {
        Self { auth, cached: Mutex::new(None) }
    }

    /// The header to send. A value equal to `rejected`, which the server answered with 401, is made anew first.
    pub(super) async fn header(
        &self,
        rejected: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, AuthError> {
        if matches!(self.auth.0, Method::None) {
            return Ok(None);
        }
        let mut cached = self.cached.lock().await;
        if let Some(cached) = &*cached
            && cached.until.is_none_or(|until| Instant::now() < until)
            && rejected != Some(&cached.value)
        {
            return Ok(Some(cached.value.clone()));
        }
        let fresh = match self.make().await {
            Ok(fresh) => fresh,
            // A file that is being replaced must not stop a client whose old token may still be good.
            Err(AuthError::TokenFile { .. } | AuthError::EmptyTokenFile { .. })
                if cached.is_some() && rejected.is_none() =>
            {
                return Ok(cached.as_ref().map(|cached| cached.value.clone()));
            }
            Err(error) => return Err(error),
        };
        let value = fresh.value.clone();
        *cached = Some(fresh);
        Ok(Some(value))
    }

    /// Whether asking again after a 401 can give something new.
    pub(super) fn can_change(&self) -> bool {
        matches!(self.auth.0, Method::TokenFile(_) | Method::Exec(_))
    }

    async fn make(&self) -> Result<Cached, AuthError> {
        match &self.auth.0 {
            Method::None => Ok(Cached { value: HeaderValue::from_static(""), until: None }),
            Method::Token(token) => {
                Ok(Cached { value: bearer(token.expose_secret())?, until: None })
            }
            Method::TokenFile(path) => Ok(Cached {
                value: bearer(read_token(path).await?.trim())?,
                until: Some(Instant::now() + FILE_PERIOD),
            }),
            Method::Basic(pair) => {
                let text = STANDARD.encode(format!("{}:{}", pair.0, pair.1.expose_secret()));
                Ok(Cached { value: sensitive("password", &format!("Basic {text}"))?, until: None })
            }
            Method::Exec(plugin) => {
                let token = exec::run(plugin).await?;
                Ok(Cached {
                    value: bearer(token.token.expose_secret())?,
                    until: token.lifetime.map(|lifetime| {
                        Instant::now() + lifetime.min(kubestrata_api_types::FOREVER)
                    }),
                })
            }
        }
    }
}

async fn read_token(path: &Path) -> Result<String, AuthError> {
    let text = tokio::fs::read_to_string(path)
        .await
        .map_err(|source| AuthError::TokenFile { path: path.to_owned(), source })?;
    if text.trim().is_empty() {
        return Err(AuthError::EmptyTokenFile { path: path.to_owned() });
    }
    Ok(text)
}

fn bearer(token: &str) -> Result<HeaderValue, AuthError> {
    sensitive("token", &format!("Bearer {token}"))
}

/// A header value that `Debug` does not show and HTTP/2 does not put into its compression table.
fn sensitive(what: &'static str, text: &str) -> Result<HeaderValue, AuthError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| AuthError::Header { what })?;
    value.set_sensitive(true);
    Ok(value)
}
