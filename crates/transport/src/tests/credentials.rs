//! What goes into the headers, and how it is renewed.

use std::collections::BTreeMap;
use std::time::Duration;

use kubestrata_api_types::cause_ref;
use tokio::time::{Instant, advance};
use tower::ServiceExt as _;

use super::clock::{SOON, Still};
use super::server::{Seen, answer, json, over};
use super::{create, get, pod};
use crate::{Auth, AuthError, Config, Impersonation};

pub(super) fn authorization(seen: &Seen) -> &str {
    seen.headers.get("authorization").map_or("", |value| value.to_str().unwrap())
}

#[tokio::test(start_paused = true)]
async fn credentials_become_headers() {
    for (auth, want) in [
        (Auth::none(), ""),
        (Auth::token("t0ken"), "Bearer t0ken"),
        (Auth::basic("me", "secret"), "Basic bWU6c2VjcmV0"),
    ] {
        let shown = format!("{auth:?}");
        assert!(!shown.contains("t0ken") && !shown.contains("secret"), "{shown}");
        let config = Config::in_process().auth(auth);
        let (transport, log) = over(config, |_| async { json(pod("a", 1)) });
        transport.oneshot(get("a")).await.unwrap();
        assert_eq!(authorization(&log.last()), want);
    }
}

#[tokio::test(start_paused = true)]
async fn impersonation_becomes_headers() {
    let mut config = Config::in_process();
    config.impersonate = Some(Impersonation {
        user: "jane".to_owned(),
        uid: Some("7".to_owned()),
        groups: vec!["dev".to_owned(), "ops".to_owned()],
        extra: BTreeMap::from([("Acme/Team".to_owned(), vec!["blue".to_owned()])]),
    });
    let (transport, log) = over(config, |_| async { json(pod("a", 1)) });
    transport.oneshot(get("a")).await.unwrap();
    let headers = log.last().headers;
    assert_eq!(
        (&headers["impersonate-user"], &headers["impersonate-uid"]),
        (&"jane".parse().unwrap(), &"7".parse().unwrap())
    );
    assert_eq!(headers.get_all("impersonate-group").iter().collect::<Vec<_>>(), ["dev", "ops"]);
    assert_eq!(headers["impersonate-extra-acme%2fteam"], "blue");
}

#[tokio::test(start_paused = true)]
async fn a_token_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "one\n").unwrap();
    let config = Config::in_process().auth(Auth::token_file(&path));
    let (transport, log) = over(config, |_| async { json(pod("a", 1)) });
    let call = || async {
        transport.clone().oneshot(get("a")).await.unwrap();
        authorization(&log.last()).to_owned()
    };
    assert_eq!(call().await, "Bearer one");
    std::fs::write(&path, "two").unwrap();
    assert_eq!(call().await, "Bearer one");
    advance(Duration::from_secs(61)).await;
    assert_eq!(call().await, "Bearer two");
    // Gone for a moment, as while it is replaced: the old one is tried.
    std::fs::remove_file(&path).unwrap();
    advance(Duration::from_secs(61)).await;
    assert_eq!(call().await, "Bearer two");
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_renewed_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "old").unwrap();
    let config = Config::in_process().auth(Auth::token_file(&path));
    let (transport, log) = over(config, |seen| async move {
        if authorization(&seen) == "Bearer new" {
            json(pod("a", 1))
        } else {
            answer(401, "text/plain", "Unauthorized")
        }
    });
    // Nothing newer: the refusal stands, without a second try.
    assert!(transport.clone().oneshot(create()).await.is_err());
    assert_eq!(log.len(), 1);
    std::fs::write(&path, "new").unwrap();
    transport.clone().oneshot(create()).await.unwrap();
    assert_eq!(log.len(), 3);
    transport.oneshot(create()).await.unwrap();
    assert_eq!(log.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_missing_token_file_is_named() {
    let config = Config::in_process().auth(Auth::token_file("/no/such/token"));
    let (transport, log) = over(config, |_| async { json(pod("a", 1)) });
    let error = transport.oneshot(get("a")).await.unwrap_err();
    assert!(matches!(
        cause_ref::<AuthError>(&*error),
        Some(AuthError::TokenFile { path, .. }) if path.ends_with("such/token")
    ));
    assert_eq!(log.len(), 0);
}

/// Lets time pass until this is done.
async fn in_time<F: Future>(call: F) -> F::Output {
    tokio::pin!(call);
    loop {
        tokio::select! {
            biased; // What is done needs no more time.
            done = &mut call => return done,
            () = advance(Duration::from_millis(10)) => {}
        }
    }
}

/// A pipe that nobody writes to, as a disk that is gone: the layer alone has no other deadline.
#[tokio::test(start_paused = true)]
async fn a_token_file_that_hangs_has_a_limit() {
    use tower::Layer as _;
    // What hangs here holds the clock too; no reading of a file that is there may be late.
    let _still = Still::new();
    let folder = tempfile::tempdir().unwrap();
    let (path, pipe) = (folder.path().join("token"), folder.path().join("pipe"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let _opened = Opened(&pipe);
    std::fs::write(&path, "one").unwrap();
    let inner = tower::service_fn(|request: http::Request<()>| async move {
        let sent = request.headers()["authorization"].to_str().unwrap().to_owned();
        Ok::<_, kubestrata_api_types::BoxError>(http::Response::new(sent))
    });
    let mut config = Config::in_process().auth(Auth::token_file(&path));
    config.timeouts.token_file = Duration::from_millis(50);
    config.timeouts.files = Duration::from_millis(1);
    let short = config.clone();
    let new = || crate::AuthLayer::new(&short).unwrap().layer(inner);
    let call = |service: &crate::AuthService<_>| {
        let sent = service.clone().oneshot(http::Request::new(()));
        async { sent.await.map(http::Response::into_body) }
    };
    let old = new();
    assert_eq!(call(&old).await.unwrap(), "Bearer one");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&pipe, &path).unwrap();
    let fresh = new();
    let error = in_time(call(&fresh)).await.unwrap_err();
    let error = cause_ref::<AuthError>(&*error).unwrap();
    assert!(matches!(error, AuthError::TokenFileTimeout { .. }), "{error:?}");
    // What there was before is used on, and nobody waits long for something newer.
    assert_eq!(in_time(call(&old)).await.unwrap(), "Bearer one");
    config.timeouts.token_file = Duration::from_secs(600);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "one").unwrap();
    let patient = crate::AuthLayer::new(&config).unwrap().layer(inner);
    assert_eq!(call(&patient).await.unwrap(), "Bearer one");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&pipe, &path).unwrap();
    advance(Duration::from_millis(5)).await;
    let start = Instant::now();
    assert_eq!(in_time(call(&patient)).await.unwrap(), "Bearer one");
    assert!(start.elapsed() < SOON, "the old one is used meanwhile: {:?}", start.elapsed());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "two").unwrap();
    advance(Duration::from_millis(1050)).await;
    for service in [&old, &fresh] {
        assert_eq!(call(service).await.unwrap(), "Bearer two");
    }
}

/// Lets the threads go that still wait for a pipe: the runtime ends no sooner than they.
struct Opened<'a>(&'a std::path::Path);

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // More than once: a thread may be about to wait for it.
        for _ in 0..5 {
            // To read and write, which waits for nobody.
            let _ = std::fs::OpenOptions::new().read(true).write(true).open(self.0);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_file_has_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    for (text, want) in [
        (vec![b'x'; (1 << 20) + 1], "it has more than 1048576 bytes"),
        (b"top-secret \xff".to_vec(), "it is not UTF-8"),
    ] {
        std::fs::write(&path, text).unwrap();
        let config = Config::in_process().auth(Auth::token_file(&path));
        let (transport, _) = over(config, |_| async { json(pod("a", 1)) });
        let error = transport.oneshot(get("a")).await.unwrap_err();
        let cause = cause_ref::<AuthError>(&*error);
        let Some(AuthError::TokenFile { source, .. }) = cause else { panic!("{error:?}") };
        assert_eq!(source.to_string(), want);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_acted_as_without_a_name() {
    let mut config = Config::in_process();
    config.impersonate =
        Some(Impersonation { groups: vec!["dev".to_owned()], ..Impersonation::default() });
    let service = tower::service_fn(|_: http::Request<crate::RequestBody>| async {
        Ok::<_, std::convert::Infallible>(json(pod("a", 1)))
    });
    let error = crate::Transport::over(service, config).unwrap_err();
    assert!(matches!(cause_ref(&error), Some(AuthError::NobodyToActAs)), "{error:?}");
}

/// client-go's round trippers.
#[tokio::test(start_paused = true)]
async fn a_request_keeps_what_it_says_itself() {
    use tower::Layer as _;
    let mut config = Config::in_process().auth(Auth::token_file("/no/such/token"));
    config.user_agent = "ours".to_owned();
    config.impersonate = Some(Impersonation {
        user: "jane".to_owned(),
        groups: vec!["dev".to_owned()],
        ..Impersonation::default()
    });
    let layer = crate::AuthLayer::new(&config).unwrap();
    let inner = tower::service_fn(|request: http::Request<()>| async move {
        let names = ["authorization", "user-agent", "impersonate-user", "impersonate-group"];
        let all = |name| request.headers().get_all(name).iter().collect::<Vec<_>>();
        let shown = names.map(|name| format!("{:?}", all(name))).join(" ");
        let code = if shown.contains("refused") { 401 } else { 200 };
        let response = http::Response::builder().status(code).body(shown).unwrap();
        Ok::<_, kubestrata_api_types::BoxError>(response)
    });
    let service = layer.layer(inner);
    let send = async |headers: &[(&str, &str)]| {
        let mut request = http::Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = service.clone().oneshot(request.body(()).unwrap()).await;
        sent.map(http::Response::into_body).map_err(|error| error.to_string())
    };
    let own = ("authorization", "Bearer own");
    let shown = send(&[own]).await.unwrap();
    assert_eq!(shown, r#"["Bearer own"] ["ours"] ["jane"] ["dev"]"#);
    let shown = send(&[own, ("user-agent", "theirs"), ("impersonate-user", "joe")]).await.unwrap();
    assert_eq!(shown, r#"["Bearer own"] ["theirs"] ["joe"] []"#);
    let shown = send(&[("authorization", "refused")]).await.unwrap();
    assert_eq!(shown, r#"["refused"] ["ours"] ["jane"] ["dev"]"#);
    assert!(send(&[]).await.unwrap_err().contains("/no/such/token"));
}

/// The layer in a stack that is not ours: another body, and boxed errors.
#[tokio::test(start_paused = true)]
async fn credentials_fit_a_foreign_stack() {
    use http_body_util::Full;
    use tower::{Layer as _, Service as _};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "old").unwrap();
    let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
    let observe = crate::ObserveLayer::new(metrics.clone(), "them", crate::Observe::default());
    let auth = crate::AuthLayer::new(&Config::in_process().auth(Auth::token_file(&path))).unwrap();
    let inner = tower::service_fn(|request: http::Request<Full<bytes::Bytes>>| async move {
        let good = request.headers()["authorization"] == "Bearer new";
        let code = if good { 200 } else { 401 };
        Ok::<_, kubestrata_api_types::BoxError>(
            http::Response::builder().status(code).body(()).unwrap(),
        )
    });
    let mut stack = auth.layer(observe.layer(inner));
    let request = http::Request::new(Full::new(bytes::Bytes::from_static(b"x")));
    assert_eq!(stack.call(request.clone()).await.unwrap().status(), 401);
    std::fs::write(&path, "new").unwrap();
    assert_eq!(stack.call(request).await.unwrap().status(), 200);
    let count = |code: u16| {
        metrics.value(&format!(
            r#"rest_client_requests_total{{code="{code}",method="GET",host="them"}}"#
        ))
    };
    assert_eq!((count(401), count(200)), (Some(2.0), Some(1.0)));
    std::fs::remove_file(&path).unwrap();
    let nothing = crate::AuthLayer::new(&Config::in_process().auth(Auth::token_file(&path)));
    let mut stack = nothing.unwrap().layer(stack);
    let error = stack.call(http::Request::new(Full::default())).await.unwrap_err();
    assert!(matches!(cause_ref(&*error), Some(AuthError::TokenFile { .. })), "{error:?}");
}
