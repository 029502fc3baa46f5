//! Values of `Authorization`. What a header holds is not wiped, but all that it is made from is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use secrecy::zeroize::Zeroizing;

use super::AuthError;

/// `Bearer` and a token.
pub(super) fn bearer(token: &str) -> Result<HeaderValue, AuthError> {
    const SCHEME: &[u8] = b"Bearer ";
    let mut text = Zeroizing::new(Vec::with_capacity(SCHEME.len() + token.len()));
    text.extend_from_slice(SCHEME);
    text.extend_from_slice(token.as_bytes());
    sensitive(&text).ok_or(AuthError::Header { what: "token" })
}

/// `Basic`, a user name and a password (RFC 7617).
///
/// # Panics
///
/// Never: base64 fits every header, and its length is known before.
pub(crate) fn basic(user: &[u8], password: &[u8]) -> HeaderValue {
    const SCHEME: &[u8] = b"Basic ";
    // Each buffer is allocated once: one that grows leaves copies behind.
    let mut pair = Zeroizing::new(Vec::with_capacity(user.len() + 1 + password.len()));
    pair.extend_from_slice(user);
    pair.push(b':');
    pair.extend_from_slice(password);
    let length = SCHEME.len() + pair.len().div_ceil(3) * 4;
    let mut text = Zeroizing::new(vec![0; length]);
    text[..SCHEME.len()].copy_from_slice(SCHEME);
    let encoded = STANDARD.encode_slice(&*pair, &mut text[SCHEME.len()..]);
    encoded.expect("base64 with padding has four characters for three bytes begun");
    sensitive(&text).expect("base64 can stand in a header")
}

/// A header value that `Debug` does not show and HTTP/2 does not put into its compression table.
fn sensitive(text: &[u8]) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_bytes(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_their_standards_say() {
        // RFC 7617, 2 and 2.1; and each length of a last group.
        assert_eq!(basic(b"Aladdin", b"open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(basic(b"test", "123\u{a3}".as_bytes()), "Basic dGVzdDoxMjPCow==");
        assert_eq!(basic(b"a", b"b"), "Basic YTpi");
        assert_eq!(basic(b"", b""), "Basic Og==");
        assert!(basic(b"a", b"b").is_sensitive());
        let token = bearer("abc").unwrap();
        assert!(token == "Bearer abc" && token.is_sensitive());
        assert!(matches!(bearer("a\nb"), Err(AuthError::Header { what: "token" })));
    }
}
