//! Credentials, cached for as long as they may be.

mod credential;
mod pause;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubestrata_telemetry::Provider;
use parking_lot::{Mutex, RwLock};
use secrecy::ExposeSecret as _;
use tokio::time::Instant;

pub(crate) use self::credential::Credential;
pub(super) use self::credential::Made;
use self::pause::Pause;
use super::exec::{self, Meters};
use super::file::TokenFile;
use super::{Auth, AuthError, Method, header};
use crate::config::Timeouts;
use crate::errand::Errand;
use crate::tls::Identity;

/// How long a call waits for newer credentials where the old ones are still valid.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes and keeps credentials. One per transport: the layer that writes headers and the connector that shows
/// certificates share it.
#[derive(Debug)]
pub(crate) struct Source {
    state: Arc<State>,
    /// A file is read and a plugin runs in a task, so that many requests cause one refresh, and none of them has it in its
    /// hands. Not a part of the state, which it holds: dropped, it ends the refresh.
    refresh: Errand<Result<Arc<Credential>, AuthError>>,
}

#[derive(Debug)]
struct State {
    auth: Auth,
    file_period: Duration,
    /// Of a token in a file.
    file: Option<TokenFile>,
    exec_limit: Duration,
    /// Of a plugin.
    meters: Option<Meters>,
    current: RwLock<Option<Arc<Credential>>>,
    /// After a refresh that failed, until one does not.
    pause: Mutex<Option<Pause>>,
    /// Counts client certificates, each time another one is there. Release, paired with the Acquire of its reader, which
    /// then sees the certificate in `current`.
    identities: AtomicU64,
}

impl Source {
    pub(crate) fn new(auth: Auth, timeouts: &Timeouts, metrics: &Arc<dyn Provider>) -> Self {
        let file = match &auth.0 {
            Method::TokenFile(path) => Some(TokenFile::new(Arc::clone(path), timeouts.token_file)),
            _ => None,
        };
        let plugin = matches!(auth.0, Method::Exec(_));
        let state = State {
            auth,
            file_period: timeouts.files,
            file,
            exec_limit: timeouts.exec,
            meters: plugin.then(|| Meters::new(Arc::clone(metrics))),
            current: RwLock::new(None),
            pause: Mutex::new(None),
            identities: AtomicU64::new(0),
        };
        Self { state: Arc::new(state), refresh: Errand::default() }
    }

    /// The credentials to send. `rejected`, which the server answered with 401, are made anew first.
    ///
    /// What is still valid is used on where nothing newer can be had. A refresh that failed is not begun again before a
    /// pause; till then its error is everybody's who has nothing else.
    ///
    /// Cancel-safe: a refresh goes on for whoever asks next.
    pub(super) async fn get(
        &self,
        rejected: Option<&Arc<Credential>>,
    ) -> Result<Arc<Credential>, AuthError> {
        let state = &self.state;
        let got = match state.at_once(rejected) {
            Some(known) => known,
            // Nothing is waited for.
            None if !self.can_change() => Arc::clone(state).refresh(None).await,
            None => {
                let work = || Arc::clone(state).refresh(rejected.cloned());
                let refresh = self.refresh.run(work);
                let made = match state.still_valid(rejected) {
                    None => refresh.await,
                    // Good until it has ended: nobody has to wait for long for a newer one.
                    Some(old) => match tokio::time::timeout(PATIENCE, refresh).await {
                        Ok(made) => made,
                        Err(_) => Some(Ok(old)),
                    },
                };
                made.unwrap_or(Err(AuthError::Interrupted))
            }
        };
        let got = got.or_else(|error| state.still_valid(rejected).ok_or(error))?;
        state.used(&got);
        Ok(got)
    }

    /// Whether asking again after a 401 can give something new.
    pub(super) fn can_change(&self) -> bool {
        matches!(self.state.auth.0, Method::TokenFile(_) | Method::Exec(_))
    }

    /// Whether there may be a client certificate.
    pub(crate) fn has_identities(&self) -> bool {
        matches!(self.state.auth.0, Method::Exec(_))
    }

    /// How many client certificates there have been so far.
    pub(crate) fn identities(&self) -> u64 {
        self.state.identities.load(Ordering::Acquire)
    }

    /// The client certificate of the last credentials. Does not make any: a request has seen to that before it gets to a
    /// connection, where waiting for a plugin would look like a server that does not answer.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.state.current.read().as_ref()?.identity.clone()
    }
}

impl State {
    /// What can be told without a refresh: credentials that need none, or the error of the last one in the pause after it.
    fn at_once(
        &self,
        rejected: Option<&Arc<Credential>>,
    ) -> Option<Result<Arc<Credential>, AuthError>> {
        let now = Instant::now();
        let current = self.current.read().clone();
        let usable = current.filter(|current| {
            let again = rejected.is_some_and(|rejected| Arc::ptr_eq(rejected, current));
            let young = matches!(self.auth.0, Method::Exec(_)) && current.is_young(now);
            !current.is_due(now) && (!again || young)
        });
        let failed = || self.pause.lock().as_ref()?.error(now);
        usable.map(Ok).or_else(|| failed().map(Err))
    }

    /// The old credentials, if they have not come to their end.
    fn still_valid(&self, rejected: Option<&Arc<Credential>>) -> Option<Arc<Credential>> {
        let current = self.current.read().clone()?;
        let refused = rejected.is_some_and(|rejected| Arc::ptr_eq(rejected, &current));
        (!refused && current.is_valid(Instant::now())).then_some(current)
    }

    fn used(&self, credential: &Credential) {
        if let (Some(meters), Some((_, until))) = (&self.meters, credential.validity) {
            meters.used(until);
        }
    }

    async fn refresh(
        self: Arc<Self>,
        rejected: Option<Arc<Credential>>,
    ) -> Result<Arc<Credential>, AuthError> {
        // The one before this may have ended after our caller looked.
        if let Some(known) = self.at_once(rejected.as_ref()) {
            return known;
        }
        match self.make().await {
            Ok(made) => {
                *self.pause.lock() = None;
                Ok(self.replace(Credential::new(made)))
            }
            Err(error) => {
                let kept = self.still_valid(rejected.as_ref()).is_some();
                let mut pause = self.pause.lock();
                let next = Pause::after(pause.take(), error.clone(), Instant::now());
                let again_in = next.length();
                if kept {
                    tracing::warn!(%error, ?again_in, "the old credentials are kept");
                } else {
                    tracing::debug!(%error, ?again_in, "no credentials");
                }
                *pause = Some(next);
                Err(error)
            }
        }
    }

    fn replace(&self, fresh: Credential) -> Arc<Credential> {
        let fresh = Arc::new(fresh);
        let old = self.current.write().replace(Arc::clone(&fresh));
        let had = old.as_ref().and_then(|old| old.identity.as_ref());
        let other = had != fresh.identity.as_ref();
        let replaced = old.as_ref().and_then(|old| old.validity).filter(|_| other);
        if let (Some(meters), Some((from, _))) = (&self.meters, replaced) {
            meters.replaced(from);
        }
        if other {
            self.identities.fetch_add(1, Ordering::Release);
        }
        fresh
    }

    async fn make(&self) -> Result<Made, AuthError> {
        let mut made = Made::default();
        match &self.auth.0 {
            Method::None => {}
            Method::Token(token) => made.header = Some(header::bearer(token.expose_secret())?),
            Method::TokenFile(_) => {
                let file = self.file.as_ref().expect("a source of a file has it");
                made.header = Some(header::bearer(&file.read().await?)?);
                made.period = Some(self.file_period);
            }
            Method::Basic(pair) => {
                let (user, password) = (pair.0.as_bytes(), pair.1.expose_secret().as_bytes());
                made.header = Some(header::basic(user, password));
            }
            Method::Exec(plugin) => {
                let meters = self.meters.as_ref().expect("a source of a plugin has its meters");
                made = exec::run(plugin, self.exec_limit, meters).await?;
            }
        }
        Ok(made)
    }
}
