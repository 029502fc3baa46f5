//! Turns under a rate limit, on a paused clock.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use kubestrata_api_types::BoxError;
use kubestrata_telemetry::Memory;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer as _, Service, ServiceExt as _};

use super::{RateLimitLayer, RateLimited};
use crate::config::RateLimit;

/// Milliseconds at which requests came to the service below.
type Times = Arc<Mutex<Vec<u128>>>;

type Boxed = tower::util::BoxCloneSyncService<http::Request<&'static str>, (), BoxError>;

fn service(limit: RateLimit) -> (Boxed, Times) {
    over(&RateLimitLayer::new(limit))
}

fn over(layer: &RateLimitLayer) -> (Boxed, Times) {
    let (times, start) = (Times::default(), Instant::now());
    let seen = Arc::clone(&times);
    let inner = tower::service_fn(move |_: http::Request<&'static str>| {
        seen.lock().push(start.elapsed().as_millis());
        async { Ok::<_, BoxError>(()) }
    });
    (Boxed::new(layer.layer(inner)), times)
}

fn get(uri: &'static str) -> http::Request<&'static str> {
    http::Request::get(uri).body("").unwrap()
}

#[tokio::test(start_paused = true)]
async fn turns_come_at_exact_intervals_after_the_burst() {
    let (service, times) = service(RateLimit { qps: 5.0, burst: 3, ..RateLimit::default() });
    let all = join_all((0..8).map(|_| service.clone().oneshot(get("/a")))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(*times.lock(), [0, 0, 0, 200, 400, 600, 800, 1000]);
    // A pause fills the bucket, and no more than that.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    times.lock().clear();
    join_all((0..5).map(|_| service.clone().oneshot(get("/a")))).await;
    let first = times.lock()[0];
    let since: Vec<_> = times.lock().iter().map(|time| time - first).collect();
    assert_eq!(since, [0, 0, 0, 200, 400]);
    // Half a pause, half a bucket.
    tokio::time::sleep(Duration::from_millis(500)).await;
    times.lock().clear();
    let start = Instant::now();
    join_all((0..3).map(|_| service.clone().oneshot(get("/a")))).await;
    assert_eq!(start.elapsed(), Duration::from_millis(100), "two were there, one after 600 ms");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gives_back_its_turn() {
    let (service, times) = service(RateLimit { qps: 1.0, burst: 1, ..RateLimit::default() });
    service.clone().oneshot(get("/a")).await.unwrap();
    // First in line, second in line, and the one who stays.
    let mut first = Box::pin(service.clone().oneshot(get("/b")));
    let mut second = Box::pin(service.clone().oneshot(get("/c")));
    let mut third = Box::pin(service.clone().oneshot(get("/d")));
    for waiting in [&mut first, &mut second, &mut third] {
        assert!(waiting.now_or_never().is_none());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(first);
    drop(second);
    third.await.unwrap();
    assert_eq!(*times.lock(), [0, 1000]);
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_bounded() {
    let limit = Duration::from_millis(2500);
    let (service, times) = service(RateLimit { qps: 1.0, burst: 1, wait: limit });
    let start = Instant::now();
    let all = join_all((0..5).map(|_| service.clone().oneshot(get("/a")))).await;
    assert_eq!(*times.lock(), [0, 1000, 2000]);
    assert_eq!(start.elapsed(), limit);
    let late: Vec<_> = all.into_iter().filter_map(Result::err).collect();
    assert_eq!(late.len(), 2);
    for error in late {
        assert_eq!(*error.downcast::<RateLimited>().unwrap(), RateLimited { limit });
    }
    // Who gave up took no turn.
    service.oneshot(get("/a")).await.unwrap();
    assert_eq!(times.lock().last(), Some(&3000));
}

#[tokio::test(start_paused = true)]
async fn watches_have_no_turn_to_wait_for() {
    let (service, times) = service(RateLimit { qps: 0.0, burst: 1, ..RateLimit::default() });
    service.clone().oneshot(get("/a")).await.unwrap();
    for watch in ["/a?watch=true", "/a?labelSelector=b&watch=1", "/a?watch"] {
        service.clone().oneshot(get(watch)).await.unwrap();
    }
    assert_eq!(*times.lock(), [0, 0, 0, 0]);
    // Nothing else comes through, ever.
    assert!(service.oneshot(get("/a?watching=true")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn all_that_one_layer_makes_shares_its_limit() {
    let metrics = Arc::new(Memory::default());
    let limit = RateLimit { qps: 10.0, burst: 1, ..RateLimit::default() };
    let layer = RateLimitLayer::measured(limit, metrics.clone(), "here");
    let (one, times) = over(&layer);
    let (other, _) = over(&layer.clone());
    one.clone().oneshot(get("/a")).await.unwrap();
    other.oneshot(get("/a")).await.unwrap();
    one.oneshot(get("/a")).await.unwrap();
    assert_eq!(*times.lock(), [0, 200]);
    let text = metrics.render();
    for want in [
        r#"rest_client_rate_limiter_duration_seconds_count{verb="GET",host="here"} 3"#,
        r#"rest_client_rate_limiter_duration_seconds_sum{verb="GET",host="here"} 0.2"#,
    ] {
        assert!(text.contains(want), "{text}");
    }
}

/// Any error that can hold a `RateLimited` will do.
#[tokio::test(start_paused = true)]
async fn numbers_that_make_no_sense_stop_nobody_for_longer_than_the_limit() {
    #[derive(Debug)]
    struct Late;
    impl From<RateLimited> for Late {
        fn from(_: RateLimited) -> Self {
            Self
        }
    }
    for qps in [f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, -1.0, f64::MAX] {
        let layer = RateLimitLayer::new(RateLimit { qps, burst: 0, ..RateLimit::default() });
        let mut service =
            layer.layer(tower::service_fn(|_: http::Request<()>| async { Ok::<(), Late>(()) }));
        let mut request = || service.call(http::Request::new(()));
        assert!(request().await.is_ok(), "{qps}: the first");
        assert_eq!(request().await.is_ok(), qps > 1.0, "{qps}");
    }
}
