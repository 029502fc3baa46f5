//! Connections: TCP, TLS, HTTP/1.1 and HTTP/2, on loopback in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use http::Version;
use kubestrata_api_types::{ListWatch as _, WatchOptions, cause_ref};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use super::clock::{SOON, Still, closed_port, really, until};
use super::server::{End, Identity, Seen, Server, json, patient, pieces};
use super::{create, frame, get, pod, pods};
use crate::{Config, ConnectError, Limits, Phase, Protocol, Retry, Transport, TransportError};

pub(super) async fn pod_or_watch(seen: Seen) -> http::Response<super::server::Body> {
    if seen.target.contains("watch=true") {
        pieces(vec![frame("ADDED", &pod("w", 1)).into()], End::Silent)
    } else {
        json(pod("a", 1))
    }
}

pub(super) fn transport_error(error: &kubestrata_api_types::BoxError) -> &TransportError {
    cause_ref(&**error).unwrap_or_else(|| panic!("{error:?} holds no TransportError"))
}

/// All messages of a chain of errors.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let texts: Vec<_> = std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect();
    texts.join(": ")
}

#[tokio::test(start_paused = true)]
async fn plain_http_reuses_its_connection() {
    let _still = Still::new();
    let server = Server::start(None, pod_or_watch).await;
    let transport = server.transport();
    for _ in 0..5 {
        transport.clone().oneshot(get("a")).await.unwrap();
    }
    assert_eq!(server.accepted(), 1);
    let seen = server.log.last();
    assert_eq!(seen.version, Version::HTTP_11);
    assert_eq!(seen.headers["host"], server.address.to_string());
    assert_eq!(seen.target, "/api/v1/namespaces/d/pods/a");
}

/// HTTP/2 in both ways that it comes about.
async fn http2_servers() -> Vec<Server> {
    let tls = Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await;
    let plain = Server::start(None, pod_or_watch).await;
    vec![tls, plain]
}

fn http2_config(server: &Server) -> Config {
    let mut config = server.config();
    if !config.is_tls() {
        config.protocol = Protocol::Http2;
    }
    config
}

#[tokio::test(start_paused = true)]
async fn watches_have_connections_of_their_own() {
    let _still = Still::new();
    for server in http2_servers().await {
        let transport = Transport::connect(http2_config(&server)).unwrap();
        let mut watches = Vec::new();
        for _ in 0..10 {
            let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
            watch.next().await.unwrap().unwrap();
            watches.push(watch);
        }
        join_all((0..20).map(|_| transport.clone().oneshot(get("a")))).await;
        let seen = server.log.all();
        assert!(seen.iter().all(|seen| seen.version == Version::HTTP_2));
        let of = |watch: bool| {
            let mut connections: Vec<_> = seen
                .iter()
                .filter(|seen| seen.target.contains("watch=true") == watch)
                .map(|seen| seen.connection)
                .collect();
            connections.dedup();
            connections
        };
        assert_eq!((of(true), of(false)), (vec![0], vec![1]));
        assert_eq!((transport.connections().watches, transport.connections().requests), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_further_connection_is_opened_before_the_streams_run_out() {
    let mut still = Still::new();
    for server in http2_servers().await {
        let mut config = http2_config(&server);
        config.limits = Limits { streams: 4, http2_connections: 3, ..Limits::default() };
        config.timeouts.wait = Duration::from_millis(300);
        let transport = Transport::connect(config).unwrap();
        let mut watches = Vec::new();
        for _ in 0..12 {
            watches.push(transport.watch(&pods(), WatchOptions::default()).await.unwrap());
        }
        assert_eq!((server.accepted(), transport.connections().watches), (3, 3));
        // The limit is kept, with an error that tells what was waited for.
        drop(still);
        let error = transport.watch(&pods(), WatchOptions::default()).await.map(drop).unwrap_err();
        still = Still::new();
        assert_eq!(transport_error(&error).timeout(), Some(Phase::Wait));
        // Requests do not wait for watches.
        transport.clone().oneshot(get("a")).await.unwrap();
        // A watch that is dropped makes room.
        watches.pop();
        transport.watch(&pods(), WatchOptions::default()).await.map(drop).unwrap();
        // Empty connections are closed, but for one.
        watches.clear();
        assert_eq!(transport.connections().watches, 1);
    }
}

/// A watch that nobody reads fills its own window, not its neighbours'.
#[tokio::test]
async fn an_unread_watch_does_not_stop_the_others() {
    let identity = Identity::issued(&["127.0.0.1"]);
    let server = Server::start(Some(identity), |seen| async move {
        if seen.target.contains("labelSelector") {
            let event = bytes::Bytes::from(frame("ADDED", &pod(&"x".repeat(60_000), 1)));
            pieces(vec![event; 400], End::Silent)
        } else {
            pod_or_watch(seen).await
        }
    })
    .await;
    let mut config = server.config();
    config.limits = Limits { streams: 8, stream_window: 1 << 16, ..Limits::default() };
    let transport = Transport::connect(config).unwrap();
    let mut unread = Vec::new();
    for _ in 0..7 {
        let options = WatchOptions { labels: "a=b".parse().unwrap(), ..WatchOptions::default() };
        unread.push(transport.watch(&pods(), options).await.unwrap());
    }
    // For their windows to be filled.
    really(Duration::from_millis(50)).await;
    let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    let event = tokio::time::timeout(SOON, watch.next()).await;
    assert!(event.unwrap().unwrap().is_ok());
    assert_eq!(transport.connections().watches, 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let (_closed, address) = closed_port("127.0.0.1").unwrap();
    let transport = Transport::connect(Config::new(&format!("http://{address}")).unwrap()).unwrap();
    let error = transport.oneshot(create()).await.unwrap_err();
    assert!(transport_error(&error).is_unsent());
    let text = chain(&*error);
    assert!(
        text.starts_with(&format!("no connection to the server: {address} cannot be")),
        "{text}"
    );
    // Longer than a part of a name can be: no resolver asks anybody else, who may take his time.
    let config = Config::new(&format!("http://{}.invalid:1", "x".repeat(64))).unwrap();
    let error = Transport::connect(config).unwrap().oneshot(get("a")).await.unwrap_err();
    let TransportError::Connect(error) = transport_error(&error) else { panic!("{error:?}") };
    assert!(matches!(error.get(), ConnectError::Resolve { host, .. } if host.ends_with("invalid")));
}

/// Who waits for the same connection hears of its failure at the same time.
#[tokio::test(start_paused = true)]
async fn requests_share_the_failure_of_a_connection() {
    use tokio::io::AsyncReadExt as _;
    let still = Still::new();
    // Accepts, and never answers the handshake.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
    let limit = Duration::from_millis(400);
    config.timeouts = patient();
    config.timeouts.tls = limit;
    config.tls.insecure = true;
    let transport = Transport::connect(config).unwrap();
    let started = tokio::time::Instant::now();
    let all = join_all((0..10).map(|_| transport.clone().oneshot(get("a"))));
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        // The handshake has begun; from now on only its end can be waited for.
        stream.read_u8().await.unwrap();
        drop(still);
        stream
    };
    let (all, _stream) = tokio::join!(all, serve);
    for error in all.into_iter().map(Result::unwrap_err) {
        assert_eq!(transport_error(&error).timeout(), Some(Phase::Tls));
        assert!(transport_error(&error).is_unsent());
    }
    assert!(started.elapsed() < 2 * limit, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let server = Server::start(Some(Identity::issued(&["127.0.0.1"])), |_| {
        std::future::pending::<http::Response<super::server::Body>>()
    })
    .await;
    let mut config = server.config();
    config.timeouts.answer = Duration::from_millis(100);
    let transport = Transport::connect(config).unwrap();
    let error = transport.clone().oneshot(get("a")).await.unwrap_err();
    assert_eq!(transport_error(&error).timeout(), Some(Phase::Answer));
    assert!(!transport_error(&error).is_unsent());
}

/// kube#1791: a connection that is half open says nothing, and an idle watch neither. Pings tell them apart.
#[tokio::test]
async fn a_half_open_connection_is_noticed() {
    let server = Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await;
    // Passes bytes on, until it is told to swallow them.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, upstream) = (listener.local_addr().unwrap(), server.address);
    let swallow = Arc::new(AtomicBool::new(false));
    // How often the client has sent something.
    let sent = Arc::new(AtomicUsize::new(0));
    let (mut tasks, told, count) = (tokio::task::JoinSet::new(), swallow.clone(), sent.clone());
    tasks.spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = tokio::net::TcpStream::connect(upstream).await.unwrap();
        let (from, to, back) = (client.into_split(), server.into_split(), AtomicUsize::new(0));
        tokio::join!(pass(from.0, to.1, &told, &count), pass(to.0, from.1, &told, &back));
    });
    let mut config = server.config();
    config.server = format!("https://{address}").parse().unwrap();
    config.timeouts.ping_interval = Duration::from_millis(20);
    config.timeouts.ping_answer = SOON;
    let transport = Transport::connect(config).unwrap();
    let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    watch.next().await.unwrap().unwrap();
    // Silent, but there. No ping is sent before the one before it was answered.
    let before = sent.load(Ordering::SeqCst);
    tokio::select! {
        biased; // The watch must not end.
        event = watch.next() => panic!("{event:?}"),
        () = until("pings are answered", || sent.load(Ordering::SeqCst) >= before + 5) => {}
    }
    swallow.store(true, Ordering::SeqCst);
    // Nothing comes any more, and so only deadlines are waited for: they may pass at once.
    tokio::time::pause();
    let end = tokio::time::timeout(2 * SOON, watch.next()).await.unwrap();
    let error = end.unwrap().unwrap_err();
    assert!(matches!(transport_error(&error), TransportError::Body(_)), "{error:?}");
    assert_eq!(transport.connections().watches, 0);
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    swallow: &AtomicBool,
    count: &AtomicUsize,
) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        count.fetch_add(1, Ordering::SeqCst);
        if !swallow.load(Ordering::SeqCst) {
            to.write_all(&buffer[..length]).await.unwrap();
        }
    }
}

/// A server may refuse a stream unseen, for a limit that it lowered or because it goes away. Then even a create is
/// repeated; any other reset leaves open whether it arrived.
#[tokio::test]
async fn what_a_server_refuses_unseen_is_sent_again() {
    for (reason, repeated) in [(h2::Reason::REFUSED_STREAM, true), (h2::Reason::CANCEL, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let mut first = true;
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                if std::mem::take(&mut first) {
                    respond.send_reset(reason);
                    continue;
                }
                let head = http::Response::builder().header("content-type", "application/json");
                let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
                body.send_data(pod("a", 1).into(), true).unwrap();
            }
        });
        let mut config = Config::new(&format!("http://{address}")).unwrap();
        (config.protocol, config.timeouts) = (Protocol::Http2, patient());
        let result = Transport::connect(config).unwrap().oneshot(create()).await;
        assert_eq!(result.is_ok(), repeated, "{reason:?}: {result:?}");
    }
}

/// A server that goes away takes no more on this connection; the next one serves.
#[tokio::test]
async fn a_server_that_goes_away_is_reached_anew() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    let head = http::Response::builder().header("content-type", "application/json");
                    let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
                    body.send_data(pod("a", 1).into(), true).unwrap();
                    connection.graceful_shutdown();
                }
            });
        }
    });
    let mut config = Config::new(&format!("http://{address}")).unwrap();
    (config.protocol, config.timeouts) = (Protocol::Http2, patient());
    let transport = Transport::connect(config).unwrap();
    for _ in 0..50 {
        transport.clone().oneshot(create()).await.unwrap();
    }
}

#[tokio::test]
async fn reads_survive_a_broken_connection_and_writes_do_not_repeat() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    // Takes a request on each connection; answers from the third on, and closes the first two instead.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        for n in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            if n % 3 == 2 {
                let body = pod("a", 1);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(text.as_bytes()).await.unwrap();
            }
        }
    });
    let mut config = Config::new(&format!("http://{address}")).unwrap();
    config.retry = Retry { broken: Duration::from_millis(5), ..Retry::default() };
    let transport = Transport::connect(config).unwrap();
    transport.clone().oneshot(get("a")).await.unwrap();
    let error = transport.oneshot(create()).await.unwrap_err();
    assert!(matches!(transport_error(&error), TransportError::Broken(_)), "{error:?}");
    assert!(!transport_error(&error).is_unsent());
}

/// A server may close an idle connection at any time; the next request must not suffer.
#[tokio::test(start_paused = true)]
async fn a_stale_connection_is_replaced() {
    let _still = Still::new();
    let server = Server::start(None, |seen| async move {
        let mut response = json(pod("a", 1));
        if seen.target.ends_with("close") {
            response.headers_mut().insert("connection", "close".parse().unwrap());
        }
        response
    })
    .await;
    let transport = server.transport();
    transport.clone().oneshot(get("close")).await.unwrap();
    transport.clone().oneshot(create()).await.unwrap();
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn connections_close_with_the_last_handle() {
    let server = Server::start(None, pod_or_watch).await;
    let transport = server.transport();
    let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    watch.next().await.unwrap().unwrap();
    drop(transport);
    // The stream holds what it needs.
    let silent = tokio::time::timeout(Duration::from_millis(50), watch.next()).await;
    assert!(silent.is_err());
}

#[tokio::test]
async fn http1_over_tls_can_be_chosen() {
    let server = Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await;
    let mut config = server.config();
    config.protocol = Protocol::Http1;
    Transport::connect(config).unwrap().oneshot(get("a")).await.unwrap();
    assert_eq!(server.log.last().version, Version::HTTP_11);
}
