//! Places on connections: how many there are, who gets them, and how long they are kept.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use kubestrata_api_types::{ListWatch as _, WatchOptions};
use tower::ServiceExt as _;

use super::server::{Identity, Server, json};
use super::sockets::pod_or_watch;
use super::{get, pod, pods};
use crate::{Limits, Protocol, Transport};

#[tokio::test]
async fn http1_connections_are_bounded() {
    let server = Server::start(None, |_| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        json(pod("a", 1))
    })
    .await;
    let mut config = server.config();
    config.limits = Limits { http1_connections: 3, ..Limits::default() };
    let transport = Transport::connect(config).unwrap();
    let all = join_all((0..20).map(|_| transport.clone().oneshot(get("a")))).await;
    assert!(all.iter().all(Result::is_ok));
    assert!((2..=3).contains(&server.accepted()), "{}", server.accepted());
    assert_eq!(transport.connections().requests, server.accepted());
}

/// Connections alone, below layers of somebody else's choice.
#[tokio::test]
async fn a_pool_is_a_service_of_http() {
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

/// A connection on which a request was given up, and nothing else was heard, may be dead: the next does not wait on it for a
/// ping to tell.
#[tokio::test]
async fn a_silent_connection_gets_no_new_requests() {
    for (ping_answer, connection) in [(50, 1), (10_000, 0)] {
        let identity = Some(Identity::issued(&["127.0.0.1"]));
        let server = Server::start(identity, |seen| async move {
            if seen.target.ends_with("hang") {
                std::future::pending::<()>().await;
            }
            json(pod("a", 1))
        })
        .await;
        let mut config = server.config();
        config.timeouts.answer = Duration::from_millis(200);
        config.timeouts.ping_answer = Duration::from_millis(ping_answer);
        let transport = Transport::connect(config).unwrap();
        transport.clone().oneshot(get("a")).await.unwrap();
        transport.clone().oneshot(get("hang")).await.unwrap_err();
        transport.clone().oneshot(get("a")).await.unwrap();
        assert_eq!(server.log.last().connection, connection);
    }
}

/// Go's `IdleConnTimeout`: closed when it is due, not when the next request looks.
#[tokio::test]
async fn idle_http1_connections_are_closed() {
    let server = Server::start(None, pod_or_watch).await;
    let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
    let mut config = server.config();
    config.metrics = metrics.clone();
    config.timeouts.idle = Duration::from_millis(100);
    let transport = Transport::connect(config).unwrap();
    for round in 1..=2 {
        join_all((0..5).map(|_| transport.clone().oneshot(get("a")))).await;
        let all = transport.connections().requests;
        assert!((1..=5).contains(&all), "round {round}: {all}");
        let open = || {
            let gauge = format!(r#"rest_client_open_connections{{host="{}"}}"#, server.address);
            metrics.value(&gauge).unwrap()
        };
        for _ in 0..1000 {
            if open() == 0.0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!((transport.connections().requests, open()), (0, 0.0), "round {round}");
    }
}

#[tokio::test]
async fn open_connections_and_streams_are_counted() {
    let server = Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await;
    let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
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
    drop(transport);
    for _ in 0..1000 {
        if connections() == 0.0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} connections stay open", connections());
}
