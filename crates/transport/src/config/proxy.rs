//! A proxy between us and the server.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};

use super::{Endpoint, ServerUrlError};

/// An HTTP proxy, through which connections are tunnelled (`CONNECT`). `Debug` and `Display` do not show its password.
///
/// The variables `HTTPS_PROXY` and `NO_PROXY` are not read: a proxy is in the kubeconfig (`proxy-url`) or in the program.
#[derive(Clone)]
pub struct Proxy {
    endpoint: Endpoint,
    authorization: Option<HeaderValue>,
}

impl Proxy {
    /// A proxy from its URL, `http://[USER[:PASSWORD]@]HOST[:PORT]`. User and password are percent-decoded.
    ///
    /// # Errors
    ///
    /// No such URL; other schemes (`https`, `socks5`) are not supported.
    pub fn new(url: &str) -> Result<Self, ServerUrlError> {
        let uri: Uri = url.trim().parse().map_err(|_| ServerUrlError::Malformed)?;
        if uri.scheme_str() != Some("http") {
            return Err(ServerUrlError::ProxyScheme);
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(ServerUrlError::Malformed)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let endpoint = Endpoint { host: host.into(), port: uri.port_u16().unwrap_or(80) };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let authorization = match authority.rsplit_once('@') {
            None => None,
            Some((credentials, _)) => Some(basic(credentials)?),
        };
        Ok(Self { endpoint, authorization })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }
}

/// The header for `USER[:PASSWORD]`.
fn basic(credentials: &str) -> Result<HeaderValue, ServerUrlError> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut pair = decode(user).ok_or(ServerUrlError::Malformed)?;
    pair.push(b':');
    pair.extend(decode(password).ok_or(ServerUrlError::Malformed)?);
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
        .map_err(|_| ServerUrlError::Malformed)?;
    value.set_sensitive(true);
    Ok(value)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next()?, bytes.next()?];
            out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.endpoint)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}
