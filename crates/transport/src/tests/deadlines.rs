//! The deadline of the whole, in the same process with a paused clock.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::Response;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use kubestrata_api_types::{BoxError, ListPart, ListWatch as _, WatchOptions, cause_ref};
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::server::{Body, answer, json, over};
use super::{create, get, pod, pods};
use crate::{Config, Phase, RateLimit, TransportError};

const HOUR: Duration = Duration::from_secs(3600);

/// A body that never ends, and brings one of these pieces after each `pause`.
fn trickle(pieces: Vec<Bytes>, pause: Duration) -> Response<Body> {
    let pieces = stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, BoxError>(Frame::data(piece))
    });
    let body = StreamBody::new(pieces.chain(stream::pending())).boxed_unsync();
    Response::builder().header("content-type", "application/json").body(body).unwrap()
}

/// What was waited for when the whole was over, and what was told of the limit.
fn deadline(error: &BoxError) -> (Phase, Duration) {
    match cause_ref::<TransportError>(&**error) {
        Some(TransportError::Deadline { phase, limit }) => (*phase, *limit),
        other => panic!("{other:?}"),
    }
}

/// kube#1796: what goes on for ever, each part of it within its own limit, ends all the same.
#[tokio::test(start_paused = true)]
async fn the_whole_of_a_request_has_a_deadline() {
    let config = Config::in_process();
    let (whole, body) = (config.timeouts.request, config.timeouts.body);
    // A body that trickles: no piece is late.
    let pause = body - Duration::from_secs(1);
    let (transport, log) =
        over(config, move |_| async move { trickle(vec![" ".into(); 100], pause) });
    for request in [get("a"), create()] {
        let started = Instant::now();
        let error = transport.clone().oneshot(request).await.unwrap_err();
        assert_eq!((deadline(&error), started.elapsed()), ((Phase::Body, whole), whole));
        assert_eq!(
            error.to_string(),
            "not done within 180s; what came last was the wait for the rest of the answer"
        );
    }
    let started = Instant::now();
    let error = transport.raw_get("/version").await.unwrap_err();
    assert_eq!((deadline(&error), started.elapsed()), ((Phase::Body, whole), whole));
    assert_eq!(log.len(), 3, "none was tried again");
}

#[tokio::test(start_paused = true)]
async fn the_error_says_what_was_waited_for() {
    let mut config = Config::in_process();
    config.timeouts.request = Duration::from_secs(7);
    (config.timeouts.wait, config.timeouts.answer) = (HOUR, HOUR);
    config.rate_limit = Some(RateLimit { qps: 0.001, burst: 2, wait: HOUR });
    let (transport, _) = over(config.clone(), |_| std::future::pending());
    let waits = async |transport: &crate::Transport| {
        let started = Instant::now();
        let error = transport.clone().oneshot(create()).await.unwrap_err();
        assert_eq!(started.elapsed(), config.timeouts.request);
        let unsent = cause_ref::<TransportError>(&*error).unwrap().is_unsent();
        (deadline(&error).0, unsent)
    };
    assert_eq!(waits(&transport).await, (Phase::Answer, false));
    // A watch that is never accepted has a shorter one of its own.
    let started = Instant::now();
    let error = transport.watch(&pods(), WatchOptions::default()).await.map(drop).unwrap_err();
    assert_eq!(deadline(&error).0, Phase::Answer);
    assert_eq!(started.elapsed(), config.timeouts.request);
    // Before anything is sent.
    let none = tower::limit::ConcurrencyLimit::with_semaphore(
        tower::service_fn(|_: http::Request<crate::RequestBody>| async {
            Ok::<_, std::convert::Infallible>(json(pod("a", 1)))
        }),
        std::sync::Arc::new(tokio::sync::Semaphore::new(0)),
    );
    let never_ready = crate::Transport::over(none, config.clone()).unwrap();
    assert_eq!(waits(&never_ready).await, (Phase::Wait, true));
    // Both turns are taken.
    assert_eq!(waits(&transport).await, (Phase::Answer, false));
    assert_eq!(waits(&transport).await, (Phase::Turn, true));
}

/// Who would wait beyond the end to try again is told of the refusal instead, at once.
#[tokio::test(start_paused = true)]
async fn no_retry_begins_after_the_end() {
    let mut config = Config::in_process();
    config.timeouts.request = Duration::from_secs(100);
    config.retry.total = HOUR;
    let (transport, log) = over(config, |_| async {
        let mut response = answer(429, "text/plain", "busy");
        response.headers_mut().insert("retry-after", "30".parse().unwrap());
        response
    });
    let started = Instant::now();
    let error = transport.oneshot(create()).await.unwrap_err();
    let status = cause_ref::<kubestrata_api_types::Status>(&*error).unwrap();
    assert!(status.is_too_many_requests());
    assert_eq!((log.len(), started.elapsed()), (4, Duration::from_secs(90)));
}

/// A list has longer, and the time that its reader takes is not the server's.
#[tokio::test(start_paused = true)]
async fn the_whole_of_a_list_has_a_deadline_for_the_server_alone() {
    let config = Config::in_process();
    let (whole, request) = (config.timeouts.list, config.timeouts.request);
    let pause = Duration::from_secs(25);
    let mut text =
        vec![Bytes::from(r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":["#)];
    text.extend((0..100).map(|n| Bytes::from(format!("{},", pod(&format!("p{n}"), 1)))));
    let (transport, _) = over(config, move |_| {
        let text = text.clone();
        async move {
            // The head counts too.
            tokio::time::sleep(Duration::from_secs(50)).await;
            trickle(text, pause)
        }
    });
    for slow in [Duration::ZERO, 2 * request] {
        let started = Instant::now();
        let mut list = transport.list(&pods(), Default::default()).await.unwrap();
        let (mut items, mut read) = (0, Duration::ZERO);
        let error = loop {
            match list.next().await.unwrap() {
                Ok(ListPart::Item(_)) => items += 1,
                Ok(_) => {}
                Err(error) => break error,
            }
            tokio::time::sleep(slow).await;
            read += slow;
        };
        assert_eq!(deadline(&error), (Phase::Body, whole), "{slow:?}");
        assert_eq!(started.elapsed() - read, whole, "{slow:?}");
        // 550 s are left for pieces of 25 s, the first of which has no item.
        assert!((20..=21).contains(&items), "{slow:?}: {items}");
        assert!(list.next().await.is_none());
    }
}

/// A reader that waits, and then does something else while the server answers, as in a `select!`.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_list_ends_when_the_server_has_answered() {
    let config = Config::in_process();
    let whole = config.timeouts.list;
    let mut text =
        vec![Bytes::from(r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":["#)];
    text.extend((0..30).map(|n| Bytes::from(format!("{},", pod(&format!("p{n}"), 1)))));
    let (transport, _) = over(config, move |_| {
        let text = text.clone();
        async move { trickle(text, Duration::from_secs(1)) }
    });
    let start = Instant::now();
    let mut list = transport.list(&pods(), Default::default()).await.unwrap();
    for n in 0..20 {
        if list.next().now_or_never().is_none() {
            tokio::time::sleep(whole / 4).await;
            let part = list.next().await.unwrap();
            assert!(part.is_ok(), "{n}: {part:?}");
        }
    }
    assert!(start.elapsed() > 4 * whole);
}

/// kube#1945: a watch may be silent for as long as it asked to be open, while requests beside it, and the same watch before
/// its first byte, have short deadlines.
#[tokio::test(start_paused = true)]
async fn deadlines_belong_to_the_operation() {
    let config = Config::in_process();
    let timeouts = config.timeouts;
    let (transport, _) = over(config, |seen| async move {
        let silent = || trickle(vec!["{".into()], 100 * HOUR);
        match seen.target.contains("watch=true") {
            true => silent(),
            false if seen.target.ends_with("/answer") => std::future::pending().await,
            false => silent(),
        }
    });
    let asked = 2 * HOUR;
    let options = WatchOptions { timeout: Some(asked), ..WatchOptions::default() };
    let started = Instant::now();
    let mut watch = transport.watch(&pods(), options).await.unwrap();
    let requests = async {
        for (name, phase, limit) in
            [("answer", Phase::Answer, timeouts.answer), ("body", Phase::Body, timeouts.body)]
        {
            let started = Instant::now();
            let error = transport.clone().oneshot(get(name)).await.unwrap_err();
            let error = cause_ref::<TransportError>(&*error).unwrap().timeout();
            assert_eq!((error, started.elapsed()), (Some(phase), limit));
        }
    };
    let (end, ()) = tokio::join!(watch.next(), requests);
    let error = end.unwrap().unwrap_err();
    let error = cause_ref::<TransportError>(&*error).unwrap().timeout();
    assert_eq!(error, Some(Phase::WatchEnd));
    assert_eq!(started.elapsed(), asked + timeouts.watch_margin);
}
