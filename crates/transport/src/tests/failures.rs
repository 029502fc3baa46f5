//! Refusals, deadlines and retries, in the same process with a paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use http::Response;
use kubestrata_api_types::{
    ApiRequest, DeleteOptions, ListWatch as _, Operation, PatchKind, Status, WatchOptions,
    WriteOptions, cause_ref,
};
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::server::{Body, End, answer, json, over, pieces};
use super::{create, frame, get, pod, pods};
use crate::{Config, Phase, TransportError};

fn status(error: &kubestrata_api_types::BoxError) -> &Status {
    cause_ref::<Status>(&**error).unwrap_or_else(|| panic!("{error:?} holds no Status"))
}

fn timeout(error: &kubestrata_api_types::BoxError) -> Option<Phase> {
    cause_ref::<TransportError>(&**error)?.timeout()
}

#[tokio::test(start_paused = true)]
async fn refusals_are_statuses() {
    let refusals = [
        (
            401,
            "application/json",
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#,
        ),
        (
            403,
            "application/json",
            "{\n  \"kind\": \"Status\",\n  \"status\": \"Failure\",\n  \"message\": \"pods is forbidden\",\n  \"reason\": \"Forbidden\",\n  \"code\": 403\n}",
        ),
        (404, "text/plain; charset=utf-8", "404 page not found\n"),
        (
            410,
            "application/json",
            r#"{"kind":"Status","reason":"Expired","code":410,"message":"too old"}"#,
        ),
        (502, "text/html", "<html>bad gateway</html>"),
    ];
    for (code, content_type, body) in refusals {
        let (transport, log) =
            over(Config::in_process(), move |_| async move { answer(code, content_type, body) });
        let requests = [transport.clone().oneshot(get("a")).await.map(drop), {
            // kube#2061: a watch that is refused is no stream of broken events.
            transport.watch(&pods(), WatchOptions::default()).await.map(drop)
        }];
        for error in requests.map(Result::unwrap_err) {
            let status = status(&error);
            assert_eq!(status.code, code);
            assert_eq!(status.is_unauthorized(), code == 401);
            assert_eq!(status.is_forbidden(), code == 403);
            assert_eq!(status.is_not_found(), code == 404);
            assert_eq!(status.is_expired(), code == 410);
        }
        assert_eq!(log.len(), 2, "no retry without Retry-After");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_event_ends_the_watch_with_its_status() {
    let (transport, _) = over(Config::in_process(), |_| async {
        let gone = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (5)","reason":"Expired","code":410}"#;
        pieces(vec![frame("ERROR", gone).into()], End::Silent)
    });
    let mut watch = transport.watch(&pods(), WatchOptions::default()).await.unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(status(&error).is_expired());
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_body_of_an_unexpected_type_is_named() {
    let (transport, _) =
        over(Config::in_process(), |_| async { answer(200, "text/html", "<html>login</html>") });
    let error = transport.oneshot(get("a")).await.unwrap_err();
    assert!(matches!(
        cause_ref(&*error),
        Some(TransportError::ContentType { content_type }) if content_type == "text/html"
    ));
}

#[tokio::test(start_paused = true)]
async fn every_phase_that_hangs_has_its_deadline() {
    let config = Config::in_process();
    let timeouts = config.timeouts;
    // The head of the answer.
    let (transport, _) = over(config.clone(), |_| std::future::pending());
    let started = Instant::now();
    let error = transport.clone().oneshot(get("a")).await.unwrap_err();
    assert_eq!((timeout(&error), started.elapsed()), (Some(Phase::Answer), timeouts.answer));
    let started = Instant::now();
    let error = transport.watch(&pods(), WatchOptions::default()).await.map(drop).unwrap_err();
    assert_eq!((timeout(&error), started.elapsed()), (Some(Phase::Answer), timeouts.watch_answer));
    // A body, whole and as a stream.
    let (transport, _) = over(config.clone(), |_| async { pieces(vec!["{".into()], End::Silent) });
    let started = Instant::now();
    let error = transport.clone().oneshot(get("a")).await.unwrap_err();
    assert_eq!((timeout(&error), started.elapsed()), (Some(Phase::Body), timeouts.body));
    let mut list = transport.list(&pods(), Default::default()).await.unwrap();
    let error = list.next().await.unwrap().unwrap_err();
    assert_eq!(timeout(&error), Some(Phase::Body));
    assert!(list.next().await.is_none());
    // A watch that the server should have closed.
    let asked = Duration::from_secs(300);
    let options = WatchOptions { timeout: Some(asked), ..WatchOptions::default() };
    let started = Instant::now();
    let mut watch = transport.watch(&pods(), options).await.unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert_eq!(timeout(&error), Some(Phase::WatchEnd));
    assert_eq!(started.elapsed(), asked + timeouts.watch_margin);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_never_ready_has_its_deadline() {
    let service = tower::service_fn(|_: http::Request<crate::RequestBody>| async {
        Ok::<_, std::convert::Infallible>(json(pod("a", 1)))
    });
    let config = Config::in_process();
    let (limit, started) = (config.timeouts.wait, Instant::now());
    let none = tower::limit::ConcurrencyLimit::with_semaphore(
        service,
        std::sync::Arc::new(tokio::sync::Semaphore::new(0)),
    );
    let transport = crate::Transport::over(none, config).unwrap();
    let error = transport.oneshot(create()).await.unwrap_err();
    assert_eq!((timeout(&error), started.elapsed()), (Some(Phase::Wait), limit));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_does_not_time_itself_out() {
    let text = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{},{}]}}"#,
        pod("a", 1),
        pod("b", 2)
    );
    let cut: Vec<_> = text.as_bytes().chunks(100).map(Bytes::copy_from_slice).collect();
    let (transport, _) = over(Config::in_process(), move |_| {
        let cut = cut.clone();
        async move { pieces(cut, End::Clean) }
    });
    let mut list = transport.list(&pods(), Default::default()).await.unwrap();
    let mut parts = 0;
    while let Some(part) = list.next().await {
        part.unwrap();
        parts += 1;
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    assert_eq!(parts, 3);
}

fn busy(code: u16, retry_after: &str) -> Response<Body> {
    let mut response = answer(code, "text/plain", "Too many requests, please try again later.\n");
    response.headers_mut().insert("retry-after", retry_after.parse().unwrap());
    response
}

/// Runs one request against a server that first gives `failures` of these answers; what comes, the tries and the time.
async fn retried(
    request: ApiRequest,
    failures: usize,
    code: u16,
    retry_after: &'static str,
) -> (Result<(), u16>, usize, u64) {
    let left = AtomicUsize::new(failures);
    let (transport, log) = over(Config::in_process(), move |_| {
        let fail = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        async move {
            match fail {
                Ok(_) if retry_after.is_empty() => answer(code, "text/plain", "busy"),
                Ok(_) => busy(code, retry_after),
                Err(_) => json(pod("a", 1)),
            }
        }
    });
    let started = Instant::now();
    let result = transport.oneshot(request).await;
    let result = result.map(drop).map_err(|error| status(&error).code);
    (result, log.len(), started.elapsed().as_secs())
}

fn patch() -> ApiRequest {
    let operation = Operation::Patch {
        name: "a".into(),
        kind: PatchKind::Json,
        body: "[]".into(),
        options: WriteOptions::default(),
    };
    ApiRequest::new(pods(), operation)
}

fn delete() -> ApiRequest {
    let options = DeleteOptions::default();
    ApiRequest::new(pods(), Operation::Delete { name: "a".into(), options })
}

/// client-go `rest/with_retry.go`.
#[tokio::test(start_paused = true)]
async fn the_server_says_whether_to_try_again() {
    // For every verb, with the delay that was asked for.
    assert_eq!(retried(get("a"), 3, 429, "2").await, (Ok(()), 4, 6));
    assert_eq!(retried(create(), 2, 503, "1").await, (Ok(()), 3, 2));
    assert_eq!(retried(create(), 10, 429, "1").await, (Ok(()), 11, 10));
    // Ten retries, no more.
    assert_eq!(retried(get("a"), 11, 429, "1").await, (Err(429), 11, 10));
    // Without Retry-After the server does not say that it did nothing (kube-rs L11).
    assert_eq!(retried(create(), 1, 503, "").await, (Err(503), 1, 0));
    assert_eq!(retried(get("a"), 1, 504, "").await, (Err(504), 1, 0));
    // A write that timed out on the server is tried again like any other; a read that did is for the caller to change.
    assert_eq!(retried(create(), 1, 504, "1").await, (Ok(()), 2, 1));
    assert_eq!(retried(get("a"), 1, 504, "1").await, (Err(504), 1, 0));
    for write in [create(), patch(), delete()] {
        for code in [500, 503, 504] {
            assert_eq!(retried(write.clone(), 1, code, "").await, (Err(code), 1, 0));
            assert_eq!(retried(write.clone(), 1, code, "1").await, (Ok(()), 2, 1));
        }
    }
    // Not for other codes.
    assert_eq!(retried(get("a"), 1, 409, "1").await, (Err(409), 1, 0));
    // Neither longer than one wait may be, nor than all together.
    assert_eq!(retried(get("a"), 1, 429, "3600").await, (Err(429), 1, 0));
    assert_eq!(retried(get("a"), 9, 429, "50").await, (Err(429), 3, 100));
    // The date form is left alone.
    assert_eq!(retried(get("a"), 1, 429, "Wed, 21 Oct 2026 07:28:00 GMT").await, (Err(429), 1, 0));
}

/// k/k#139766: a reflector has to hear at once that a watch is refused, as it knows what to do then.
#[tokio::test(start_paused = true)]
async fn a_refused_watch_is_told_at_once_with_its_delay() {
    for code in [429, 500, 503, 504] {
        let (transport, log) = over(Config::in_process(), move |_| async move { busy(code, "1") });
        for initial in [None, Some(true)] {
            let options = WatchOptions { send_initial_events: initial, ..WatchOptions::default() };
            let started = Instant::now();
            let error = transport.watch(&pods(), options).await.map(drop).unwrap_err();
            assert_eq!(started.elapsed(), Duration::ZERO);
            let status = status(&error);
            assert_eq!((status.code, status.retry_after()), (code, Some(Duration::from_secs(1))));
        }
        assert_eq!(log.len(), 2, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_refusal_keeps_its_delay() {
    let (transport, _) = over(Config::in_process(), |_| async { busy(429, "3600") });
    let error = transport.oneshot(get("a")).await.unwrap_err();
    let status = status(&error);
    assert!(status.is_too_many_requests());
    assert_eq!(status.retry_after(), Some(Duration::from_secs(3600)));
}

/// A body that speaks of success beside a code that does not.
#[tokio::test(start_paused = true)]
async fn a_failure_is_no_success() {
    let (transport, _) = over(Config::in_process(), |_| async {
        let body = r#"{"kind":"Status","apiVersion":"v1","status":"Success","code":200}"#;
        answer(500, "application/json", body)
    });
    let error = transport.oneshot(patch()).await.unwrap_err();
    assert!(!status(&error).is_success());
    assert_eq!(status(&error).code, 500);
}

/// Whoever obeys the server whatever it says waits to the end of his time.
#[tokio::test(start_paused = true)]
async fn no_time_is_too_long_to_wait_for() {
    let ever = Duration::MAX;
    let mut config = Config::in_process();
    config.retry = crate::Retry { wait: ever, total: ever, times: u32::MAX, broken: ever };
    let (transport, _) = over(config, |_| async { busy(429, "18446744073709551615") });
    let error = transport.oneshot(get("a")).await.unwrap_err();
    assert_eq!(status(&error).code, 429);
}

#[tokio::test(start_paused = true)]
async fn every_try_is_counted() {
    let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
    let mut config = Config::in_process();
    config.metrics = metrics.clone();
    let left = AtomicUsize::new(2);
    let (transport, _) = over(config, move |seen| {
        let fail = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        async move {
            if seen.target.ends_with("hang") {
                std::future::pending::<()>().await;
            }
            if fail.is_ok() { busy(429, "1") } else { json(pod("a", 1)) }
        }
    });
    transport.clone().oneshot(get("a")).await.unwrap();
    transport.clone().oneshot(get("hang")).await.unwrap_err();
    let count = |code: &str| {
        metrics.value(&format!(
            r#"rest_client_requests_total{{code="{code}",method="GET",host="in-process"}}"#
        ))
    };
    assert_eq!([count("429"), count("200"), count("<error>")], [Some(2.0), Some(1.0), Some(1.0)]);

    // Given up by the caller, and by the deadline of the whole, which is above the layer that counts.
    let mut given_up = Box::pin(transport.clone().oneshot(get("hang")));
    assert!((&mut given_up).now_or_never().is_none());
    drop(given_up);
    assert_eq!(count("<error>"), Some(2.0));
    let mut config = transport.config().clone();
    config.timeouts.request = Duration::from_secs(1);
    let (short, _) = over(config, |_| std::future::pending());
    short.oneshot(get("hang")).await.unwrap_err();
    assert_eq!(count("<error>"), Some(3.0));
}

#[tokio::test(start_paused = true)]
async fn times_and_sizes_are_measured_on_request() {
    for on in [false, true] {
        let metrics = std::sync::Arc::new(kubestrata_telemetry::Memory::default());
        let mut config = Config::in_process();
        config.metrics = metrics.clone();
        config.observe = crate::Observe { latency: on, sizes: on, ..Default::default() };
        let (transport, log) = over(config, |_| async { json(pod("a", 1)) });
        transport.clone().oneshot(create()).await.unwrap();
        transport.oneshot(get("a")).await.unwrap();
        let text = metrics.render();
        let (sent, came) = (log.all()[0].body.len(), pod("a", 1).len());
        for want in [
            format!(
                r#"rest_client_request_size_bytes_sum{{verb="POST",host="in-process"}} {sent}"#
            ),
            format!(
                r#"rest_client_response_size_bytes_sum{{verb="GET",host="in-process"}} {came}"#
            ),
            r#"rest_client_request_duration_seconds_count{verb="GET",host="in-process"} 1"#
                .to_owned(),
        ] {
            assert_eq!(text.contains(&want), on, "{want}\n{text}");
        }
    }
}

/// A proxy on the way may compress in a way that nobody asked for: the code still tells what happened.
#[tokio::test(start_paused = true)]
async fn the_code_counts_whatever_the_body_is() {
    let (transport, _) = over(Config::in_process(), |_| async {
        let mut response = answer(403, "application/json", vec![0x1b, 0x2f]);
        response.headers_mut().insert("content-encoding", "br".parse().unwrap());
        response
    });
    let error = transport.oneshot(get("a")).await.unwrap_err();
    assert!(status(&error).is_forbidden());
}

#[tokio::test(start_paused = true)]
async fn requests_that_make_no_url_are_refused_unsent() {
    let (transport, log) = over(Config::in_process(), |_| async { json(pod("a", 1)) });
    for name in ["", ".", "..", "a/b", "a%2fb"] {
        let error = transport.clone().oneshot(get(name)).await.unwrap_err();
        let error = cause_ref::<TransportError>(&*error).unwrap();
        assert!(error.is_unsent() && matches!(error, TransportError::Request { .. }), "{name:?}");
    }
    assert_eq!(log.len(), 0);
}
