//! The server over sockets, seen by the project's own client.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use kubestrata_api_types::{
    Accept, ApiRequest, Collection, Event, Format, GetOptions, ListOptions, ListPart,
    ListWatch as _, Object as _, Operation, Payload, ResourceType, Scope, Status, VersionMatch,
    WatchOptions, WriteOptions, cause_ref,
};
use kubestrata_transport::{Config, Protocol, Transport};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

use super::{Listen, ListenError, Serving};
use crate::Server;

const CONFIG_MAPS: ResourceType =
    ResourceType::from_static("", "v1", "ConfigMap", "configmaps", Scope::Namespaced);

/// How long is waited for what comes at once, unless the machine is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

/// On loopback, a free port, with time for a handshake on a busy machine.
fn listen() -> Listen {
    let mut listen = Listen::new();
    listen.handshake_timeout = PATIENCE;
    listen
}

fn collection() -> Collection {
    Collection::new(CONFIG_MAPS).in_namespace("default")
}

fn create(name: &str) -> ApiRequest {
    let body = Payload::json(format!(r#"{{"metadata":{{"name":"{name}"}}}}"#));
    let options = WriteOptions::default();
    ApiRequest::new(collection(), Operation::Create { name: None, body, options })
}

fn get(name: &str) -> ApiRequest {
    let options = GetOptions::default();
    ApiRequest::new(collection(), Operation::Get { name: name.into(), options })
}

/// The configuration that the server's kubeconfig gives, with time for a busy machine.
fn config(serving: &Serving) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    serving.write_kubeconfig(&path).unwrap();
    let mut config = Config::from_kubeconfig(path).unwrap();
    let timeouts = &mut config.timeouts;
    for limit in [&mut timeouts.wait, &mut timeouts.connect, &mut timeouts.tls] {
        *limit = PATIENCE;
    }
    config
}

fn transport(serving: &Serving) -> Transport {
    Transport::connect(config(serving)).unwrap()
}

#[tokio::test]
async fn every_version_of_http_is_served() {
    for tls in [false, true] {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let mut listen = listen();
            listen.tls = tls;
            let server = Server::start_default();
            let serving = server.listen(listen).await.unwrap();
            assert_eq!(serving.url().starts_with("https"), tls);
            let mut config = config(&serving);
            config.protocol = protocol;
            let transport = Transport::connect(config).unwrap();
            let mut watch = transport.watch(&collection(), WatchOptions::default()).await.unwrap();
            for name in ["a", "b"] {
                transport.clone().oneshot(create(name)).await.unwrap();
            }
            let mut names = Vec::new();
            while names.len() < 2 {
                match watch.next().await.unwrap().unwrap() {
                    Event::Added(object) => names.push(object.name().to_owned()),
                    other => panic!("{other:?} with tls={tls} over {protocol:?}"),
                }
            }
            assert_eq!(names, ["a", "b"]);
            assert_eq!(transport.raw_get("/readyz").await.unwrap(), "ok");
        }
    }
}

/// The same objects, the same way, with a socket or without, in either encoding.
#[tokio::test]
async fn sockets_and_the_same_process_give_the_same() {
    let server = Server::start_default();
    let serving = server.listen(listen().tls()).await.unwrap();
    let over_sockets = transport(&serving);
    let in_process = Transport::over(server, Config::in_process()).unwrap();
    over_sockets.clone().oneshot(create("a")).await.unwrap();
    in_process.clone().oneshot(create("b")).await.unwrap();
    for format in [Format::Json, Format::Protobuf] {
        let collection = collection().accept(Accept::Only(format));
        let options = WatchOptions {
            version_match: Some(VersionMatch::NotOlderThan),
            send_initial_events: Some(true),
            allow_bookmarks: true,
            ..WatchOptions::default()
        };
        let mut seen = Vec::new();
        for transport in [&over_sockets, &in_process] {
            let mut objects = Vec::new();
            let mut watch = transport.watch(&collection, options.clone()).await.unwrap();
            loop {
                match watch.next().await.unwrap().unwrap() {
                    Event::Added(object) => objects.push(object.bytes().to_vec()),
                    Event::Bookmark(bookmark) if bookmark.initial_events_end => break,
                    other => panic!("{other:?}"),
                }
            }
            let list = transport.list(&collection, ListOptions::default()).await.unwrap();
            let items = list.map(Result::unwrap).filter_map(|part| async {
                match part {
                    ListPart::Item(item) => Some(item.name().to_owned()),
                    _ => None,
                }
            });
            let mut names: Vec<_> = items.collect().await;
            names.sort_unstable();
            assert_eq!(names, ["a", "b"]);
            seen.push(objects);
        }
        assert_eq!(seen[0].len(), 2);
        assert_eq!(seen[0], seen[1], "{format:?}");
    }
}

#[tokio::test]
async fn a_token_is_asked_for() {
    // Over TLS, without which no client sends the token of a kubeconfig.
    let listen = listen().tls().token("s3\"cret");
    let serving = Server::start_default().listen(listen).await.unwrap();
    transport(&serving).oneshot(create("a")).await.unwrap();
    for auth in [
        kubestrata_transport::Auth::none(),
        kubestrata_transport::Auth::token("s3"),
        kubestrata_transport::Auth::token("s3\"cretX"),
        kubestrata_transport::Auth::basic("s3\"cret", ""),
    ] {
        let config = config(&serving).auth(auth);
        let error = Transport::connect(config).unwrap().oneshot(get("a")).await.unwrap_err();
        assert!(cause_ref::<Status>(&*error).unwrap().is_unauthorized());
    }
    assert!(!format!("{serving:?}").contains("cret"));
}

#[tokio::test]
async fn a_server_that_others_can_reach_needs_a_token() {
    let open = listen().address(([0, 0, 0, 0], 0).into());
    let error = Server::start_default().listen(open.clone()).await.unwrap_err();
    assert!(matches!(error, ListenError::Exposed { .. }), "{error}");
    let serving = Server::start_default().listen(open.tls().token("t")).await.unwrap();
    assert!(serving.url().starts_with("https://127.0.0.1:"));
    transport(&serving).oneshot(create("a")).await.unwrap();
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let serving = Server::start_default().listen(listen()).await.unwrap();
    let taken = listen().address(serving.address());
    let error = Server::start_default().listen(taken).await.unwrap_err().to_string();
    assert_eq!(error, format!("cannot listen on {}", serving.address()));
}

#[cfg(unix)]
#[tokio::test]
async fn the_kubeconfig_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let serving = Server::start_default().listen(listen().token("t")).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, "old").unwrap();
    serving.write_kubeconfig(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), serving.kubeconfig());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(serving.write_kubeconfig(folder.path().join("no/such/folder")).is_err());
}

/// Whether the server there has this object. The kernel may have given the port to somebody else meanwhile, or to the
/// connection itself, which then talks to itself.
async fn is_served(address: SocketAddr, name: &str) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.map(|_| answer == *b"HTTP/1.1 200")
    };
    // Somebody who takes connections and says nothing is another.
    timeout(PATIENCE, ask).await.is_ok_and(|asked| asked.unwrap_or(false))
}

#[tokio::test]
async fn a_shutdown_ends_requests_and_cuts_watches() {
    let mut listen = listen();
    listen.drain = Duration::from_millis(200);
    let serving = Server::start_default().listen(listen).await.unwrap();
    let (address, transport) = (serving.address(), transport(&serving));
    let mut watch = transport.watch(&collection(), WatchOptions::default()).await.unwrap();
    transport.clone().oneshot(create("a-shutdown")).await.unwrap();
    watch.next().await.unwrap().unwrap();
    assert!(is_served(address, "a-shutdown").await);
    let started = Instant::now();
    serving.shutdown().await;
    assert!(started.elapsed() >= Duration::from_millis(200), "{:?}", started.elapsed());
    let end = timeout(PATIENCE, watch.next()).await.unwrap();
    assert!(end.is_none_or(|event| event.is_err()));
    assert!(!is_served(address, "a-shutdown").await);
}

#[tokio::test]
async fn a_shutdown_without_watches_is_quick() {
    let mut listen = listen();
    listen.drain = Duration::from_secs(600);
    let serving = Server::start_default().listen(listen).await.unwrap();
    transport(&serving).oneshot(create("a")).await.unwrap();
    timeout(PATIENCE, serving.shutdown()).await.unwrap();
}

#[tokio::test]
async fn connections_are_bounded() {
    let mut listen = listen();
    listen.connections = 2;
    let serving = Server::start_default().listen(listen).await.unwrap();
    let ask = |mut stream: TcpStream| async move {
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        stream
    };
    let connect = || TcpStream::connect(serving.address());
    let first = ask(connect().await.unwrap()).await;
    let _second = ask(connect().await.unwrap()).await;
    // The third is taken by the kernel, and served when there is room.
    let third = ask(connect().await.unwrap());
    tokio::pin!(third);
    let early = timeout(Duration::from_millis(100), third.as_mut()).await;
    assert!(early.is_err());
    drop(first);
    timeout(PATIENCE, third).await.unwrap();
}

/// A client that sends nothing, or a part of a head, keeps no connection for ever.
#[tokio::test]
async fn slow_heads_are_given_up() {
    for tls in [false, true] {
        for start in ["", "G", "PRI * HT", "GET / HTTP/1.1\r\nhost:"] {
            let mut listen = listen();
            listen.tls = tls;
            listen.head_timeout = Duration::from_millis(100);
            listen.handshake_timeout = Duration::from_millis(100);
            let serving = Server::start_default().listen(listen).await.unwrap();
            let mut stream = TcpStream::connect(serving.address()).await.unwrap();
            stream.write_all(start.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let end = stream.read_to_end(&mut answer);
            // Closed by an end or by a reset: both free the connection.
            let _ = timeout(PATIENCE, end).await.unwrap();
        }
    }
}
