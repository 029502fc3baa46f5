//! Certificates of servers: which are believed, and what is said of those that are not.

use std::net::{IpAddr, Ipv4Addr};

use rcgen::{CertificateParams, SanType};
use tower::ServiceExt as _;

use super::server::{Authority, Identity, Server};
use super::sockets::{chain, pod_or_watch, transport_error};
use super::{create, get};
use crate::{
    CertificateProblemKind, Config, ConnectError, Identity as Pair, Pem, Protocol, Tls, Transport,
    TransportError,
};

#[tokio::test]
async fn certificates_are_verified() {
    let server = Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await;
    server.transport().oneshot(get("a")).await.unwrap();

    let refused = |config: Config| async move {
        let error = Transport::connect(config).unwrap().oneshot(create()).await.unwrap_err();
        assert!(transport_error(&error).is_unsent());
        chain(&*error)
    };
    // Another authority.
    let mut config = server.config();
    let other = Identity::issued(&["127.0.0.1"]);
    config.tls = Tls::trust(Pem::inline(other.authority_pem));
    let text = refused(config).await;
    let want = format!(
        "the certificate of {} is refused: it is issued by \"CN=test authority\", of which another key is trusted: the \
         authority was made anew (certificate of \"CN=rcgen self signed cert\", issued by \"CN=test authority\")",
        server.address
    );
    assert!(text.contains(&want), "{text}");
    let mut config = server.config();
    config.tls = Tls::trust(Pem::inline(Authority::new("other").pem()));
    let text = refused(config).await;
    assert!(text.contains("and trusted are only [\"CN=other\"]"), "{text}");
    // The platform does not know ours either.
    let mut config = server.config();
    config.tls = Tls::default();
    assert!(refused(config).await.contains("which the platform does not trust"));
    // Another name.
    let mut config = server.config();
    config.tls.server_name = Some("kubernetes.default".to_owned());
    let text = refused(config).await;
    assert!(
        text.contains("not valid for name \"kubernetes.default\", only for 127.0.0.1 ("),
        "{text}"
    );
    // Nobody is asked.
    let mut config = server.config();
    config.tls = Tls { insecure: true, ..Tls::default() };
    Transport::connect(config).unwrap().oneshot(get("a")).await.unwrap();
    // No certificate at all where one should be.
    let mut config = server.config();
    config.tls = Tls::trust(Pem::inline("garbage"));
    assert!(refused(config).await.contains("certificate authority (inline) is not valid PEM"));
    let mut config = server.config();
    config.tls = Tls::trust(Pem::file("/no/such/ca.crt"));
    assert!(refused(config).await.contains("certificate authority /no/such/ca.crt cannot be read"));
}

#[tokio::test]
async fn a_name_of_its_own_is_expected() {
    let server = Server::start(Some(Identity::issued(&["api.test"])), pod_or_watch).await;
    let mut config = server.config();
    assert!(Transport::connect(config.clone()).unwrap().oneshot(get("a")).await.is_err());
    config.tls.server_name = Some("api.test".to_owned());
    Transport::connect(config).unwrap().oneshot(get("a")).await.unwrap();
}

/// What kube-apiserver makes for itself is authority and server in one.
#[tokio::test]
async fn a_self_signed_certificate_is_its_own_authority() {
    let localhost = SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let good = |params: &mut CertificateParams| params.subject_alt_names = vec![localhost.clone()];
    let server = Server::start(Some(Identity::self_signed(&[], good)), pod_or_watch).await;
    server.transport().oneshot(get("a")).await.unwrap();
    // Byte for byte the same, or not at all.
    let mut config = server.config();
    config.tls = Tls::trust(Pem::inline(Identity::self_signed(&[], good).authority_pem));
    assert!(Transport::connect(config).unwrap().oneshot(get("a")).await.is_err());
    // Name and time are checked all the same.
    type Change = fn(&mut CertificateParams);
    let cases: [(&str, Change); 3] = [
        ("not valid for name", |params| {
            params.subject_alt_names = vec![SanType::DnsName("other".try_into().unwrap())];
        }),
        ("it expired at 2001-01-01T00:00:00Z, and it is 2", |params| {
            params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
            params.not_before = rcgen::date_time_ymd(2000, 1, 1);
            params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        }),
        ("not valid yet, only from 2999-01-01T00:00:00Z, and it is 2", |params| {
            params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
            params.not_before = rcgen::date_time_ymd(2999, 1, 1);
            params.not_after = rcgen::date_time_ymd(3000, 1, 1);
        }),
    ];
    for (want, bad) in cases {
        let server = Server::start(Some(Identity::self_signed(&[], bad)), pod_or_watch).await;
        let error = server.transport().oneshot(get("a")).await.unwrap_err();
        assert!(chain(&*error).contains(want), "{want}: {}", chain(&*error));
    }
}

#[tokio::test]
async fn the_problem_with_a_certificate_can_be_asked_for() {
    let authority = Authority::new("cluster");
    let expired = authority.server(&["127.0.0.1"], |params| {
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        params.distinguished_name.push(rcgen::DnType::CommonName, "kube-apiserver");
    });
    let server = Server::start(Some(expired), pod_or_watch).await;
    let error = server.transport().oneshot(get("a")).await.unwrap_err();
    let TransportError::Connect(error) = transport_error(&error) else { panic!("{error:?}") };
    let ConnectError::Certificate { problem, .. } = error.get() else { panic!("{error:?}") };
    assert!(matches!(problem.kind, CertificateProblemKind::Expired { now: Some(_) }));
    assert!(problem.subject.ends_with("CN=kube-apiserver"), "{}", problem.subject);
    assert_eq!(problem.not_after.unwrap().to_string(), "2001-01-01T00:00:00Z");
    assert_eq!(problem.not_before.unwrap().to_string(), "2000-01-01T00:00:00Z");
}

/// ferriskey#989, srelens#295: whatever cryptography a process has installed, or none, is not what is used.
#[tokio::test]
async fn no_provider_of_the_process_is_needed() {
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
    let server = Server::start(Some(Identity::issued(&["127.0.0.1"])), pod_or_watch).await;
    server.transport().oneshot(get("a")).await.unwrap();
    // The platform's verifier is made with ours too; it does not know this authority.
    let mut config = server.config();
    config.tls = Tls::default();
    assert!(Transport::connect(config).unwrap().oneshot(get("a")).await.is_err());
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}

/// With TLS 1.3 the server's refusal of our certificate is the first thing that we read from it.
#[tokio::test]
async fn a_server_that_refuses_our_certificate_is_told_with_its_names() {
    let (ours, other) = (Authority::new("cluster"), Authority::new("other"));
    let pair = |authority: &Authority, expired: bool| {
        let pair = authority.client("admin", |params| {
            if expired {
                params.not_before = rcgen::date_time_ymd(2000, 1, 1);
                params.not_after = rcgen::date_time_ymd(2001, 1, 1);
            }
        });
        Pair { certificate: Pem::inline(pair.certificate), key: Pem::inline(pair.key) }
    };
    let cases = [
        (None, "it wants a client certificate, and we have none ("),
        (
            Some(pair(&other, false)),
            "it refuses our client certificate of \"CN=admin\", which is valid until 4",
        ),
        (
            Some(pair(&ours, true)),
            "it refuses our client certificate of \"CN=admin\", which expired at 2001-01-01T00:00:00Z (CertificateExpired)",
        ),
    ];
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let server = Server::start(Some(ours.strict(version)), pod_or_watch).await;
        for protocol in [Protocol::Auto, Protocol::Http1] {
            let transport = |pair: Option<Pair>| {
                let mut config = server.config();
                config.protocol = protocol;
                config.tls.identity = pair;
                Transport::connect(config).unwrap()
            };
            for (pair, want) in &cases {
                let error = transport(pair.clone()).oneshot(create()).await.unwrap_err();
                let text = chain(&*error);
                // Nothing was done, and no retry was made of it.
                assert!(transport_error(&error).is_unsent(), "{version:?} {protocol:?}: {text}");
                assert!(text.contains(want), "{version:?} {protocol:?}: {text}");
                let TransportError::Connect(error) = transport_error(&error) else {
                    panic!("{text}")
                };
                assert!(matches!(error.get(), ConnectError::ClientCertificate { .. }), "{text}");
            }
            transport(Some(pair(&ours, false))).oneshot(create()).await.unwrap();
        }
    }
}
