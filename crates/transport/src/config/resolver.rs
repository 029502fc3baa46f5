//! How names become addresses.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use kubestrata_api_types::BoxFuture;

type Resolve = dyn Fn(String, u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Gives the addresses of a name, in the order in which they should be tried. The default asks the system, which obeys
/// `/etc/hosts` and the rules of RFC 6724.
///
/// It is asked for each new connection, so that a change is followed with the next one. A connection that is open stays
/// where it is until it ends, as for client-go: what an address that is no longer named still serves is served.
#[derive(Clone, Default)]
pub struct Resolver(Option<Arc<Resolve>>);

impl Resolver {
    /// Asks this function, with the host of the server's URL (or of the proxy's) and the port. It runs within
    /// [`Timeouts::connect`](crate::Timeouts::connect), and is dropped when that has passed.
    pub fn new<F, A>(resolve: F) -> Self
    where
        F: Fn(String, u16) -> A + Send + Sync + 'static,
        A: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        Self(Some(Arc::new(move |host, port| Box::pin(resolve(host, port)))))
    }

    /// At most `most` addresses. Cancel-safe.
    pub(crate) async fn resolve(
        &self,
        host: &str,
        port: u16,
        most: usize,
    ) -> io::Result<Vec<SocketAddr>> {
        match &self.0 {
            None => Ok(tokio::net::lookup_host((host, port)).await?.take(most).collect()),
            Some(resolve) => {
                let mut addresses = resolve(host.to_owned(), port).await?;
                addresses.truncate(most);
                Ok(addresses)
            }
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Resolver(set)" } else { "Resolver(system)" })
    }
}
