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
    // What was given back is nobody's: the next comes a second later, and no sooner.
    service.oneshot(get("/e")).await.unwrap();
    assert_eq!(*times.lock(), [0, 1000, 2000]);
}

/// A task each, so that who moves up has to be woken.
#[tokio::test(start_paused = true)]
async fn who_waits_behind_a_cancelled_request_is_woken_earlier() {
    let (service, times) = service(RateLimit { qps: 1.0, burst: 1, ..RateLimit::default() });
    let mut tasks = tokio::task::JoinSet::new();
    let mut handles = Vec::new();
    for _ in 0..6 {
        handles.push(tasks.spawn(service.clone().oneshot(get("/a"))));
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(1500)).await;
    // Two have gone; of those at 2, 3, 4 and 5 s, the second and the last are given up.
    handles[3].abort();
    handles[5].abort();
    let mut sent = 0;
    while let Some(done) = tasks.join_next().await {
        sent += usize::from(done.is_ok());
    }
    assert_eq!((sent, times.lock().clone()), (4, vec![0, 1000, 2000, 3000]));
    service.oneshot(get("/a")).await.unwrap();
    assert_eq!(times.lock().last(), Some(&4000));
}

/// What a `select!` does to a request when another branch is chosen and takes long.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_kept_without_being_polled_holds_nobody_up() {
    let (service, times) = service(RateLimit { qps: 1.0, burst: 1, ..RateLimit::default() });
    service.clone().oneshot(get("/a")).await.unwrap();
    let mut kept = Box::pin(service.clone().oneshot(get("/b")));
    let mut lost = Box::pin(service.clone().oneshot(get("/c")));
    assert!((&mut kept).now_or_never().is_none());
    assert!((&mut lost).now_or_never().is_none());
    service.clone().oneshot(get("/d")).await.unwrap();
    assert_eq!(*times.lock(), [0, 3000]);
    // Its turn has come, and another's may follow it already.
    drop(lost);
    service.clone().oneshot(get("/e")).await.unwrap();
    kept.await.unwrap();
    assert_eq!(*times.lock(), [0, 3000, 4000, 4000]);
    service.oneshot(get("/f")).await.unwrap();
    assert_eq!(times.lock().last(), Some(&5000));
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_bounded() {
    let limit = Duration::from_millis(2500);
    let (service, times) = service(RateLimit { qps: 1.0, burst: 1, wait: limit });
    let start = Instant::now();
    let all = join_all((0..5).map(|_| service.clone().oneshot(get("/a")))).await;
    assert_eq!(*times.lock(), [0, 1000, 2000]);
    assert_eq!(start.elapsed(), Duration::from_secs(2), "who has no turn in time waits for none");
    let late: Vec<_> = all.into_iter().filter_map(Result::err).collect();
    assert_eq!(late.len(), 2);
    for error in late {
        assert_eq!(*error.downcast::<RateLimited>().unwrap(), RateLimited { limit });
    }
    // Who was refused took no turn.
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

/// Requests come and go at random, from a fixed seed, against what is promised: in order, at least a period apart after the
/// burst, at no time later than it would be without those that were given up, and with all turns used.
#[tokio::test(start_paused = true)]
async fn whoever_goes_the_others_keep_order_and_rate() {
    let mut state = 11_u64;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..200 {
        let limit = RateLimit { qps: 10.0, burst: 3, wait: Duration::MAX };
        let layer = RateLimitLayer::new(limit);
        let sent: Arc<Mutex<Vec<(u64, u128)>>> = Arc::default();
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        let (mut handles, mut given_up) = (Vec::new(), 0);
        for number in 0..30 {
            let log = Arc::clone(&sent);
            let mut service = layer.layer(tower::service_fn(move |_: http::Request<()>| {
                log.lock().push((number, start.elapsed().as_millis()));
                async { Ok::<(), BoxError>(()) }
            }));
            handles.push(tasks.spawn(async move { service.call(http::Request::new(())).await }));
            tokio::task::yield_now().await;
            if next(3) == 0 {
                let index = usize::try_from(next(handles.len() as u64)).unwrap();
                if !handles[index].is_finished() {
                    handles[index].abort();
                    given_up += 1;
                    tokio::task::yield_now().await;
                }
            }
            tokio::time::sleep(Duration::from_millis(10 * next(4))).await;
        }
        while tasks.join_next().await.is_some() {}
        let sent = sent.lock().clone();
        assert_eq!(sent.len() + given_up, 30);
        assert!(sent.is_sorted(), "{sent:?}");
        for pair in sent.windows(4) {
            // Four never come in less than a period, as three are the burst.
            assert!(pair[3].1 - pair[0].1 >= 100, "{sent:?}");
        }
        // While somebody waits no turn is left out: 30 requests in at most a second, at ten per second after three.
        let last = sent.last().unwrap().1;
        assert!(last <= 100 * (sent.len() as u128 - 3), "{last}: {sent:?}");
    }
}
