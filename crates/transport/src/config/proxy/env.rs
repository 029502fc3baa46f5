//! The proxy that the environment names.

use std::ffi::OsString;

use http::Uri;
use http::uri::Scheme;
use secrecy::zeroize::Zeroizing;

use super::{NoProxy, Proxy};
use crate::config::{Config, ServerUrlError};

/// A proxy that the environment names cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {variable} names no proxy")]
#[non_exhaustive]
pub struct ProxyVariableError {
    /// The variable.
    pub variable: &'static str,
    /// Why.
    pub source: ServerUrlError,
}

impl Config {
    /// The same with the proxy that the environment names for this server, unless there is one already: `HTTPS_PROXY`
    /// or `HTTP_PROXY` by the server's scheme, if `NO_PROXY` does not except it ([`NoProxy`]). Of each, the name in
    /// small letters is taken where that in capitals is not set (`net/http.ProxyFromEnvironment` of Go 1.26).
    ///
    /// [`Config::infer`], [`Config::from_kubeconfig`] and [`Config::in_cluster`] do so by themselves.
    ///
    /// # Errors
    ///
    /// The variable holds no URL of a proxy. Go passes over it, and connects without. Or there is one for servers without
    /// TLS, and `REQUEST_METHOD` is set: in a CGI program whoever sends a request sets `HTTP_PROXY` by its header `Proxy`.
    pub fn proxy_from_env(mut self) -> Result<Self, ProxyVariableError> {
        if self.proxy.is_none() {
            self.proxy = from_variables(&self.server, &|name| std::env::var_os(name))?;
        }
        Ok(self)
    }
}

pub(in crate::config) fn from_variables(
    server: &Uri,
    variable: &dyn Fn(&'static str) -> Option<OsString>,
) -> Result<Option<Proxy>, ProxyVariableError> {
    let text = |name: &'static str| {
        // It can hold a password.
        let text = Zeroizing::new(variable(name)?.into_string().ok()?);
        (!text.trim().is_empty()).then_some((name, text))
    };
    let https = server.scheme() == Some(&Scheme::HTTPS);
    let names = if https { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let Some((name, url)) = names.into_iter().find_map(text) else { return Ok(None) };
    if !https && text("REQUEST_METHOD").is_some() {
        return Err(ProxyVariableError { variable: name, source: ServerUrlError::ProxyOfRequest });
    }
    let exceptions = ["NO_PROXY", "no_proxy"].into_iter().find_map(text);
    let rules = NoProxy::parse(exceptions.as_ref().map_or("", |(_, text)| text));
    let port = server.port_u16().unwrap_or(if https { 443 } else { 80 });
    if rules.matches(server.host().unwrap_or_default(), port) {
        return Ok(None);
    }
    // Go: what has no scheme is a host and perhaps a port.
    let url = if url.contains("://") { url } else { format!("http://{}", url.trim()).into() };
    let proxy = Proxy::new(&url);
    proxy.map(Some).map_err(|source| ProxyVariableError { variable: name, source })
}
