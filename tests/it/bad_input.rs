//! What goes wrong outside: each row gives a typed, clear error, or is recovered from.

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kubestrata_api_types::{
    BoxError, Collection, Event, Kind as _, ListOptions, ObjectKey, Status, WatchOptions, cause_ref,
};
use kubestrata_codec::{Client as _, WatchError};
use kubestrata_transport::{
    Auth, Config, ConfigError, KubeconfigError, Limits, Pem, Retry, Tls, Transport, TransportError,
};
use libtest_mimic::Trial;
use tokio::time::timeout;

use crate::bed::{SOON, singles};
use crate::canned::{self, Canned, config_map};
use crate::target::{Live, Target};

pub(crate) fn trials() -> Vec<Trial> {
    singles![
        an_unreachable_server_is_named,
        a_certificate_of_a_stranger_is_refused,
        an_expired_token_is_unauthorized,
        a_forbidden_request_says_what_is_forbidden,
        an_unknown_context_names_the_known_ones,
        a_malformed_kubeconfig_is_located_and_keeps_its_secrets,
        a_watch_that_breaks_within_a_frame_is_an_error,
        a_frame_over_the_limit_is_an_error,
        an_event_of_a_foreign_kind_costs_only_itself,
        an_object_that_does_not_decode_hides_no_other,
        a_web_page_is_not_taken_for_an_answer,
    ]
}

/// A transport that asks once.
fn connect(url: &str) -> Transport {
    let mut config = Config::new(url).unwrap();
    config.retry = Retry::never();
    Transport::connect(config).unwrap()
}

fn config_maps() -> Collection {
    Collection::new(ConfigMap::resource().clone()).in_namespace("default")
}

/// All levels of an error, as a person would see them.
fn chain(error: &BoxError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

async fn refused(transport: &Transport) -> BoxError {
    let key = ObjectKey::namespaced("default", "one");
    let get = timeout(SOON, transport.get::<ConfigMap>(&key)).await.expect("an answer in time");
    get.expect_err("a refusal").into()
}

async fn an_unreachable_server_is_named() {
    // Bound and not listening: nobody else gets the port, and it refuses.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = closed.local_addr().unwrap().port();
    let error = refused(&connect(&format!("http://127.0.0.1:{port}"))).await;
    let cause = cause_ref::<TransportError>(error.as_ref());
    assert!(matches!(cause, Some(TransportError::Connect(_))), "{error:?}");
    assert!(cause.unwrap().is_unsent());
    assert!(chain(&error).contains(&port.to_string()), "{}", chain(&error));
}

async fn a_certificate_of_a_stranger_is_refused() {
    let (server, stranger) = (Live::start(Target::Tls).await, Live::start(Target::Tls).await);
    let mut config = server.config();
    config.tls = Tls::trust(Pem::inline(stranger.authority()));
    config.retry = Retry::never();
    let error = refused(&Transport::connect(config).unwrap()).await;
    let cause = cause_ref::<TransportError>(error.as_ref());
    assert!(matches!(cause, Some(TransportError::Connect(_))), "{error:?}");
    assert!(chain(&error).to_lowercase().contains("certificate"), "{}", chain(&error));
}

async fn an_expired_token_is_unauthorized() {
    let body = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
    let server = Canned::start(move |_| canned::json(401, body)).await;
    let mut config = Config::new(&server.url).unwrap().auth(Auth::token("s3cret-and-expired"));
    config.retry = Retry::never();
    let error = refused(&Transport::connect(config).unwrap()).await;
    assert!(cause_ref::<Status>(error.as_ref()).unwrap().is_unauthorized(), "{error:?}");
    assert!(!format!("{error:?}{}", chain(&error)).contains("s3cret"), "a token in an error");
}

async fn a_forbidden_request_says_what_is_forbidden() {
    let body = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"one\" is forbidden: User \"plain\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\"","reason":"Forbidden","details":{"name":"one","kind":"configmaps"},"code":403}"#;
    let server = Canned::start(move |_| canned::json(403, body)).await;
    let error = refused(&connect(&server.url)).await;
    let status = cause_ref::<Status>(error.as_ref()).unwrap();
    assert!(status.is_forbidden(), "{status:?}");
    assert!(chain(&error).contains("cannot get resource"), "{}", chain(&error));
}

fn kubeconfig(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

async fn an_unknown_context_names_the_known_ones() {
    let (_folder, path) = kubeconfig(
        "apiVersion: v1\nkind: Config\ncurrent-context: gone\n\
         clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n\
         users: [{name: u, user: {token: s3cret}}]\n\
         contexts: [{name: here, context: {cluster: c, user: u}}]\n",
    );
    let error = Config::from_kubeconfig(&path).expect_err("there is no such context");
    let error: BoxError = error.into();
    let cause = cause_ref::<KubeconfigError>(error.as_ref()).unwrap();
    let KubeconfigError::Unknown { kind: "context", name, known, .. } = cause else {
        panic!("{cause:?}")
    };
    assert_eq!((name.as_str(), known.as_slice()), ("gone", &["here".to_owned()][..]));
    assert!(!format!("{error:?}").contains("s3cret"));
}

async fn a_malformed_kubeconfig_is_located_and_keeps_its_secrets() {
    for (line, text) in [
        (4, "apiVersion: v1\nkind: Config\nusers:\n- name: [u\n  user: {token: s3cret}\n"),
        (6, "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user:\n    token: [s3cret]\n"),
    ] {
        let (_folder, path) = kubeconfig(text);
        let error: ConfigError = Config::from_kubeconfig(&path).expect_err("it is malformed");
        let error: BoxError = error.into();
        let text = chain(&error);
        assert!(text.contains(path.to_str().unwrap()), "the file: {text}");
        let cause = cause_ref::<KubeconfigError>(error.as_ref()).unwrap();
        let KubeconfigError::Malformed { place, .. } = cause else { panic!("{cause:?}") };
        assert!(place.line.abs_diff(line) <= 1, "line {line}: {text}");
        assert!(!format!("{error:?}{text}").contains("s3cret"), "a secret in an error");
    }
}

fn added(object: &str) -> String {
    format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")
}

async fn a_watch_that_breaks_within_a_frame_is_an_error() {
    for broken in [canned::stream as fn(&str) -> Vec<u8>, canned::broken_stream] {
        let whole = added(&config_map("a", 5));
        let half = added(&config_map("b", 6));
        let body = format!("{whole}{}", &half[..half.len() / 2]);
        let server = Canned::start(move |_| broken(&body)).await;
        let client = connect(&server.url);
        let mut watch = client.watch(config_maps(), WatchOptions::default()).await.unwrap();
        let first = timeout(SOON, watch.next()).await.unwrap().unwrap().unwrap();
        assert!(matches!(first, Event::Added(_)), "what came whole counts: {first:?}");
        let second = timeout(SOON, watch.next()).await.unwrap();
        assert!(matches!(second, Some(Err(_))), "half a frame is no clean end: {second:?}");
    }
}

async fn a_frame_over_the_limit_is_an_error() {
    let server = Canned::start(|_| canned::stream(&added(&config_map(&"x".repeat(5000), 5)))).await;
    let mut config = Config::new(&server.url).unwrap().limits(Limits::default());
    config.decoding.frame_bytes = 1000;
    let client = Transport::connect(config).unwrap();
    let mut watch = client.watch(config_maps(), WatchOptions::default()).await.unwrap();
    let error = timeout(SOON, watch.next()).await.unwrap().unwrap().expect_err("it is too large");
    let cause = cause_ref::<WatchError>(error.as_ref());
    assert!(matches!(cause, Some(WatchError::TooLarge { .. })), "{error:?}");
    assert!(!chain(&error).contains("xxx"), "contents in an error");
}

async fn an_event_of_a_foreign_kind_costs_only_itself() {
    let foreign = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"default","resourceVersion":"6"},"data":{"a":"c2VjcmV0"}}"#;
    let body =
        format!("{}{}{}", added(&config_map("a", 5)), added(foreign), added(&config_map("b", 7)));
    let server = Canned::start(move |_| canned::stream(&body)).await;
    let client = connect(&server.url);
    let mut watch = client.watch(config_maps(), WatchOptions::default()).await.unwrap();
    let mut texts = Vec::new();
    while let Some(event) = timeout(SOON, watch.next()).await.unwrap() {
        texts.push(match event.unwrap() {
            Event::Added(object) => format!("+{}", kubestrata_api_types::Object::name(&object)),
            Event::Unreadable(unreadable) => {
                assert!(!unreadable.to_string().contains("c2VjcmV0"), "contents in an error");
                assert!(unreadable.problem.contains("Secret"), "{unreadable}");
                "?".to_owned()
            }
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(texts, ["+a", "?", "+b"]);
}

async fn an_object_that_does_not_decode_hides_no_other() {
    let bad = r#"{"metadata":{"name":"bad","namespace":"default","resourceVersion":"6"},"data":["not","a","map"]}"#;
    let list = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{},{bad},{}]}}"#,
        config_map("a", 5),
        config_map("b", 7)
    );
    let server = Canned::start(move |_| canned::json(200, &list)).await;
    let client = connect(&server.url);
    let list = client.list::<ConfigMap>(Some("default"), ListOptions::default()).await.unwrap();
    let names: Vec<_> =
        list.items.iter().map(|item| item.metadata.name.as_deref().unwrap_or_default()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(list.undecodable.len(), 1);
    let undecodable = &list.undecodable[0];
    assert_eq!(undecodable.key, ObjectKey::namespaced("default", "bad"));
    assert!(undecodable.path.starts_with("data"), "{undecodable}");
}

async fn a_web_page_is_not_taken_for_an_answer() {
    let page = "<html>Please log in</html>";
    let server = Canned::start(move |_| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
            page.len()
        )
        .into_bytes()
    })
    .await;
    let error = refused(&connect(&server.url)).await;
    let cause = cause_ref::<TransportError>(error.as_ref());
    assert!(matches!(cause, Some(TransportError::ContentType { .. })), "{error:?}");
    assert_eq!(server.requests().len(), 1);
}
