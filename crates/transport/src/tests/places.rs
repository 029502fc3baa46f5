//! Places on connections: how many there are, who gets them, and how long they are kept.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use kubestrata_api_types::{ListWatch as _, WatchOptions};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use super::clock::{SOON, Still, until};
use super::server::{Identity, Server, json, patient};
use super::sockets::pod_or_watch;
use super::{create, get, pod, pods};
use crate::{Limits, Protocol, Transport};

#[tokio::test(start_paused = true)]
async fn http1_connections_are_bounded() {
    let _still = Still::new();
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let server = Server::start(None, move |_| {
        let gate = Arc::clone(&opened);
        async move {
            gate.acquire().await.unwrap().forget();
            json(pod("a", 1))
        }
    })
    .await;
    let mut config = server.config();
    config.limits = Limits { http1_connections: 3, ..Limits::default() };
    let transport = Transport::connect(config).unwrap();
    let all = join_all((0..20).map(|_| transport.clone().oneshot(get("a"))));
    let serve = async {
        until("as many are under way as may be", || server.log.len() == 3).await;
        gate.add_permits(20);
    };
    let (all, ()) = tokio::join!(all, serve);
    assert!(all.iter().all(Result::is_ok));
    assert_eq!((server.accepted(), transport.connections().requests), (3, 3));
}

/// Connections alone, below layers of somebody else's choice.
#[tokio::test(start_paused = true)]
async fn a_pool_is_a_service_of_http() {
    let _still = Still::new();
    use http_body_util::BodyExt as _;
    for (server, protocol) in [
        (Server::start(None, pod_or_watch).await, Protocol::Auto),
        (Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await, Protocol::Auto),
        (Server::start(None, pod_or_watch).await, Protocol::Http2),
    ] {
        let mut config = server.config();
        config.protocol = protocol;
        let pool = crate::Pool::connect(&config).unwrap();
        // A path alone, the whole URL, and a watch, which goes on a connection of its own.
        for uri in ["/a?b=c".to_owned(), format!("{}a", config.server), "/w?watch=true".to_owned()]
        {
            let body = crate::RequestBody::new("body");
            let request = http::Request::get(&uri).body(body).unwrap();
            let response = pool.clone().oneshot(request).await.unwrap();
            let watch = uri.contains("watch");
            assert_eq!(server.log.last().connection, usize::from(watch));
            assert_eq!(server.log.last().body, "body");
            assert_eq!(response.status(), 200);
            let mut body = response.into_body();
            if watch {
                let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
                assert!(frame.starts_with(b"{\"type"));
            } else {
                // Read to the end, as HTTP/1.1 uses the connection again only then.
                assert_eq!(body.collect().await.unwrap().to_bytes(), pod("a", 1));
            }
        }
    }
}

/// Callers that never pause take turns where there are fewer places than callers.
#[tokio::test]
async fn nobody_waits_for_ever_beside_busy_callers() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let server = Server::start(None, pod_or_watch).await;
        let mut config = server.config();
        config.protocol = protocol;
        let limits =
            Limits { streams: 1, http2_connections: 2, http1_connections: 2, ..Limits::default() };
        config.limits = limits;
        let transport = Transport::connect(config).unwrap();
        let done: Vec<_> = (0..10).map(|_| std::cell::Cell::new(0)).collect();
        let callers = done.iter().map(|done| async {
            while done.get() < 40 {
                transport.clone().oneshot(get("a")).await.unwrap();
                done.set(done.get() + 1);
            }
        });
        // Until the first of them is done.
        futures_util::future::select_all(callers.map(Box::pin)).await;
        let counts: Vec<_> = done.iter().map(std::cell::Cell::get).collect();
        assert!(counts.iter().all(|count| *count > 20), "{protocol:?}: {counts:?}");
    }
}

/// A caller may want no deadlines.
#[tokio::test]
async fn deadlines_may_be_as_long_as_can_be() {
    let server = Server::start(None, pod_or_watch).await;
    let (mut config, ever) = (server.config(), Duration::MAX);
    config.timeouts = crate::Timeouts {
        request: ever,
        list: ever,
        wait: ever,
        connect: ever,
        next_address: ever,
        tls: ever,
        answer: ever,
        watch_answer: ever,
        body: ever,
        watch_margin: ever,
        watch_life: ever,
        ping_interval: ever,
        ping_answer: ever,
        files: ever,
        token_file: ever,
        exec: ever,
        idle: ever,
    };
    for protocol in [Protocol::Http1, Protocol::Http2] {
        config.protocol = protocol;
        let transport = Transport::connect(config.clone()).unwrap();
        transport.clone().oneshot(get("a")).await.unwrap();
        let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
        watch.next().await.unwrap().unwrap();
        let mut list = transport.list(&pods(), Default::default()).await.unwrap();
        assert!(list.next().await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn connections_that_are_not_kept_can_be_used() {
    let _still = Still::new();
    let server = Server::start(None, pod_or_watch).await;
    let mut config = server.config();
    config.timeouts.idle = Duration::ZERO;
    let transport = Transport::connect(config).unwrap();
    transport.oneshot(get("a")).await.unwrap();
    assert_eq!(server.accepted(), 1);
}

/// A balancer without servers behind it, or one that is to be shut down: each connection ends before it can be used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_end_at_once_are_few() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = accepted.clone();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                if protocol == Protocol::Http2 {
                    // Empty SETTINGS, and GOAWAY with NO_ERROR before the first stream.
                    let frames = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
                    let _ = stream.write_all(frames).await;
                }
            }
        });
        for n in 0..10 {
            let mut config = crate::Config::new(&format!("http://{address}")).unwrap();
            (config.protocol, config.timeouts) = (protocol, patient());
            let transport = Transport::connect(config).unwrap();
            let call = transport.oneshot(create());
            let error = tokio::time::timeout(SOON, call).await.unwrap();
            let error = error.unwrap_err();
            let error = kubestrata_api_types::cause_ref::<crate::TransportError>(&*error).unwrap();
            // What was sent into a connection that is closed may have arrived, for all that we know.
            let unsent = error.is_unsent() || protocol == Protocol::Http1;
            assert!(unsent, "{protocol:?} {n}: {error:?}");
            let connections = accepted.swap(0, std::sync::atomic::Ordering::SeqCst);
            // Four for each of four places, and one more where one of them was late.
            assert!(connections <= 17, "{protocol:?} {n}: {connections} connections for one call");
        }
    }
}

/// A connection on which a request was given up, and nothing else was heard, may be dead: the next does not wait on it for a
/// ping to tell.
#[tokio::test(start_paused = true)]
async fn a_silent_connection_gets_no_new_requests() {
    for (ping_answer, connection) in [(500, 1), (60_000, 0)] {
        let still = Still::new();
        let identity = Some(Identity::issued(&["127.0.0.1"]));
        let server = Server::start(identity, |seen| async move {
            if seen.target.ends_with("hang") {
                std::future::pending::<()>().await;
            }
            json(pod("a", 1))
        })
        .await;
        let mut config = server.config();
        config.timeouts.answer = Duration::from_secs(1);
        config.timeouts.ping_answer = Duration::from_millis(ping_answer);
        let transport = Transport::connect(config).unwrap();
        transport.clone().oneshot(get("a")).await.unwrap();
        let hangs = transport.clone().oneshot(get("hang"));
        let silence = async {
            until("it has arrived", || server.log.len() == 2).await;
            drop(still);
        };
        tokio::join!(hangs, silence).0.unwrap_err();
        let _still = Still::new();
        transport.clone().oneshot(get("a")).await.unwrap();
        assert_eq!(server.log.last().connection, connection);
    }
}

/// Go's `IdleConnTimeout`: closed when it is due, not when the next request looks.
#[tokio::test(start_paused = true)]
async fn idle_http1_connections_are_closed() {
    let server = Server::start(None, pod_or_watch).await;
    let metrics = Arc::new(kubestrata_telemetry::Memory::default());
    let mut config = server.config();
    config.metrics = metrics.clone();
    config.timeouts.idle = Duration::from_millis(100);
    let transport = Transport::connect(config).unwrap();
    for round in 1..=2 {
        let still = Still::new();
        join_all((0..5).map(|_| transport.clone().oneshot(get("a")))).await;
        let all = transport.connections().requests;
        assert!((1..=5).contains(&all), "round {round}: {all}");
        let open = || {
            let gauge = format!(r#"rest_client_open_connections{{host="{}"}}"#, server.address);
            metrics.value(&gauge).unwrap()
        };
        assert!(open() > 0.0, "round {round}");
        drop(still);
        tokio::time::sleep(Duration::from_millis(101)).await;
        until("the idle connections are closed", || open() == 0.0).await;
        assert_eq!(transport.connections().requests, 0, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn open_connections_and_streams_are_counted() {
    let still = Still::new();
    let server = Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await;
    let metrics = Arc::new(kubestrata_telemetry::Memory::default());
    let mut config = server.config();
    config.metrics = metrics.clone();
    let transport = Transport::connect(config).unwrap();
    let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    watch.next().await.unwrap().unwrap();
    transport.clone().oneshot(get("a")).await.unwrap();
    let host = server.address;
    let value = |series: String| metrics.value(&series).unwrap();
    let connections = || value(format!(r#"rest_client_open_connections{{host="{host}"}}"#));
    let streams =
        |kind: &str| value(format!(r#"rest_client_open_streams{{kind="{kind}",host="{host}"}}"#));
    assert_eq!((connections(), streams("watch"), streams("request")), (2.0, 1.0, 0.0));
    drop(watch);
    assert_eq!(streams("watch"), 0.0);
    drop((transport, still));
    until("no connection is open", || connections() == 0.0).await;
}

/// One connection of several cannot be opened, as when a backlog is full: the others serve.
#[tokio::test]
async fn a_failed_dial_fails_nobody_beside_connections_that_work() {
    let server = Server::start(None, |_| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        json(pod("a", 1))
    })
    .await;
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut config = server.config();
    config.server = "http://server.test/".parse().unwrap();
    config.limits = Limits { http1_connections: 4, ..Limits::default() };
    let (count, address) = (asked.clone(), server.address);
    config.resolver = crate::Resolver::new(move |_, _| {
        let count = count.clone();
        async move {
            match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                3 => Err(std::io::Error::other("no such name, for once")),
                _ => Ok(vec![address]),
            }
        }
    });
    let transport = Transport::connect(config).unwrap();
    let all = join_all((0..40).map(|_| transport.clone().oneshot(get("a")))).await;
    assert!(all.iter().all(Result::is_ok));
    assert!(asked.load(std::sync::atomic::Ordering::SeqCst) >= 4);
}

/// The rest of a request that was answered early is still to be sent: the next does not wait behind it.
#[tokio::test]
async fn an_early_answer_does_not_stop_the_next_request() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut held = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 100];
            let _ = stream.read(&mut request).await.unwrap();
            let body = pod("a", 1);
            let code = if request.starts_with(b"POST") { 413 } else { 200 };
            let head = format!("HTTP/1.1 {code} X\r\ncontent-type: application/json");
            let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(text.as_bytes()).await.unwrap();
            held.push(stream);
        }
    });
    let mut config = crate::Config::new(&format!("http://{address}")).unwrap();
    config.timeouts = patient();
    let pool = crate::Pool::connect(&config).unwrap();
    let send = async |request: http::request::Builder, body: Vec<u8>| {
        use http_body_util::BodyExt as _;
        let request = request.body(crate::RequestBody::new(body)).unwrap();
        let response = pool.clone().oneshot(request).await.unwrap();
        let status = response.status();
        response.into_body().collect().await.unwrap();
        status
    };
    assert_eq!(send(http::Request::post("/a"), vec![b'x'; 32 << 20]).await, 413);
    let next = send(http::Request::get("/a"), Vec::new());
    assert_eq!(tokio::time::timeout(config.timeouts.wait / 3, next).await.unwrap(), 200);
}

/// kube-apiserver sends a header for each warning.
#[tokio::test]
async fn an_answer_may_have_many_headers() {
    let server = Server::start(None, |_| async {
        let mut response = json(pod("a", 1));
        for n in 0..300 {
            response.headers_mut().append("warning", format!("299 - \"w{n}\"").parse().unwrap());
        }
        response
    })
    .await;
    server.transport().oneshot(create()).await.unwrap();
}

/// It would come again: a read is not asked for ten times more.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_http_is_not_asked_for_again() {
    let _still = Still::new();
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    for answer in [
        "HTTP/1.1 what\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(600)),
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        let requests = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = requests.clone();
        tasks.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut vec![0; 4096]).await.unwrap();
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let config = crate::Config::new(&format!("http://{address}")).unwrap();
        let error = Transport::connect(config).unwrap().oneshot(get("a")).await.unwrap_err();
        let error = kubestrata_api_types::cause_ref::<crate::TransportError>(&*error).unwrap();
        assert!(matches!(error, crate::TransportError::NoHttp(_)), "{error:?}");
        assert!(!error.is_unsent());
        assert_eq!(requests.load(std::sync::atomic::Ordering::SeqCst), 1);
    }
}
