//! Credentials, cached for as long as they may be.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use kubestrata_api_types::{FOREVER, Timestamp};
use kubestrata_telemetry::Provider;
use parking_lot::RwLock;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::exec::{self, Meters};
use super::{Auth, AuthError, Method};
use crate::config::Timeouts;
use crate::tls::{Identity, validity};

/// A plugin does not run again for a refusal of credentials that are younger than this: a server that refuses all it is
/// sent would else have one process started per request.
const REFUSAL_PERIOD: Duration = Duration::from_secs(1);

/// What a source gave.
pub(super) struct Made {
    pub(super) token: Option<SecretString>,
    /// A client certificate, which belongs to connections, not to requests.
    pub(super) identity: Option<Identity>,
    /// For how long it may be used. `None`: until the server refuses it.
    pub(super) lifetime: Option<Duration>,
}

/// Credentials in use.
#[derive(Debug)]
pub(crate) struct Credential {
    /// The value of `Authorization`, if there is one.
    pub(super) header: Option<HeaderValue>,
    identity: Option<Identity>,
    /// From when and until when the certificate is valid.
    validity: Option<(Timestamp, Timestamp)>,
    made: Instant,
    /// When to make new ones; `None` for never.
    until: Option<Instant>,
}

impl Credential {
    /// Whether the server would see any difference.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.header == other.header && self.identity == other.identity
    }
}

/// Makes and keeps credentials. One per transport: the layer that writes headers and the connector that shows
/// certificates share it.
#[derive(Debug)]
pub(crate) struct Source {
    auth: Auth,
    file_period: Duration,
    exec_limit: Duration,
    /// Of a plugin.
    meters: Option<Meters>,
    current: RwLock<Option<Arc<Credential>>>,
    /// Held while a file is read or a plugin runs, so that many requests cause one refresh.
    refresh: Mutex<Option<AuthError>>,
    /// Refreshes that failed. Relaxed everywhere: it is read before and after waiting for `refresh`, which orders it.
    failures: AtomicU64,
    /// Counts client certificates, each time another one is there. Release, paired with the Acquire of its reader, which
    /// then sees the certificate in `current`.
    identities: AtomicU64,
}

impl Source {
    pub(crate) fn new(auth: Auth, timeouts: &Timeouts, metrics: &Arc<dyn Provider>) -> Self {
        let plugin = matches!(auth.0, Method::Exec(_));
        Self {
            auth,
            meters: plugin.then(|| Meters::new(Arc::clone(metrics))),
            file_period: timeouts.files,
            exec_limit: timeouts.exec,
            current: RwLock::new(None),
            refresh: Mutex::new(None),
            failures: AtomicU64::new(0),
            identities: AtomicU64::new(0),
        }
    }

    /// The credentials to send. `rejected`, which the server answered with 401, are made anew first.
    ///
    /// Cancel-safe: a refresh that is given up is begun again by who waits for it.
    pub(super) async fn get(
        &self,
        rejected: Option<&Arc<Credential>>,
    ) -> Result<Arc<Credential>, AuthError> {
        if let Some(current) = self.usable(rejected) {
            self.used(&current);
            return Ok(current);
        }
        let failures = self.failures.load(Ordering::Relaxed);
        let mut failure = self.refresh.lock().await;
        if let Some(current) = self.usable(rejected) {
            return Ok(current);
        }
        // Whoever waited while a refresh failed shares its error: in turn, each would wait for a plugin that hangs.
        if self.failures.load(Ordering::Relaxed) > failures
            && let Some(error) = &*failure
        {
            return Err(error.clone());
        }
        let old = self.current.read().clone();
        let made = match self.make().await {
            Ok(made) => made,
            // A file that is being replaced must not stop a client whose old token may still be good.
            Err(error @ (AuthError::TokenFile { .. } | AuthError::EmptyTokenFile { .. })) => {
                if let (Some(old), None) = (old, rejected) {
                    tracing::warn!(%error, "the old token is kept");
                    return Ok(old);
                }
                return Err(error);
            }
            Err(error) => {
                *failure = Some(error.clone());
                self.failures.fetch_add(1, Ordering::Relaxed);
                return Err(error);
            }
        };
        let fresh = Arc::new(made);
        let had = old.as_ref().and_then(|old| old.identity.as_ref());
        let other = had != fresh.identity.as_ref();
        let replaced = old.as_ref().and_then(|old| old.validity).filter(|_| other);
        if let (Some(meters), Some((from, _))) = (&self.meters, replaced) {
            meters.replaced(from);
        }
        self.used(&fresh);
        *self.current.write() = Some(Arc::clone(&fresh));
        if other {
            self.identities.fetch_add(1, Ordering::Release);
        }
        Ok(fresh)
    }

    fn used(&self, credential: &Credential) {
        if let (Some(meters), Some((_, until))) = (&self.meters, credential.validity) {
            meters.used(until);
        }
    }

    fn usable(&self, rejected: Option<&Arc<Credential>>) -> Option<Arc<Credential>> {
        let current = self.current.read();
        let current = current.as_ref()?;
        let now = Instant::now();
        if current.until.is_some_and(|until| now >= until) {
            return None;
        }
        let again = rejected.is_some_and(|rejected| Arc::ptr_eq(rejected, current));
        let young = matches!(self.auth.0, Method::Exec(_)) && now < current.made + REFUSAL_PERIOD;
        (!again || young).then(|| Arc::clone(current))
    }

    /// Whether asking again after a 401 can give something new.
    pub(super) fn can_change(&self) -> bool {
        matches!(self.auth.0, Method::TokenFile(_) | Method::Exec(_))
    }

    /// Whether there may be a client certificate.
    pub(crate) fn has_identities(&self) -> bool {
        matches!(self.auth.0, Method::Exec(_))
    }

    /// How many client certificates there have been so far.
    pub(crate) fn identities(&self) -> u64 {
        self.identities.load(Ordering::Acquire)
    }

    /// The client certificate of the last credentials. Does not make any: a request has seen to that before it gets to a
    /// connection, where waiting for a plugin would look like a server that does not answer.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.current.read().as_ref()?.identity.clone()
    }

    async fn make(&self) -> Result<Credential, AuthError> {
        let (mut header, mut identity, mut lifetime) = (None, None, None);
        match &self.auth.0 {
            Method::None => {}
            Method::Token(token) => header = Some(bearer(token.expose_secret())?),
            Method::TokenFile(path) => {
                let token = read_token(path).await?;
                header = Some(bearer(token.expose_secret().trim())?);
                lifetime = Some(self.file_period);
            }
            Method::Basic(pair) => {
                let text = STANDARD.encode(format!("{}:{}", pair.0, pair.1.expose_secret()));
                header = Some(sensitive("password", &format!("Basic {text}"))?);
            }
            Method::Exec(plugin) => {
                let meters = self.meters.as_ref().expect("a source of a plugin has its meters");
                let made = exec::run(plugin, self.exec_limit, meters).await?;
                header = made.token.map(|token| bearer(token.expose_secret())).transpose()?;
                (identity, lifetime) = (made.identity, made.lifetime);
            }
        }
        let made = Instant::now();
        let until = lifetime.map(|lifetime| made + lifetime.min(FOREVER));
        let validity = identity.as_ref().and_then(|identity| validity(&identity.certificate));
        Ok(Credential { header, identity, validity, made, until })
    }
}

async fn read_token(path: &Path) -> Result<SecretString, AuthError> {
    let text = tokio::fs::read_to_string(path).await.map(SecretString::from).map_err(|source| {
        AuthError::TokenFile { path: path.to_owned(), source: Arc::new(source) }
    })?;
    if text.expose_secret().trim().is_empty() {
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
