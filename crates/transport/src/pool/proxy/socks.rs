//! A tunnel through a SOCKS5 proxy (RFC 1928, with the user and password of RFC 1929).

use std::net::IpAddr;

use secrecy::ExposeSecret as _;
use secrecy::zeroize::Zeroizing;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Wire;
use crate::config::{Credentials, Endpoint};

const VERSION: u8 = 5;
const NO_CREDENTIALS: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
/// The version of the exchange of RFC 1929, and its success.
const CREDENTIALS_VERSION: u8 = 1;
const SUCCESS: u8 = 0;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Asks the proxy at the other end of `stream` for a tunnel to `target`. A name is resolved by the proxy: ours may not
/// know it, and Go does the same.
///
/// # Errors
///
/// What went wrong.
pub(super) async fn open(
    stream: &mut Wire,
    credentials: Option<&Credentials>,
    target: &Endpoint,
) -> Result<(), String> {
    greet(stream, credentials).await?;
    let mut request = vec![VERSION, CONNECT, 0];
    match target.host.parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(IPV4);
            request.extend_from_slice(&address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(IPV6);
            request.extend_from_slice(&address.octets());
        }
        Err(_) => {
            let length = u8::try_from(target.host.len())
                .map_err(|_| "the name of the server has over 255 bytes".to_owned())?;
            request.extend_from_slice(&[NAME, length]);
            request.extend_from_slice(target.host.as_bytes());
        }
    }
    request.extend_from_slice(&target.port.to_be_bytes());
    send(stream, &request).await?;
    let [version, reply, _, kind] = receive(stream).await?;
    if version != VERSION {
        return Err(NO_SOCKS.to_owned());
    }
    if reply != SUCCESS {
        return Err(format!("it answered {reply}: {}", meaning(reply)));
    }
    // The address that it connects from, and the port; of no use to us, but before the tunnel.
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(receive::<1>(stream).await?[0]),
        _ => return Err(NO_SOCKS.to_owned()),
    };
    let mut rest = vec![0; length + 2];
    stream.read_exact(&mut rest).await.map_err(|error| error.to_string())?;
    Ok(())
}

const NO_SOCKS: &str = "it does not speak SOCKS5";

/// Agrees on how we say who we are, and says it.
async fn greet(stream: &mut Wire, credentials: Option<&Credentials>) -> Result<(), String> {
    match credentials {
        None => send(stream, &[VERSION, 1, NO_CREDENTIALS]).await?,
        // Both are offered: a proxy that asks for nothing need not be told.
        Some(_) => send(stream, &[VERSION, 2, NO_CREDENTIALS, USER_AND_PASSWORD]).await?,
    }
    let [version, method] = receive(stream).await?;
    match (version, method, credentials) {
        (VERSION, NO_CREDENTIALS, _) => Ok(()),
        (VERSION, USER_AND_PASSWORD, Some(credentials)) => log_in(stream, credentials).await,
        (VERSION, NO_METHOD, None) => Err("it wants a user and a password".to_owned()),
        (VERSION, ..) => Err("it wants to know us in a way that we do not know".to_owned()),
        _ => Err(NO_SOCKS.to_owned()),
    }
}

async fn log_in(stream: &mut Wire, credentials: &Credentials) -> Result<(), String> {
    let mut request = Zeroizing::new(Vec::with_capacity(513));
    request.push(CREDENTIALS_VERSION);
    for part in [&credentials.user[..], credentials.password.expose_secret()] {
        request.push(u8::try_from(part.len()).expect("the length was checked with the URL"));
        request.extend_from_slice(part);
    }
    send(stream, &request).await?;
    match receive(stream).await? {
        [_, SUCCESS] => Ok(()),
        _ => Err("it refuses the user or the password".to_owned()),
    }
}

async fn send(stream: &mut Wire, bytes: &[u8]) -> Result<(), String> {
    stream.write_all(bytes).await.map_err(|error| error.to_string())?;
    stream.flush().await.map_err(|error| error.to_string())
}

async fn receive<const N: usize>(stream: &mut Wire) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn meaning(reply: u8) -> &'static str {
    match reply {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "the network cannot be reached",
        4 => "the server cannot be reached",
        5 => "the server refuses the connection",
        6 => "the server is too far away",
        7 => "it does not know the command",
        8 => "it does not know this kind of address",
        _ => "unknown",
    }
}
