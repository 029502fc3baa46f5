//! A tunnel through an HTTP proxy (RFC 9110, 9.3.6).

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::config::{Endpoint, Proxy};
use crate::error::ConnectError;

/// The longest head of a proxy's answer that is read, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Asks the proxy at the other end of `stream` for a tunnel to `target`.
pub(super) async fn open(
    stream: &mut TcpStream,
    proxy: &Proxy,
    target: &Endpoint,
) -> Result<(), ConnectError> {
    let failed =
        |problem: String| ConnectError::Proxy { proxy: proxy.endpoint().to_string(), problem };
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(authorization) = proxy.authorization() {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await.map_err(|error| failed(error.to_string()))?;
    let mut head = Vec::new();
    // Byte by byte: what follows the head belongs to the tunnel.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_BYTES_MAX {
            return Err(failed(format!("the head of its answer has over {HEAD_BYTES_MAX} bytes")));
        }
        head.push(stream.read_u8().await.map_err(|error| failed(error.to_string()))?);
    }
    match code(&head) {
        Some(200..=299) => Ok(()),
        Some(code) => Err(failed(format!("it answered HTTP {code}"))),
        None => Err(failed("it does not speak HTTP".to_owned())),
    }
}

/// The code of `HTTP/1.1 200 …`.
fn code(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok()
}
