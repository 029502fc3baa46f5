//! A tunnel through an HTTP proxy (RFC 9110, 9.3.6).

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Wire;
use crate::config::{Credentials, Endpoint};

/// The longest head of a proxy's answer that is read, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Asks the proxy at the other end of `stream` for a tunnel to `target`.
///
/// # Errors
///
/// What went wrong, without anything that the proxy said but its code.
pub(super) async fn open(
    stream: &mut Wire,
    credentials: Option<&Credentials>,
    target: &Endpoint,
) -> Result<(), String> {
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(credentials) = credentials {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(credentials.basic().as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await.map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())?;
    let mut head = Vec::new();
    // Byte by byte: what follows the head belongs to the tunnel.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_BYTES_MAX {
            return Err(format!("the head of its answer has over {HEAD_BYTES_MAX} bytes"));
        }
        head.push(stream.read_u8().await.map_err(|error| error.to_string())?);
    }
    match code(&head) {
        Some(200..=299) => Ok(()),
        Some(407) if credentials.is_some() => {
            Err("it answered HTTP 407: it refuses the user or the password".to_owned())
        }
        Some(407) => Err("it answered HTTP 407: it wants a user and a password".to_owned()),
        Some(code) => Err(format!("it answered HTTP {code}")),
        None => Err("it does not speak HTTP".to_owned()),
    }
}

/// The code of `HTTP/1.1 200 …`.
fn code(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok()
}
