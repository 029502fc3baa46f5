//! What an HTTP/2 server says of its connection while it is used: farewells, limits, windows.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use h2::server::SendResponse;
use kubestrata_api_types::{ListWatch as _, WatchOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use super::cancel::{Streams, head};
use super::clock::{SOON, Still};
use super::server::patient;
use super::sockets::transport_error;
use super::{create, frame, get, pod, pods};
use crate::{Config, ConnectError, Limits, Protocol, Transport, TransportError};

/// Answers like a server with `--goaway-chance`: says farewell on every connection after so many requests, and lets what
/// is under way end. Watches are handed over.
struct Leaving {
    config: Config,
    watches: Receiver<h2::SendStream<Bytes>>,
    accepted: Receiver<()>,
    _tasks: JoinSet<()>,
}

impl Leaving {
    async fn start(after: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config =
            Config::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        config.protocol = Protocol::Http2;
        config.timeouts = patient();
        let ((to_watches, watches), (count, accepted)) = (channel(1000), channel(10_000));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                count.send(()).await.unwrap();
                connections.spawn(Self::serve(stream, after, to_watches.clone()));
            }
        });
        Self { config, watches, accepted, _tasks: tasks }
    }

    async fn serve(stream: TcpStream, after: usize, watches: Sender<h2::SendStream<Bytes>>) {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let mut answers = JoinSet::new();
        let mut served = 0;
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            served += 1;
            if served == after {
                connection.graceful_shutdown();
            }
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                let mut body = respond.send_response(head(), false).unwrap();
                body.send_data(frame("ADDED", &pod("w", 1)).into(), false).unwrap();
                watches.send(body).await.unwrap();
                continue;
            }
            // Under way for a while: the farewell comes first.
            answers.spawn(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let mut body = respond.send_response(head(), false).unwrap();
                body.send_data(pod("a", 1).into(), true).unwrap();
            });
        }
    }

    fn connections(&mut self) -> usize {
        std::iter::from_fn(|| self.accepted.try_recv().ok()).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_connections_say_farewell() {
    let mut server = Leaving::start(20).await;
    let mut config = server.config.clone();
    // Neither retries nor luck: what fails is told.
    config.retry = crate::Retry::never();
    let transport = Transport::connect(config).unwrap();
    let mut load = JoinSet::new();
    for n in 0..8 {
        let transport = transport.clone();
        load.spawn(async move {
            for _ in 0..50 {
                let request = if n % 2 == 0 { get("a") } else { create() };
                transport.clone().oneshot(request).await.unwrap();
            }
        });
    }
    while let Some(end) = load.join_next().await {
        end.expect("no request fails");
    }
    let connections = server.connections();
    assert!((400 / 40..=400).contains(&connections), "{connections}");
}

#[tokio::test(start_paused = true)]
async fn watches_go_on_after_a_farewell_and_new_ones_go_elsewhere() {
    let _still = Still::new();
    // At the second watch of each connection.
    let mut server = Leaving::start(2).await;
    let transport = Transport::connect(server.config.clone()).unwrap();
    let mut watches = Vec::new();
    for n in 0..6 {
        let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
        watch.next().await.unwrap().unwrap();
        watches.push(watch);
        assert_eq!(server.connections(), usize::from(n % 2 == 0), "watch {n}");
        // The farewell has come before the event, on a connection on which nobody sends anything.
        assert_eq!(transport.connections().watches, 1);
    }
    for watch in &mut watches {
        let mut body = server.watches.recv().await.unwrap();
        body.send_data(frame("MODIFIED", &pod("w", 2)).into(), true).unwrap();
        assert!(watch.next().await.unwrap().is_ok());
        assert!(watch.next().await.is_none(), "the watch ends as the server ended it");
    }
}

/// A server that allows fewer streams than we would use, from the start on: those beyond wait for no watch.
#[tokio::test(start_paused = true)]
async fn the_limit_of_the_server_counts_from_the_first_request_on() {
    let _still = Still::new();
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(3);
    let mut server = Streams::start(builder).await;
    let transport = Transport::connect(server.config.clone()).unwrap();
    let all = futures_util::future::join_all(
        (0..10).map(|_| transport.watch(&pods(), WatchOptions::default())),
    );
    let serve = async {
        let mut bodies = Vec::new();
        for _ in 0..10 {
            let (_, mut respond) = server.next().await;
            bodies.push(respond.send_response(head(), false).unwrap());
        }
        bodies
    };
    let (all, _bodies) = tokio::join!(all, serve);
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(transport.connections().watches, 4);
}

/// Passes bytes between a client and a server of HTTP/2, and puts settings of its own in for the client when told. Says when
/// the client has acknowledged them.
async fn insert(
    upstream: std::net::SocketAddr,
) -> (std::net::SocketAddr, Sender<Bytes>, Receiver<()>, JoinSet<()>) {
    /// The acknowledgement of settings, which the server would not know of.
    const ACK: [u8; 9] = [0, 0, 0, 4, 1, 0, 0, 0, 0];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ((sender, mut inserted), (acknowledge, acknowledged)) = (channel::<Bytes>(1), channel(1));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut others = JoinSet::new();
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(upstream).await.unwrap();
        server.set_nodelay(true).unwrap();
        client.set_nodelay(true).unwrap();
        others.spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut server = TcpStream::connect(upstream).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
        let (mut up, mut down) = (vec![0; 1 << 14], vec![0; 1 << 14]);
        let mut own_acks = 0;
        loop {
            tokio::select! {
                biased; // In no order that matters.
                bytes = inserted.recv() => {
                    let Some(bytes) = bytes else { return };
                    client.write_all(&bytes).await.unwrap();
                    own_acks += 1;
                }
                length = client.read(&mut up) => {
                    let Ok(length @ 1..) = length else { return };
                    let sent = &up[..length];
                    if own_acks > 0 && sent == ACK {
                        own_acks -= 1;
                        acknowledge.send(()).await.unwrap();
                    } else {
                        server.write_all(sent).await.unwrap();
                    }
                }
                length = server.read(&mut down) => {
                    let Ok(length @ 1..) = length else { return };
                    client.write_all(&down[..length]).await.unwrap();
                }
            }
        }
    });
    (address, sender, acknowledged, tasks)
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_lowered_is_kept() {
    let _still = Still::new();
    let mut server = Streams::start(h2::server::Builder::new()).await;
    let upstream = server.config.server.authority().unwrap().as_str().parse().unwrap();
    let (address, insert, mut acknowledged, _tasks) = insert(upstream).await;
    let mut config = server.config.clone();
    config.server = format!("http://{address}").parse().unwrap();
    let transport = Transport::connect(config).unwrap();
    let mut open = Vec::new();
    for n in 0..6 {
        if n == 3 {
            // SETTINGS_MAX_CONCURRENT_STREAMS is 2 from now on, and three watches are open.
            let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2];
            insert.send(Bytes::copy_from_slice(&settings)).await.unwrap();
            tokio::time::timeout(SOON, acknowledged.recv()).await.expect("the client answers");
        }
        let watch = transport.watch(&pods(), WatchOptions::default());
        let serve = async {
            let (_, mut respond): (_, SendResponse<Bytes>) = server.next().await;
            respond.send_response(head(), false).unwrap()
        };
        let both = async { tokio::join!(watch, serve) };
        let (watch, body) = tokio::time::timeout(SOON, both).await.expect("it waits for no watch");
        open.push((watch.unwrap(), body));
        assert_eq!(transport.connections().watches, if n < 3 { 1 } else { 2 }, "watch {n}");
    }
}

/// Unread watches, each filled to the last byte that its window takes, leave the others on their connection alone: also
/// where the server allows more streams than we use.
#[tokio::test]
async fn unread_watches_that_are_full_stop_nobody() {
    const WINDOW: usize = 1 << 16;
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(1000);
    let mut server = Streams::start(builder).await;
    let mut config = server.config.clone();
    config.limits = Limits {
        streams: 20,
        http2_connections: 1,
        stream_window: u32::try_from(WINDOW).unwrap(),
        ..Limits::default()
    };
    let transport = Transport::connect(config).unwrap();
    let mut open = Vec::new();
    for _ in 0..19 {
        let watch = transport.watch(&pods(), WatchOptions::default());
        let serve = async {
            let (_, mut respond) = server.next().await;
            respond.send_response(head(), false).unwrap()
        };
        let (watch, mut body) = tokio::join!(watch, serve);
        let event = frame("ADDED", &pod(&"x".repeat(2 * WINDOW), 1));
        body.send_data(event.into(), false).unwrap();
        open.push((watch.unwrap(), body));
    }
    // As much as the window takes is gone, and nothing more goes.
    for (_, body) in &mut open {
        body.reserve_capacity(4 * WINDOW);
        let more =
            async { while std::future::poll_fn(|cx| body.poll_capacity(cx)).await.is_some() {} };
        let _ = tokio::time::timeout(Duration::from_millis(20), more).await;
        assert_eq!(body.capacity(), 0);
    }
    // The twentieth has its whole window to itself.
    let watch = transport.watch(&pods(), WatchOptions::default());
    let serve = async {
        let (_, mut respond) = server.next().await;
        respond.send_response(head(), false).unwrap()
    };
    let (watch, mut body) = tokio::join!(watch, serve);
    let mut watch = watch.unwrap();
    for n in 0..100 {
        body.send_data(frame("ADDED", &pod(&"y".repeat(WINDOW / 2), n)).into(), false).unwrap();
        let event = tokio::time::timeout(SOON, watch.next()).await.expect("it is not stopped");
        event.unwrap().unwrap();
    }
    assert_eq!(transport.connections().watches, 1);
}

/// What answers is no server of HTTP/2, or none that lives: known before anything is sent, so that even a write may be
/// tried elsewhere.
#[tokio::test]
async fn a_server_that_does_not_speak_http2_is_known_before_anything_is_sent() {
    for says in ["HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n", ""] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config =
            Config::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        (config.protocol, config.timeouts) = (Protocol::Http2, patient());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(says.as_bytes()).await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
        });
        let error = Transport::connect(config).unwrap().oneshot(create()).await.unwrap_err();
        let TransportError::Connect(error) = transport_error(&error) else { panic!("{error:?}") };
        assert!(matches!(error.get(), ConnectError::Http { .. }), "{error:?}");
    }
}
