//! Calls that are kept without being polled, or dropped, and those that want the same as they.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

use super::clock::{SOON, Still, really, until};
use super::server::{Identity, Server, json, patient};
use super::{create, get, pod};
use crate::{Config, Limits, Pem, Protocol, Resolver, Retry, Tls, Transport};

/// Lets tasks run.
async fn turns() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// What a `select!` does to a call when another branch is chosen and takes long.
#[tokio::test]
async fn a_call_that_is_kept_without_being_polled_holds_nobody_up() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let gate = Arc::new(Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let server = Server::start(None, move |seen| {
            let gate = Arc::clone(&opened);
            async move {
                if seen.target.ends_with("busy") {
                    gate.acquire().await.unwrap().forget();
                }
                json(pod("a", 1))
            }
        })
        .await;
        let mut config = server.config();
        config.protocol = protocol;
        config.limits =
            Limits { streams: 1, http2_connections: 2, http1_connections: 2, ..Limits::default() };
        let transport = Transport::connect(config).unwrap();
        let mut calls = JoinSet::new();
        for _ in 0..2 {
            calls.spawn(transport.clone().oneshot(get("busy")));
        }
        until("both have arrived", || server.log.len() == 2).await;
        // The first in line.
        let mut kept = Box::pin(transport.clone().oneshot(get("a")));
        assert!((&mut kept).now_or_never().is_none());
        turns().await;
        calls.spawn(transport.clone().oneshot(get("a")));
        turns().await;
        gate.add_permits(2);
        while let Some(done) = timeout(SOON, calls.join_next()).await.expect("nobody waits") {
            done.unwrap().unwrap();
        }
        timeout(SOON, kept).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_opened_whatever_becomes_of_who_wanted_it() {
    let _still = Still::new();
    let server = Server::start(None, |_| async { json(pod("a", 1)) }).await;
    for keep in [true, false] {
        let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut config = Config::new("http://server.test:80").unwrap();
        config.timeouts = patient();
        let (opened, count, address) = (Arc::clone(&gate), Arc::clone(&asked), server.address);
        config.resolver = Resolver::new(move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            let gate = Arc::clone(&opened);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(vec![address])
            }
        });
        config.limits = Limits { http1_connections: 1, ..Limits::default() };
        let transport = Transport::connect(config).unwrap();
        let mut first = Box::pin(transport.clone().oneshot(get("a")));
        assert!((&mut first).now_or_never().is_none());
        turns().await;
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        let first = keep.then_some(first);
        let mut second = Box::pin(transport.clone().oneshot(get("a")));
        assert!((&mut second).now_or_never().is_none());
        gate.add_permits(1);
        if let Some(first) = first {
            timeout(SOON, first).await.unwrap().unwrap();
        }
        timeout(SOON, second).await.unwrap().unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 1, "it was not begun anew");
    }
}

/// The first dial hangs, as one does whose packet was lost; all that comes later would be well.
#[tokio::test(start_paused = true)]
async fn a_dial_that_hangs_holds_nobody_up() {
    let _still = Still::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let server = Server::start(None, |_| async { json(pod("a", 1)) }).await;
        let asked = Arc::new(AtomicUsize::new(0));
        let mut config = Config::new("http://server.test:80").unwrap();
        config.protocol = protocol;
        let (count, address) = (Arc::clone(&asked), server.address);
        config.resolver = Resolver::new(move |_, _| {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok(vec![address])
            }
        });
        let transport = Transport::connect(config).unwrap();
        // Alone, and long before the deadline of the dial.
        let started = Instant::now();
        let time_passes = async {
            while asked.load(Ordering::SeqCst) < 2 {
                tokio::time::advance(Duration::from_millis(50)).await;
            }
        };
        let (answer, ()) = tokio::join!(transport.oneshot(get("a")), time_passes);
        answer.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    }
}

/// Not begun anew at once, and for ever.
#[tokio::test(start_paused = true)]
async fn a_resolver_that_panics_is_a_failure() {
    let asked = Arc::new(AtomicUsize::new(0));
    let mut config = Config::new("http://server.test:80").unwrap();
    let count = Arc::clone(&asked);
    config.resolver = Resolver::new(move |_, _| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            panic!("expected by this test")
        }
    });
    let transport = Transport::connect(config).unwrap();
    let error = timeout(SOON, transport.oneshot(get("a"))).await.unwrap().unwrap_err();
    let error = kubestrata_api_types::cause_ref::<crate::TransportError>(&*error).unwrap();
    assert!(error.is_unsent());
    let crate::TransportError::Connect(error) = error else { panic!("{error:?}") };
    assert_eq!(
        error.get().to_string(),
        "server.test:80: the task that opened the connection has ended early"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// Takes HTTP/2 connections, and breaks each after so many answers, when it has the next request. Counts requests.
async fn breaking(after: usize) -> (Config, Arc<AtomicUsize>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    config.protocol = Protocol::Http2;
    config.timeouts = patient();
    config.retry = Retry::never();
    let (mut tasks, requests) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&requests);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let count = Arc::clone(&count);
            connections.spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                let mut answered = 0;
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    count.fetch_add(1, Ordering::SeqCst);
                    if answered == after {
                        return;
                    }
                    answered += 1;
                    let head = http::Response::builder().header("content-type", "application/json");
                    let head = head.body(()).unwrap();
                    let mut body = respond.send_response(head, false).unwrap();
                    body.send_data(Bytes::from(pod("a", 1)), true).unwrap();
                }
            });
        }
    });
    (config, requests, tasks)
}

/// A read is sent again at once only where the connection had been kept, and then once.
#[tokio::test]
async fn a_broken_connection_multiplies_no_request() {
    let (config, requests, _tasks) = breaking(0).await;
    let transport = Transport::connect(config.clone()).unwrap();
    transport.oneshot(get("a")).await.unwrap_err();
    assert_eq!(requests.swap(0, Ordering::SeqCst), 1);
    let mut retried = config;
    retried.retry = Retry { times: 3, broken: Duration::from_millis(1), ..Retry::default() };
    Transport::connect(retried).unwrap().oneshot(get("a")).await.unwrap_err();
    assert_eq!(requests.swap(0, Ordering::SeqCst), 4);

    // One connection after the other: a second one that was begun because the first was late would be another to break.
    tokio::time::pause();
    let _still = Still::new();
    let (config, requests, _tasks) = breaking(1).await;
    let transport = Transport::connect(config).unwrap();
    transport.clone().oneshot(get("a")).await.unwrap();
    assert_eq!(requests.swap(0, Ordering::SeqCst), 1);
    transport.clone().oneshot(get("a")).await.unwrap();
    assert_eq!(requests.swap(0, Ordering::SeqCst), 2);
    transport.oneshot(create()).await.unwrap_err();
    assert_eq!(requests.swap(0, Ordering::SeqCst), 1, "a write is not sent again");
}

fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A file that cannot be read, as a pipe to which nobody writes or a share whose server is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_hang_hold_nobody_up() {
    let identity = Identity::issued(&["127.0.0.1"]);
    let authority = identity.authority_pem.clone();
    let server = Server::start(Some(identity), |_| async { json(pod("a", 1)) }).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    std::fs::write(&path, &authority).unwrap();
    let mut config = server.config();
    config.tls = Tls::trust(Pem::file(path.clone()));
    config.timeouts.files = Duration::from_millis(50);
    // Half of it is for the file: more than any that can be read takes.
    config.timeouts.tls = Duration::from_secs(12);
    let pool = crate::Pool::connect(&config).unwrap();
    let ask = async || {
        let request = http::Request::get("/a").body(crate::RequestBody::default()).unwrap();
        timeout(SOON, pool.clone().oneshot(request)).await.expect("it hangs")
    };
    ask().await.unwrap();
    std::fs::remove_file(&path).unwrap();
    pipe(&path);
    tokio::time::sleep(Duration::from_millis(60)).await;
    // With what was read before: the connection that is open, and a further one.
    ask().await.unwrap();
    let (one, other) = tokio::join!(ask(), ask());
    one.unwrap();
    other.unwrap();
    // Without, there is none, and an error that names the file.
    config.timeouts.tls = Duration::from_secs(3);
    let fresh = Transport::connect(config).unwrap();
    let error =
        timeout(SOON, fresh.clone().oneshot(get("a"))).await.expect("it hangs").unwrap_err();
    let error = kubestrata_api_types::cause_ref::<crate::TransportError>(&*error).unwrap();
    let crate::TransportError::Connect(error) = error else { panic!("{error:?}") };
    let text = error.get().source().unwrap().to_string();
    assert_eq!(text, format!("certificate authority {} cannot be read", path.display()));
    // What hangs does not stop what can be read later.
    std::fs::rename(&path, folder.path().join("pipe")).unwrap();
    std::fs::write(&path, &authority).unwrap();
    let read = async {
        // A busy machine may need more than once.
        while fresh.clone().oneshot(get("a")).await.is_err() {}
    };
    timeout(SOON, read).await.expect("it hangs");
    // The readers are let go: the runtime waits for them.
    let pipe = folder.path().join("pipe");
    let both = std::fs::OpenOptions::new().read(true).write(true).open(pipe).unwrap();
    really(Duration::from_millis(50)).await;
    drop(both);
}
