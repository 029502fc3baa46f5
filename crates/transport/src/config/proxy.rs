//! A proxy between us and the server.

mod env;
mod rules;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use http::{HeaderValue, Uri};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretSlice};

pub use self::env::ProxyVariableError;
pub(super) use self::env::from_variables;
pub use self::rules::NoProxy;
use super::{Endpoint, ServerUrlError};
use crate::auth::basic;
use crate::tls::Tls;

/// A proxy, through which connections are tunnelled. `Debug` and `Display` do not show its password.
///
/// The URL's scheme says how: `http` and `https` by `CONNECT` (RFC 9110, 9.3.6), with the credentials in
/// `Proxy-Authorization`; `socks5` (and `socks5h`, which is the same, as for Go) by RFC 1928, with the credentials of
/// RFC 1929 and names resolved by the proxy. To an `https` proxy we speak TLS first, and TLS with the server inside.
#[derive(Clone)]
pub struct Proxy {
    scheme: ProxyScheme,
    endpoint: Endpoint,
    credentials: Option<Credentials>,
    tls: Option<Tls>,
}

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyScheme {
    Http,
    Https,
    Socks5,
}

/// User and password, percent-decoded.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) user: Vec<u8>,
    pub(crate) password: SecretSlice<u8>,
}

impl Proxy {
    /// A proxy from its URL, `SCHEME://[USER[:PASSWORD]@]HOST[:PORT]` with scheme `http`, `https`, `socks5` or
    /// `socks5h`. The port is else 80, 443 or 1080. User and password are percent-decoded.
    ///
    /// # Errors
    ///
    /// No such URL, or credentials that the protocol cannot carry (SOCKS5: 1 to 255 bytes each).
    pub fn new(url: &str) -> Result<Self, ServerUrlError> {
        // Apart from the rest: what a URL is made of is not wiped.
        let (url, credentials) = split(url.trim());
        let uri: Uri = url.parse().map_err(|_| ServerUrlError::Malformed)?;
        let (scheme, port) = match uri.scheme_str() {
            Some("http") => (ProxyScheme::Http, 80),
            Some("https") => (ProxyScheme::Https, 443),
            Some("socks5" | "socks5h") => (ProxyScheme::Socks5, 1080),
            _ => return Err(ServerUrlError::ProxyScheme),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(ServerUrlError::Malformed)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let endpoint = Endpoint { host: host.into(), port: uri.port_u16().unwrap_or(port) };
        let credentials = match credentials {
            None => None,
            Some(text) => Some(Credentials::parse(text).ok_or(ServerUrlError::Malformed)?),
        };
        let fits = |length: usize| (1..=255).contains(&length);
        if scheme == ProxyScheme::Socks5
            && let Some(Credentials { user, password }) = &credentials
            && !(fits(user.len()) && fits(password.expose_secret().len()))
        {
            return Err(ServerUrlError::ProxyCredentials);
        }
        Ok(Self { scheme, endpoint, credentials, tls: None })
    }

    /// The same with how an `https` proxy is verified, and the certificate to show it. Otherwise it is verified as the
    /// server is (by its authority, or not at all if that is insecure), as by Go, and is shown no certificate.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    pub(crate) fn scheme(&self) -> ProxyScheme {
        self.scheme
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// How the proxy is verified, on the way to a server with this TLS.
    pub(crate) fn tls_for(&self, server: &Tls) -> Tls {
        self.tls.clone().unwrap_or_else(|| Tls {
            authority: server.authority.clone(),
            insecure: server.insecure,
            ..Tls::default()
        })
    }
}

impl Credentials {
    /// From `USER[:PASSWORD]`.
    fn parse(text: &str) -> Option<Self> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        Some(Self { user: decode(user)?.to_vec(), password: decode(password)?.to_vec().into() })
    }

    /// The value of `Proxy-Authorization`.
    pub(crate) fn basic(&self) -> HeaderValue {
        basic(&self.user, self.password.expose_secret())
    }
}

/// A URL without `USER[:PASSWORD]@`, and that without the `@`.
fn split(url: &str) -> (Cow<'_, str>, Option<&str>) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    match url[start..end].rsplit_once('@') {
        Some((credentials, _)) => {
            let host = start + credentials.len() + 1;
            (format!("{}{}", &url[..start], &url[host..]).into(), Some(credentials))
        }
        None => (url.into(), None),
    }
}

/// Percent-decodes. `None` for what cannot stand in a URL.
fn decode(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            b'!'..=b'~' => out.push(byte),
            _ => return None,
        }
    }
    Some(out)
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            ProxyScheme::Http => "http",
            ProxyScheme::Https => "https",
            ProxyScheme::Socks5 => "socks5",
        };
        write!(f, "{scheme}://{}", self.endpoint)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}
