//! The tower layer that puts credentials on requests.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use kubestrata_api_types::BoxFuture;
use tower::{Layer, Service};

use super::source::Source;
use super::{AuthError, Impersonation};
use crate::config::Config;
use crate::error::Phase;
use crate::wire::tell;

/// The tower layer that puts `Authorization`, `Impersonate-*` and `User-Agent` on requests, and after an answer 401 tries once with new
/// ones, where there is a source of them. That is safe for every verb: a server that answers 401 has done nothing.
///
/// What a request says itself it keeps (client-go's round trippers): a user agent; credentials, beside which no others are got;
/// and the user to act as, with all that belongs to him.
///
/// It fits any service of HTTP whose error can be made of an [`AuthError`], as a boxed error can, and whose bodies can be
/// cloned. The certificate of a plugin is not for this layer but for connections, and only a
/// [`Transport`](crate::Transport) shows it.
#[derive(Debug, Clone)]
pub struct AuthLayer {
    source: Arc<Source>,
    user_agent: HeaderValue,
    impersonation: Arc<HeaderMap>,
}

impl AuthLayer {
    /// Of a configuration: its credentials, user agent, and whom to act as.
    ///
    /// # Errors
    ///
    /// A name holds characters that no header may have, or there is nobody to act as.
    pub fn new(config: &Config) -> Result<Self, AuthError> {
        let source = Arc::new(Source::new(config.auth.clone(), &config.timeouts, &config.metrics));
        Self::over(source, config.impersonate.as_ref(), &config.user_agent)
    }

    pub(crate) fn over(
        source: Arc<Source>,
        impersonate: Option<&Impersonation>,
        user_agent: &str,
    ) -> Result<Self, AuthError> {
        let value_of =
            |text: &str, what| HeaderValue::from_str(text).map_err(|_| AuthError::Header { what });
        let user_agent = value_of(user_agent, "user agent")?;
        let mut headers = HeaderMap::new();
        let mut add = |name: HeaderName, text: &str, what| {
            headers.append(name, value_of(text, what)?);
            Ok(())
        };
        if let Some(other) = impersonate {
            if other.user.is_empty() {
                return Err(AuthError::NobodyToActAs);
            }
            add(ACT_AS, &other.user, "user name")?;
            if let Some(uid) = &other.uid {
                add(HeaderName::from_static("impersonate-uid"), uid, "uid")?;
            }
            for group in &other.groups {
                add(HeaderName::from_static("impersonate-group"), group, "group")?;
            }
            for (key, values) in &other.extra {
                // client-go percent-encodes what no header name may hold.
                let key = format!("impersonate-extra-{}", escape(key));
                let name = HeaderName::try_from(key)
                    .map_err(|_| AuthError::Header { what: "extra attribute" })?;
                for value in values {
                    add(name.clone(), value, "extra attribute")?;
                }
            }
        }
        Ok(Self { source, user_agent, impersonation: Arc::new(headers) })
    }
}

/// Whom to act as.
const ACT_AS: HeaderName = HeaderName::from_static("impersonate-user");

/// Percent-encodes every byte that is not allowed in a header name, and the percent sign itself.
fn escape(key: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            out.push(char::from(byte.to_ascii_lowercase()));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { inner, layer: self.clone() }
    }
}

/// See [`AuthLayer`].
#[derive(Debug, Clone)]
pub struct AuthService<S> {
    inner: S,
    layer: AuthLayer,
}

impl<S, B, R> Service<http::Request<B>> for AuthService<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: From<AuthError> + Send,
    B: Clone + Send + 'static,
    R: Send,
{
    type Response = http::Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<Result<http::Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let AuthLayer { source, user_agent, impersonation } = self.layer.clone();
        Box::pin(async move {
            let headers = request.headers_mut();
            headers.entry(USER_AGENT).or_insert(user_agent);
            if !headers.contains_key(ACT_AS) {
                for (name, value) in impersonation.iter() {
                    headers.append(name, value.clone());
                }
            }
            if headers.contains_key(AUTHORIZATION) {
                return inner.call(request).await;
            }
            tell(&request, Phase::Credentials);
            let credential = source.get(None).await?;
            if let Some(value) = &credential.header {
                request.headers_mut().insert(AUTHORIZATION, value.clone());
            }
            if !source.can_change() {
                return inner.call(request).await;
            }
            let response = inner.call(request.clone()).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            tell(&request, Phase::Credentials);
            let fresh = match source.get(Some(&credential)).await {
                Ok(fresh) if !fresh.is_same(&credential) => fresh,
                Ok(_) => return Ok(response),
                Err(error) => {
                    // The refusal stands, which tells the caller more than that nothing newer is to be had.
                    tracing::warn!(%error, "credentials were refused, and there are no new ones");
                    return Ok(response);
                }
            };
            tracing::debug!("credentials were refused; trying once with new ones");
            request.headers_mut().remove(AUTHORIZATION);
            if let Some(value) = &fresh.header {
                request.headers_mut().insert(AUTHORIZATION, value.clone());
            }
            drop(response);
            std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
            inner.call(request).await
        })
    }
}
