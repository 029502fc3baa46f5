//! Which of a name's addresses a connection goes to (RFC 8305, "happy eyeballs").

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

/// Connects to the first address that answers. The next one is tried beside those before when `delay` has passed, and at
/// once when one fails; so an address that swallows packets costs `delay`, and not its share of the deadline.
///
/// # Errors
///
/// What the last attempt gave. Cancel-safe: the attempts are dropped.
pub(super) async fn first<T, F>(
    addresses: Vec<SocketAddr>,
    delay: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut left = interleaved(addresses).into_iter();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let Some(address) = left.next() else { return Err(last) };
    let mut attempts = FuturesUnordered::new();
    attempts.push(connect(address));
    let next = tokio::time::sleep(delay);
    tokio::pin!(next);
    loop {
        tokio::select! {
            // Attempts first: one that has just succeeded needs no other beside it.
            biased;
            Some(end) = attempts.next() => match end {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error,
            },
            () = &mut next, if left.len() > 0 => {}
        }
        match left.next() {
            Some(address) => attempts.push(connect(address)),
            None if attempts.is_empty() => return Err(last),
            None => {}
        }
        next.as_mut().reset(Instant::now() + delay);
    }
}

/// The resolver's order, but with the families in turn (RFC 8305, 4), beginning with the one that it prefers: where one of
/// them leads nowhere, every second address still may.
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let length = addresses.len();
    let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (preferred, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first);
    let mut families = [preferred.into_iter(), other.into_iter()];
    let mut out = Vec::with_capacity(length);
    while out.len() < length {
        for family in &mut families {
            out.extend(family.next());
        }
    }
    out
}

#[cfg(test)]
mod tests;
