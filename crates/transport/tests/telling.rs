//! What is told to people: spans and log lines. In a program of its own: tests beside it could reach a line first and make
//! tracing remember that nobody listens.

#![expect(clippy::unwrap_used, reason = "a test: a failure is a panic")]

use std::convert::Infallible;
use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use expect_test::expect;
use futures_util::StreamExt as _;
use http::Response;
use http_body_util::Full;
use kubestrata_api_types::{
    ApiRequest, Collection, GetOptions, ListWatch as _, Operation, Payload, ResourceType, Scope,
    WatchOptions, WriteOptions,
};
use kubestrata_transport::{Auth, Config, RequestBody, Transport};
use tower::ServiceExt as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

/// Writes down every span and event of this crate. Times are left out, as they differ.
#[derive(Default, Clone)]
struct Tape(Arc<Mutex<(String, Vec<u64>)>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != "elapsed" {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }
}

impl Subscriber for Tape {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("kubestrata_transport")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let (text, _) = &mut *self.0.lock().unwrap();
        write!(text, "span {}:", span.metadata().name()).unwrap();
        span.record(&mut Fields(text));
        text.push('\n');
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let (text, _) = &mut *self.0.lock().unwrap();
        values.record(&mut Fields(text));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let (text, entered) = &mut *self.0.lock().unwrap();
        let within = if entered.is_empty() { "" } else { "  " };
        write!(text, "{within}{}:", event.metadata().level()).unwrap();
        event.record(&mut Fields(text));
        text.push('\n');
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().1.push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().1.pop();
    }
}

/// Each request has a span with its verb and what it is about; and nowhere is there anything of a body, a query or a token.
#[tokio::test(start_paused = true)]
async fn spans_name_requests_and_tell_no_contents() {
    let tape = Tape::default();
    let _guard = tracing::subscriber::set_default(tape.clone());
    let answers = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: http::Request<RequestBody>| {
        let n = answers.fetch_add(1, Ordering::SeqCst);
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let secret = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"d"},"data":{"p":"hunter2"}}"#;
        let (code, body) = match n {
            0 => (429, "hunter2 is busy".to_owned()),
            1 => (
                403,
                r#"{"kind":"Status","reason":"Forbidden","message":"hunter2","code":403}"#
                    .to_owned(),
            ),
            // What cannot be read is told without a byte of it.
            2 => (
                200,
                r#"{"kind":"Secret","apiVersion":"v1","metadata":"hunter2","data":7"#.to_owned(),
            ),
            _ if watch && n == 3 => {
                (200, "{\"type\":\"ADDED\",\"object\":\"hunter2\"}\n".to_owned())
            }
            _ if watch => (200, format!("{{\"type\":\"ADDED\",\"object\":{secret}}}\n")),
            _ => (200, secret.to_owned()),
        };
        let response = Response::builder().status(code).header("content-type", "application/json");
        let response = if code == 429 { response.header("retry-after", "1") } else { response };
        let response = response.header("warning", r#"299 - "hunter2""#);
        async move { Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).unwrap()) }
    });
    let mut config = Config::in_process().auth(Auth::token("hunter2"));
    config.server = "http://in-process/base".parse().unwrap();
    let transport = Transport::over(service, config).unwrap();
    let secrets = Collection::new(ResourceType::from_static(
        "",
        "v1",
        "Secret",
        "secrets",
        Scope::Namespaced,
    ))
    .in_namespace("d");
    let create = || {
        let body = Payload::json(r#"{"kind":"Secret","data":{"p":"hunter2"}}"#);
        let options = WriteOptions::default();
        ApiRequest::new(secrets.clone(), Operation::Create { name: None, body, options })
    };
    let mut told = String::new();
    let mut tell = |error: &(dyn std::error::Error + 'static)| {
        let mut current = Some(error);
        while let Some(error) = current {
            writeln!(told, "{error}").unwrap();
            current = error.source();
        }
    };
    // The server's own words about a refusal are for the caller, and in no log.
    transport.clone().oneshot(create()).await.unwrap_err();
    tell(&*transport.clone().oneshot(create()).await.unwrap_err());
    let mut watch = transport.watch(&secrets, WatchOptions::default()).await.unwrap();
    match watch.next().await.unwrap() {
        Err(error) => tell(&*error),
        Ok(event) => writeln!(told, "{event:?}").unwrap(),
    }
    assert!(!told.contains("hunter2"), "{told}");
    transport.clone().oneshot(create()).await.unwrap();
    let options = GetOptions::default();
    let mut get = ApiRequest::new(secrets.clone(), Operation::Get { name: "s".into(), options });
    get.subresource = Some("status".into());
    transport.clone().oneshot(get).await.unwrap();
    let options =
        WatchOptions { labels: "password=hunter2".parse().unwrap(), ..WatchOptions::default() };
    let mut watch = transport.watch(&secrets, options).await.unwrap();
    watch.next().await.unwrap().unwrap();
    let text = tape.0.lock().unwrap().0.clone();
    assert!(!text.contains("hunter2"), "{text}");
    expect![[r#"
        span request: verb=create resource=secrets namespace="d"
          DEBUG: message=request method=POST path="/base/api/v1/namespaces/d/secrets" code=429
          DEBUG: message=trying again retries=1 wait=1s path="/base/api/v1/namespaces/d/secrets"
          DEBUG: message=request method=POST path="/base/api/v1/namespaces/d/secrets" code=403
        span request: verb=create resource=secrets namespace="d"
          DEBUG: message=request method=POST path="/base/api/v1/namespaces/d/secrets" code=200
        span request: verb=watch resource=secrets namespace="d"
          DEBUG: message=request method=GET path="/base/api/v1/namespaces/d/secrets" code=200
        span request: verb=create resource=secrets namespace="d"
          DEBUG: message=request method=POST path="/base/api/v1/namespaces/d/secrets" code=200
        span request: verb=get resource=secrets namespace="d" name="s" subresource="status"
          DEBUG: message=request method=GET path="/base/api/v1/namespaces/d/secrets/s/status" code=200
        span request: verb=watch resource=secrets namespace="d"
          DEBUG: message=request method=GET path="/base/api/v1/namespaces/d/secrets" code=200
    "#]].assert_eq(&text);
}
