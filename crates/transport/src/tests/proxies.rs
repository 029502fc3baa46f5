//! Proxies: small ones of our own, between a transport and a server on loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use kubestrata_api_types::{BoxError, ListWatch as _, WatchOptions};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::clock::{Still, closed_port};
use super::server::{Authority, Identity, Server};
use super::sockets::{chain, pod_or_watch, transport_error};
use super::{create, get, pods};
use crate::{Config, ConnectError, Pem, Phase, Proxy, Tls, Transport, TransportError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connect,
    Socks,
    /// Takes connections, and says nothing.
    Silent,
}

/// A proxy on loopback, for user `me` with password `p@ss` if `locked`.
struct TestProxy {
    address: SocketAddr,
    /// Where tunnels were asked for to.
    targets: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl TestProxy {
    async fn start(kind: Kind, locked: bool, tls: Option<&Identity>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let targets = Arc::new(Mutex::new(Vec::new()));
        let (seen, tls) = (Arc::clone(&targets), tls.map(|tls| Arc::clone(&tls.config)));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut tunnels = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, acceptor) = (Arc::clone(&seen), tls.clone().map(TlsAcceptor::from));
                // How a tunnel ends is what the tests look at from the other side.
                tunnels.spawn(async move {
                    let _ = match acceptor {
                        None => tunnel(stream, kind, locked, &seen).await,
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => tunnel(stream, kind, locked, &seen).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self { address, targets, _tasks: tasks }
    }
}

async fn tunnel<T>(
    mut client: T,
    kind: Kind,
    locked: bool,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let target = match kind {
        Kind::Connect => connect(&mut client, locked).await?,
        Kind::Socks => socks(&mut client, locked).await?,
        Kind::Silent => std::future::pending().await,
    };
    let Some(target) = target else { return Ok(()) };
    seen.lock().push(target.clone());
    // The one name that the tests use, which no resolver knows.
    let mut server = TcpStream::connect(target.replace("api.test", "127.0.0.1")).await?;
    let granted: &[u8] = match kind {
        // A proxy of the older version, that has something to say.
        Kind::Connect => b"HTTP/1.0 200 Connection established\r\nvia: test\r\n\r\n",
        // The address is a name of four bytes.
        _ => b"\x05\x00\x00\x03\x04here\x00\x50",
    };
    client.write_all(granted).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}

async fn connect<T>(client: &mut T, locked: bool) -> std::io::Result<Option<String>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap();
    assert!(head.contains(&format!("\r\nHost: {target}\r\n")), "{head}");
    if locked && !head.contains("\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n") {
        client.write_all(b"HTTP/1.1 407 Who are you\r\ncontent-length: 6\r\n\r\nsecret").await?;
        return Ok(None);
    }
    Ok(Some(target.to_owned()))
}

async fn socks<T>(client: &mut T, locked: bool) -> std::io::Result<Option<String>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    assert_eq!(client.read_u8().await?, 5);
    let mut methods = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut methods).await?;
    match (locked, methods.contains(&2)) {
        (false, _) => client.write_all(&[5, 0]).await?,
        (true, false) => {
            client.write_all(&[5, 0xff]).await?;
            return Ok(None);
        }
        (true, true) => {
            client.write_all(&[5, 2]).await?;
            assert_eq!(client.read_u8().await?, 1);
            let user = text(client).await?;
            let good = (user, text(client).await?) == ("me".to_owned(), "p@ss".to_owned());
            client.write_all(&[1, u8::from(!good)]).await?;
            if !good {
                return Ok(None);
            }
        }
    }
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    assert_eq!(request[..3], [5, 1, 0]);
    let host = match request[3] {
        1 => std::net::Ipv4Addr::from(client.read_u32().await?).to_string(),
        3 => text(client).await?,
        _ => format!("[{}]", std::net::Ipv6Addr::from(client.read_u128().await?)),
    };
    let target = format!("{host}:{}", client.read_u16().await?);
    if host == "forbidden.test" {
        client.write_all(&[5, 2, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        return Ok(None);
    }
    Ok(Some(target))
}

async fn text<T: AsyncRead + Unpin>(client: &mut T) -> std::io::Result<String> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(String::from_utf8(bytes).unwrap())
}

/// A configuration that reaches the server through this proxy.
fn through(server: &Server, url: &str) -> Config {
    let mut config = server.config();
    config.proxy = Some(Proxy::new(url).unwrap());
    config
}

async fn refused(config: Config) -> (String, BoxError) {
    let error = Transport::connect(config).unwrap().oneshot(create()).await.unwrap_err();
    assert!(transport_error(&error).is_unsent(), "{error:?}");
    (chain(&*error), error)
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_proxy_makes_a_tunnel() {
    let _still = Still::new();
    let server = Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await;
    let authority = Authority::new("proxies");
    let identity = authority.server(&["127.0.0.1"], |_| {});
    for (scheme, kind) in
        [("http", Kind::Connect), ("https", Kind::Connect), ("socks5", Kind::Socks)]
    {
        for locked in [false, true] {
            let tls = (scheme == "https").then_some(&identity);
            let proxy = TestProxy::start(kind, locked, tls).await;
            let connect = |credentials: &str| {
                let mut config =
                    through(&server, &format!("{scheme}://{credentials}{}", proxy.address));
                let trusted = Tls::trust(Pem::inline(authority.pem()));
                config.proxy = config.proxy.map(|proxy| proxy.tls(trusted));
                config
            };
            let transport = Transport::connect(connect("me:p%40ss@")).unwrap();
            transport.clone().oneshot(create()).await.unwrap();
            let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
            watch.next().await.unwrap().unwrap();
            assert_eq!(server.log.last().version, http::Version::HTTP_2);
            assert_eq!(*proxy.targets.lock(), vec![server.address.to_string(); 2]);
            if locked {
                for (credentials, want) in [
                    ("", "it wants a user and a password"),
                    ("me:p@", "it refuses the user or the password"),
                ] {
                    let (text, error) = refused(connect(credentials)).await;
                    let start = format!(
                        "no connection to the server: proxy {scheme}://{} opens no tunnel: ",
                        proxy.address
                    );
                    assert!(text.starts_with(&start) && text.ends_with(want), "{text}");
                    assert!(!text.contains("secret") && !format!("{error:?}").contains("secret"));
                }
            } else {
                Transport::connect(connect("")).unwrap().oneshot(get("a")).await.unwrap();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_resolved_by_the_proxy() {
    let _still = Still::new();
    let server = Server::start(Some(Identity::issued(&["api.test"])), pod_or_watch).await;
    for (scheme, kind) in [("http", Kind::Connect), ("socks5", Kind::Socks)] {
        let proxy = TestProxy::start(kind, false, None).await;
        let mut config = through(&server, &format!("{scheme}://{}", proxy.address));
        let target = format!("api.test:{}", server.address.port());
        config.server = format!("https://{target}").parse().unwrap();
        Transport::connect(config.clone()).unwrap().oneshot(get("a")).await.unwrap();
        assert_eq!(*proxy.targets.lock(), [target]);
        if kind == Kind::Socks {
            config.server = "https://forbidden.test".parse().unwrap();
            let (text, _) = refused(config).await;
            assert!(text.ends_with("it answered 2: not allowed by its rules"), "{text}");
        }
    }
}

/// A server without TLS is reached by a tunnel too.
#[tokio::test(start_paused = true)]
async fn plain_servers_are_tunnelled_to() {
    let _still = Still::new();
    let server = Server::start(None, pod_or_watch).await;
    let proxy = TestProxy::start(Kind::Connect, false, None).await;
    let config = through(&server, &format!("http://{}", proxy.address));
    Transport::connect(config).unwrap().oneshot(get("a")).await.unwrap();
    assert_eq!(server.log.last().target, "/api/v1/namespaces/d/pods/a");
    assert_eq!(*proxy.targets.lock(), [server.address.to_string()]);
}

/// As for Go, a proxy that speaks TLS is verified as the server is, unless something else is said.
#[tokio::test]
async fn a_proxy_with_tls_is_verified() {
    let authority = Authority::new("both");
    let identity = authority.server(&["127.0.0.1"], |_| {});
    let server = Server::start(Some(identity.clone()), pod_or_watch).await;
    let proxy = TestProxy::start(Kind::Connect, false, Some(&identity)).await;
    let config = through(&server, &format!("https://{}", proxy.address));
    Transport::connect(config.clone()).unwrap().oneshot(get("a")).await.unwrap();
    let mut other = config.clone();
    other.proxy = other.proxy.map(|proxy| proxy.tls(Tls::default()));
    let (text, _) = refused(other).await;
    let want = format!(
        "proxy https://{0} cannot be used: the certificate of {0} is refused: it is issued by \"CN=both\", which the \
         platform does not trust",
        proxy.address
    );
    assert!(text.contains(&want), "{text}");
    // What goes wrong behind the proxy names it too.
    let mut other = config;
    other.tls.server_name = Some("other".to_owned());
    let (text, _) = refused(other).await;
    let want = format!("{} (through proxy https://{})", server.address, proxy.address);
    assert!(text.contains(&want) && text.contains("not valid for name \"other\""), "{text}");
}

#[tokio::test]
async fn a_proxy_that_is_not_there_or_hangs_is_named() {
    let server = Server::start(None, pod_or_watch).await;
    let (_closed, port) = closed_port("127.0.0.1").unwrap();
    let (text, _) = refused(through(&server, &format!("http://{port}"))).await;
    assert!(
        text.contains(&format!("proxy http://{port} cannot be used: {port} cannot be reached")),
        "{text}"
    );
    for scheme in ["http", "socks5", "https"] {
        let proxy = TestProxy::start(Kind::Silent, false, None).await;
        let mut config = through(&server, &format!("{scheme}://{}", proxy.address));
        config.timeouts.connect = std::time::Duration::from_millis(50);
        let (text, error) = refused(config).await;
        assert_eq!(transport_error(&error).timeout(), Some(Phase::Connect));
        assert!(text.contains(&format!("through proxy {scheme}://{}", proxy.address)), "{text}");
    }
    // A server where a proxy should be.
    let (text, error) = refused(through(&server, &format!("socks5://{}", server.address))).await;
    let TransportError::Connect(error) = transport_error(&error) else { panic!("{error:?}") };
    assert!(matches!(error.get(), ConnectError::Proxy { .. }), "{text}");
}
