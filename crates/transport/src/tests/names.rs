//! Names that have several addresses, or others than before.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tower::ServiceExt as _;

use super::clock::{Still, closed_port, really};
use super::server::{Identity, Server};
use super::sockets::{chain, pod_or_watch, transport_error};
use super::{create, get};
use crate::{Config, ConnectError, Phase, Resolver, Retry, Transport, TransportError};

/// What a name means at the moment, and how often that was asked.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<(Vec<SocketAddr>, usize)>>);

impl Names {
    fn set(&self, addresses: &[SocketAddr]) {
        self.0.lock().0 = addresses.to_vec();
    }

    fn asked(&self) -> usize {
        self.0.lock().1
    }

    fn resolver(&self) -> Resolver {
        let names = self.clone();
        Resolver::new(move |host, _| {
            assert_eq!(host, "api.test");
            let mut names = names.0.lock();
            names.1 += 1;
            let addresses = names.0.clone();
            async move { Ok(addresses) }
        })
    }
}

fn config(server: &Server, names: &Names) -> Config {
    let mut config = server.config();
    config.server = "https://api.test".parse().unwrap();
    config.resolver = names.resolver();
    config
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_name_is_followed_with_the_next_connection() {
    let _still = Still::new();
    let identity = Identity::issued(&["api.test"]);
    let old = Server::start(Some(identity.clone()), pod_or_watch).await;
    let new = Server::start(Some(identity), pod_or_watch).await;
    let names = Names::default();
    names.set(&[old.address]);
    let metrics = Arc::new(kubestrata_telemetry::Memory::default());
    let mut config = config(&old, &names);
    (config.metrics, config.observe.resolver) = (metrics.clone(), true);
    config.retry = Retry::never();
    let transport = Transport::connect(config).unwrap();
    transport.clone().oneshot(get("a")).await.unwrap();
    names.set(&[new.address]);
    // What is open stays where it is, as for client-go: it still serves.
    for _ in 0..3 {
        transport.clone().oneshot(create()).await.unwrap();
    }
    assert_eq!((old.log.len(), new.log.len(), names.asked()), (4, 0, 1));
    // Once that ends, the name is asked again.
    drop(old);
    for _ in 0..10_000 {
        // One that is sent into what ends at this moment may fail.
        let _ = transport.clone().oneshot(get("a")).await;
        if new.log.len() > 0 {
            break;
        }
        really(Duration::from_millis(5)).await;
    }
    transport.clone().oneshot(create()).await.unwrap();
    assert!(new.log.len() >= 1);
    assert_eq!(names.asked(), 2);
    let count = r#"rest_client_dns_resolution_duration_seconds_count{host="api.test"} 2"#;
    assert!(metrics.render().contains(count), "{}", metrics.render());
}

#[tokio::test(start_paused = true)]
async fn an_address_that_refuses_or_swallows_costs_a_moment() {
    let _still = Still::new();
    let server = Server::start(Some(Identity::issued(&["api.test"])), pod_or_watch).await;
    // Nobody listens there. Not every machine has the other family.
    let (_closed, refuses) = closed_port("::1").or_else(|_| closed_port("127.0.0.2")).unwrap();
    let names = Names::default();
    names.set(&[refuses, server.address]);
    // Not even the pause before the next address is tried beside it: the clock stands still.
    Transport::connect(config(&server, &names)).unwrap().oneshot(get("a")).await.unwrap();
    // All refuse: the error names the server as it is known, and is one that any request may be repeated after.
    names.set(&[refuses, "127.0.0.2:1".parse().unwrap()]);
    let error = Transport::connect(config(&server, &names)).unwrap().oneshot(create()).await;
    let error = error.unwrap_err();
    assert!(transport_error(&error).is_unsent());
    let text = chain(&*error);
    assert!(text.contains("api.test:443 cannot be reached"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_resolver_that_hangs_or_fails_is_named() {
    let mut config = Config::new("https://api.test").unwrap();
    config.resolver = Resolver::new(|_, _| std::future::pending());
    let (limit, started) = (config.timeouts.connect, tokio::time::Instant::now());
    let error = Transport::connect(config.clone()).unwrap().oneshot(create()).await.unwrap_err();
    assert_eq!(transport_error(&error).timeout(), Some(Phase::Connect));
    assert_eq!(started.elapsed(), limit);
    config.resolver = Resolver::new(|_, _| async { Err(io::ErrorKind::NotFound.into()) });
    let error = Transport::connect(config.clone()).unwrap().oneshot(create()).await.unwrap_err();
    let TransportError::Connect(error) = transport_error(&error) else { panic!("{error:?}") };
    assert!(matches!(error.get(), ConnectError::Resolve { host, .. } if host == "api.test"));
    // No more addresses are tried than the limit says.
    config.limits.addresses = 2;
    let asked = "127.0.0.2:1".parse().unwrap();
    config.resolver = Resolver::new(move |_, _| async move { Ok(vec![asked; 1000]) });
    Transport::connect(config).unwrap().oneshot(create()).await.unwrap_err();
}
