//! Certificates in files that are replaced while requests go on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use kubestrata_api_types::{ListWatch as _, WatchOptions};
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::clock::{Still, really};
use super::server::{Authority, ClientPair, End, Seen, Server, json, pieces};
use super::{create, frame, get, pod, pods};
use crate::{Identity, InCluster, Pem, Tls, Transport};

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

/// How often files are looked at.
const PERIOD: Duration = Duration::from_millis(20);

/// A transport whose certificates are in files that are looked at all the time.
fn files(server: &Server, folder: &TempDir) -> Transport {
    let file = |name: &str| Pem::file(folder.path().join(name));
    let mut config = server.config();
    config.tls = Tls::trust(file("ca.crt"))
        .identity(Identity { certificate: file("client.crt"), key: file("client.key") });
    config.timeouts.files = PERIOD;
    Transport::connect(config).unwrap()
}

/// Waits until this holds. Time passes meanwhile, for files to be looked at, but so slowly that nothing that is under way is
/// late.
async fn after_a_look(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        tokio::time::advance(PERIOD).await;
        for _ in 0..20 {
            if holds() {
                return;
            }
            really(Duration::from_millis(5)).await;
        }
    }
    panic!("still not so: {what}");
}

fn write_pair(folder: &TempDir, pair: &ClientPair) {
    write(folder.path(), "client.crt", &pair.certificate);
    write(folder.path(), "client.key", &pair.key);
}

async fn pod_or_watch(seen: Seen) -> http::Response<super::server::Body> {
    if seen.target.contains("watch=true") {
        pieces(vec![frame("ADDED", &pod("w", 1)).into()], End::Silent)
    } else {
        json(pod("a", 1))
    }
}

#[tokio::test(start_paused = true)]
async fn certificates_rotate_under_load_without_a_failed_request() {
    let _still = Still::new();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let (first, second) = (old.client("one", |_| {}), old.client("two", |_| {}));
    let third = new.client("three", |_| {});
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "ca.crt", &old.pem());
    write_pair(&folder, &first);
    let server = Server::start(Some(old.server(&["127.0.0.1"], |_| {})), pod_or_watch).await;
    let transport = files(&server, &folder);
    let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    watch.next().await.unwrap().unwrap();

    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut load = tokio::task::JoinSet::new();
    for n in 0..8 {
        let (transport, stop, done) = (transport.clone(), Arc::clone(&stop), Arc::clone(&done));
        load.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let request = if n % 2 == 0 { get("a") } else { create() };
                transport.clone().oneshot(request).await.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    // Until requests come with this certificate.
    let shown = async |pair: &ClientPair| {
        let is_shown = || server.log.last().client.as_ref() == Some(&pair.der);
        after_a_look("the new certificate is shown", is_shown).await;
    };
    let go_on = async || {
        let before = done.load(Ordering::SeqCst);
        let more = || done.load(Ordering::SeqCst) >= before + 50;
        after_a_look("requests go on", more).await;
    };
    shown(&first).await;
    // A new client certificate, with a moment in which it does not fit its key.
    write(folder.path(), "client.crt", &second.certificate);
    go_on().await;
    write(folder.path(), "client.key", &second.key);
    shown(&second).await;
    // Another authority: first trusted beside the old one, then the server and we change, then it is alone. In between
    // the file is not there at all.
    let before = server.log.last().connection;
    write(folder.path(), "ca.crt", &format!("{}{}", old.pem(), new.pem()));
    // The old one alone may have been read a moment ago, and is used until this is.
    let other = || server.log.last().connection > before;
    after_a_look("the new authority is trusted", other).await;
    server.show(&new.server(&["127.0.0.1"], |_| {}));
    write_pair(&folder, &third);
    shown(&third).await;
    std::fs::remove_file(folder.path().join("ca.crt")).unwrap();
    go_on().await;
    let before = server.accepted();
    write(folder.path(), "ca.crt", &new.pem());
    after_a_look("the old authority is no longer trusted", || server.accepted() > before).await;
    go_on().await;
    stop.store(true, Ordering::SeqCst);
    while let Some(end) = load.join_next().await {
        end.expect("no request fails");
    }
    // Old connections are gone, but for that of the watch, which goes on.
    assert_eq!(transport.connections().requests, 1);
    let more = watch.next().now_or_never();
    assert!(more.is_none(), "the watch ended: {more:?}");
    // The next one shows the new certificate.
    let mut next = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    next.next().await.unwrap().unwrap();
    assert_eq!(server.log.last().client, Some(third.der));
}

#[tokio::test(start_paused = true)]
async fn a_pod_follows_its_authority() {
    let _still = Still::new();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "token", "t");
    write(folder.path(), "ca.crt", &old.pem());
    let server = Server::start(Some(old.server(&["127.0.0.1"], |_| {})), pod_or_watch).await;
    let (host, port) = ("127.0.0.1".to_owned(), server.address.port().to_string());
    let pod = InCluster { host, port, folder: folder.path().to_owned() };
    let mut config = pod.config().unwrap();
    config.timeouts.files = PERIOD;
    let transport = Transport::connect(config).unwrap();
    transport.clone().oneshot(get("a")).await.unwrap();
    server.show(&new.server(&["127.0.0.1"], |_| {}));
    write(folder.path(), "ca.crt", &new.pem());
    tokio::time::advance(Duration::from_millis(30)).await;
    transport.clone().oneshot(create()).await.unwrap();
    assert_eq!(server.accepted(), 2, "the old connection is left");
    // Unchanged files change nothing.
    tokio::time::advance(Duration::from_millis(30)).await;
    transport.oneshot(create()).await.unwrap();
    assert_eq!(server.accepted(), 2);
    assert_eq!(server.log.last().headers["authorization"], "Bearer t");
}
