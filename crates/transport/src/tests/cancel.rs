//! Calls that are given up, by their caller or by a deadline: what the other side sees, and that their places are free.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use h2::server::SendResponse;
use http::Request;
use kubestrata_api_types::{
    ApiRequest, ListWatch as _, Operation, Payload, WatchOptions, WriteOptions,
};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use super::clock::{SOON, Still, until};
use super::server::{End, Server, patient, pieces};
use super::sockets::transport_error;
use super::{frame, get, pod, pods};
use crate::{Config, Limits, Phase, Protocol, Transport, TransportError};

/// A request as a server of raw HTTP/2 has it.
pub(super) type Stream = (Request<h2::RecvStream>, SendResponse<Bytes>);

/// A server of HTTP/2 without TLS that hands over its streams, and does nothing by itself.
pub(super) struct Streams {
    pub(super) config: Config,
    pub(super) streams: Receiver<Stream>,
    _tasks: JoinSet<()>,
}

impl Streams {
    pub(super) async fn start(builder: h2::server::Builder) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config =
            Config::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        config.protocol = Protocol::Http2;
        config.timeouts = patient();
        let (sender, streams) = channel(1000);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let (builder, sender) = (builder.clone(), sender.clone());
                connections.spawn(async move {
                    let mut connection = builder.handshake::<_, Bytes>(stream).await.unwrap();
                    while let Some(Ok(stream)) = connection.accept().await {
                        sender.send(stream).await.unwrap();
                    }
                });
            }
        });
        Self { config, streams, _tasks: tasks }
    }

    pub(super) async fn next(&mut self) -> Stream {
        let next = tokio::time::timeout(SOON, self.streams.recv());
        next.await.expect("a request arrives").expect("the server runs")
    }
}

/// The head of a success.
pub(super) fn head() -> http::Response<()> {
    http::Response::builder().header("content-type", "application/json").body(()).unwrap()
}

/// Why the client reset the stream.
async fn reset(respond: &mut SendResponse<Bytes>) -> h2::Reason {
    let reset = std::future::poll_fn(|cx| respond.poll_reset(cx));
    tokio::time::timeout(SOON, reset).await.expect("a reset arrives").unwrap()
}

/// Once this has come about only a deadline is waited for, and the clock jumps to it.
async fn then_jump<T>(first: impl Future<Output = T>, still: Still) -> T {
    let first = first.await;
    drop(still);
    first
}

fn one_stream(config: &Config) -> Transport {
    let mut config = config.clone();
    config.limits = Limits { streams: 1, http2_connections: 1, ..Limits::default() };
    Transport::connect(config).unwrap()
}

fn large_create() -> ApiRequest {
    let body = Payload::json(format!("{{\"pad\":\"{}\"}}", "x".repeat(32 << 20)));
    ApiRequest::new(
        pods(),
        Operation::Create { name: None, body, options: WriteOptions::default() },
    )
}

/// One place in all: that the next request gets it shows that it was given back.
#[tokio::test]
async fn a_dropped_call_resets_its_stream_and_frees_its_place() {
    let mut server = Streams::start(h2::server::Builder::new()).await;
    let transport = one_stream(&server.config);
    // Before the head of the answer.
    let mut call = Box::pin(transport.clone().oneshot(get("a")));
    let (_, mut respond) = tokio::select! {
        biased; // Nothing answers the call.
        _ = &mut call => panic!("there is no answer"),
        stream = server.next() => stream,
    };
    drop(call);
    assert_eq!(reset(&mut respond).await, h2::Reason::CANCEL);
    // While the body of the request cannot be sent: the server reads none of it.
    let mut call = Box::pin(transport.clone().oneshot(large_create()));
    let (_unread, mut respond) = tokio::select! {
        biased; // As above.
        _ = &mut call => panic!("there is no answer"),
        stream = server.next() => stream,
    };
    drop(call);
    assert_eq!(reset(&mut respond).await, h2::Reason::CANCEL);
    // In the middle of the answer.
    let mut call = Box::pin(transport.clone().oneshot(get("a")));
    let (_, mut respond) = tokio::select! {
        biased; // As above.
        _ = &mut call => panic!("there is no answer"),
        stream = server.next() => stream,
    };
    let mut body = respond.send_response(head(), false).unwrap();
    body.send_data("{".into(), false).unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(50), &mut call).await;
    assert!(waits.is_err());
    drop(call);
    let reset = std::future::poll_fn(|cx| body.poll_reset(cx)).await.unwrap();
    assert_eq!(reset, h2::Reason::CANCEL);
    // A watch whose stream is dropped.
    let watch = transport.watch(&pods(), WatchOptions::default());
    let serve = async {
        let (_, mut respond) = server.next().await;
        let mut body = respond.send_response(head(), false).unwrap();
        body.send_data(frame("ADDED", &pod("w", 1)).into(), false).unwrap();
        body
    };
    let (watch, mut body) = tokio::join!(watch, serve);
    let mut watch = watch.unwrap();
    watch.next().await.unwrap().unwrap();
    drop(watch);
    let reset = std::future::poll_fn(|cx| body.poll_reset(cx)).await.unwrap();
    assert_eq!(reset, h2::Reason::CANCEL);
    // All this was one connection for requests and one for watches.
    assert_eq!((transport.connections().requests, transport.connections().watches), (1, 1));
    let next = transport.clone().oneshot(get("a"));
    let serve = async {
        let (_, mut respond) = server.next().await;
        let mut body = respond.send_response(head(), false).unwrap();
        body.send_data(pod("a", 1).into(), true).unwrap();
    };
    let (next, ()) = tokio::join!(next, serve);
    next.unwrap();
}

/// A server that reads nothing of a large body is waited for as long as for its answer, and no longer.
#[tokio::test(start_paused = true)]
async fn a_body_that_the_server_does_not_read_has_a_deadline() {
    let still = Still::new();
    let mut server = Streams::start(h2::server::Builder::new()).await;
    server.config.timeouts.answer = Duration::from_millis(200);
    let transport = one_stream(&server.config);
    let (result, (_unread, mut respond)) =
        tokio::join!(transport.clone().oneshot(large_create()), then_jump(server.next(), still));
    tokio::time::resume();
    let error = result.unwrap_err();
    assert_eq!(transport_error(&error).timeout(), Some(Phase::Answer));
    assert!(!transport_error(&error).is_unsent());
    assert_eq!(reset(&mut respond).await, h2::Reason::CANCEL);

    tokio::time::pause();
    let still = Still::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    config.timeouts = patient();
    config.timeouts.answer = Duration::from_millis(200);
    let transport = Transport::connect(config).unwrap();
    let begun = async {
        let (stream, _) = listener.accept().await.unwrap();
        stream.readable().await.unwrap();
        stream
    };
    let (result, mut stream) =
        tokio::join!(transport.clone().oneshot(large_create()), then_jump(begun, still));
    let error = result.unwrap_err();
    assert_eq!(transport_error(&error).timeout(), Some(Phase::Answer));
    assert_eq!(transport.connections().requests, 0);
    // The connection is closed soon, whatever is left to send: a server that reads again later finds what was under way, and
    // the end of it.
    tokio::time::sleep(Duration::from_millis(1300)).await;
    tokio::time::resume();
    let mut read = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let next = tokio::time::timeout(SOON, stream.read(&mut buffer));
        match next.await.expect("the connection ends") {
            Ok(0) | Err(_) => break,
            Ok(length) => read += length,
        }
    }
    assert!(read < 32 << 20, "{read}");
}

/// HTTP/1.1 has no other way to give up a request than to close its connection.
#[tokio::test]
async fn a_dropped_call_closes_its_http1_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = Config::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let transport = Transport::connect(config).unwrap();
    let mut call = Box::pin(transport.clone().oneshot(get("a")));
    let mut stream = tokio::select! {
        biased; // Nothing answers the call.
        _ = &mut call => panic!("there is no answer"),
        accepted = listener.accept() => accepted.unwrap().0,
    };
    let mut buffer = vec![0; 4096];
    assert!(call.as_mut().now_or_never().is_none());
    tokio::task::yield_now().await;
    drop(call);
    until("the connection is not counted", || transport.connections().requests == 0).await;
    let closed = async { while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {} };
    tokio::time::timeout(SOON, closed).await.expect("the connection ends");
}

/// The deadline of the whole gives back as much as a caller who loses patience.
#[tokio::test(start_paused = true)]
async fn a_deadline_frees_the_stream() {
    let still = Still::new();
    let mut server = Streams::start(h2::server::Builder::new()).await;
    server.config.timeouts.request = Duration::from_millis(200);
    let transport = one_stream(&server.config);
    let (result, (_, mut respond)) =
        tokio::join!(transport.clone().oneshot(get("a")), then_jump(server.next(), still));
    tokio::time::resume();
    let error = result.unwrap_err();
    assert!(
        matches!(transport_error(&error), TransportError::Deadline { phase: Phase::Answer, .. }),
        "{error:?}"
    );
    assert_eq!(reset(&mut respond).await, h2::Reason::CANCEL);
}

/// Calls are dropped at any point, while there are fewer places than calls: each place comes back, and whoever waits for one
/// gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_place_is_lost_whenever_calls_are_dropped() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let server = Server::start(None, |seen| async move {
            tokio::time::sleep(Duration::from_micros(300)).await;
            let ends = if seen.target.ends_with("/0") { End::Silent } else { End::Clean };
            pieces(vec![pod("a", 1).into()], ends)
        })
        .await;
        let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
        let mut config = server.config();
        (config.protocol, config.metrics) = (protocol, metrics.clone());
        config.limits =
            Limits { streams: 3, http2_connections: 2, http1_connections: 4, ..Limits::default() };
        let transport = Transport::connect(config).unwrap();
        let mut random = 1_u64;
        let mut calls = JoinSet::new();
        for n in 0..600_u64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // One in ten of them would never end by itself.
            let call = transport.clone().oneshot(get(&(n % 10).to_string()));
            let patience = Duration::from_micros(random % 4_000);
            calls.spawn(async move { tokio::time::timeout(patience, call).await.is_ok() });
            if n % 16 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        while let Some(end) = calls.join_next().await {
            end.unwrap();
        }
        let host = server.address;
        let streams = format!(r#"rest_client_open_streams{{kind="request",host="{host}"}}"#);
        until("no stream is open", || metrics.value(&streams) == Some(0.0)).await;
        // All places at once, and ten times as many calls.
        let all = (0..60).map(|_| transport.clone().oneshot(get("1")));
        for end in futures_util::future::join_all(all).await {
            end.unwrap();
        }
        assert!(transport.connections().requests <= 4, "{protocol:?}");
    }
}
