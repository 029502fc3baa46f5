//! The decisions of a lane, against a naive model of what is open.

use std::time::Duration;

use tokio::time::Instant;

use kubestrata_telemetry::Gauge;

use super::lane::{Bounds, Found, LATE, Lane, PAUSE, Reuse, Version};
use super::track::{Look, Track};

/// A connection that is closed when its flag says so.
#[derive(Debug, Clone, Default)]
struct Fake(std::rc::Rc<std::cell::Cell<bool>>);

impl Reuse for Fake {
    fn is_closed(&self) -> bool {
        self.0.get()
    }

    fn streams_max(&self) -> usize {
        5
    }
}

fn bounds() -> Bounds {
    Bounds { streams: 3, http2: 4, http1: 4, idle: Duration::from_secs(90), lasting: false }
}

fn lane(version: Option<Version>) -> Lane<Fake, Fake, u32> {
    Lane::new(bounds(), version)
}

/// Whether another connection is to be opened, as so many wait.
fn dial(lane: &mut Lane<Fake, Fake, u32>, now: Instant, waiting: usize) -> bool {
    lane.dial(now, now + Duration::from_secs(1), waiting)
}

#[tokio::test]
async fn as_many_connections_are_opened_as_are_needed() {
    let (mut lane, now) = (lane(None), Instant::now());
    assert!(!dial(&mut lane, now, 0));
    // One, until the version is known.
    assert!(dial(&mut lane, now, 9));
    assert_eq!(lane.dialing_until(), Some(now + Duration::from_secs(1)));
    assert!(!dial(&mut lane, now, 9));
    lane.opened_http1(Fake::default(), now);
    assert_eq!(lane.dialing_until(), None);
    // Of two who wait one has the idle connection.
    assert!(dial(&mut lane, now, 2));
    assert!(!dial(&mut lane, now, 2));
    assert!(matches!(lane.take(now), Some(Found::Http1(_))));
    for _ in 0..2 {
        assert!(dial(&mut lane, now, 9));
    }
    assert!(!dial(&mut lane, now, 9), "four are all that may be open");
    lane.failed(1, now);
    assert!(!dial(&mut lane, now, 9), "others are open");
    assert!(dial(&mut lane, now + PAUSE, 9));
}

#[tokio::test]
async fn a_failure_is_shared_with_those_who_waited() {
    let (mut lane, now) = (lane(None), Instant::now());
    let before = lane.failures();
    assert!(dial(&mut lane, now, 1));
    lane.failed(7, now);
    assert_eq!(lane.hopeless_since(before), Some(7));
    // Who comes later tries anew.
    assert_eq!(lane.hopeless_since(lane.failures()), None);
    assert!(dial(&mut lane, now, 1));
}

/// Of those in line, while other connections have places that come free.
#[tokio::test]
async fn one_failure_is_nobodys_while_others_are_open() {
    for lasting in [false, true] {
        let bounds = Bounds { lasting, ..bounds() };
        let track = Track::<Fake, Fake, u32>::new(bounds, Some(Version::Http1), Gauge::noop());
        let now = Instant::now();
        assert!(dial(&mut track.lane.lock(), now, 1));
        track.lane.lock().opened_http1(Fake::default(), now);
        assert!(track.at_once().is_some(), "one has it");
        let line = track.join();
        assert!(dial(&mut track.lane.lock(), now, 1));
        track.lane.lock().failed(7, now);
        let failed = matches!(track.look(&line), Look::Failed(7));
        assert_eq!(failed, lasting, "a watch keeps its place for hours");
        assert_eq!(track.failure(&line), Some(7));
        // Not again at once, beside connections that work.
        assert_eq!(dial(&mut track.lane.lock(), now, 1), lasting);
        if lasting {
            track.lane.lock().failed(7, now);
        }
        let later = now + PAUSE;
        assert!(dial(&mut track.lane.lock(), later, 2));
        let nothing = matches!(track.look(&line), Look::Nothing);
        assert!(nothing || lasting, "one is being opened");
        track.lane.lock().closed_http1();
        track.lane.lock().failed(7, later);
        assert!(matches!(track.look(&line), Look::Failed(7)), "none is open any more");
    }
}

/// One that hangs, as where a packet was lost or a name leads to a machine that is gone, is not waited for alone.
#[tokio::test]
async fn a_dial_that_is_late_has_company() {
    let start = Instant::now();
    for version in [None, Some(Version::Http2), Some(Version::Http1)] {
        let mut lane = lane(version);
        for n in 0..4 {
            let now = start + n * LATE;
            assert!(dial(&mut lane, now, 1), "{version:?} {n}");
            assert!(!dial(&mut lane, now, 1), "{version:?} {n}");
        }
        assert!(!dial(&mut lane, start + 4 * LATE, 1), "four are enough");
        // Those that were begun because it was late are nothing to hope for.
        let before = lane.failures();
        lane.failed(1, start + 4 * LATE);
        assert_eq!(lane.hopeless_since(before), Some(1));
    }
}

/// What is free counts before what failed: the failure of one connection says nothing of another.
#[tokio::test]
async fn a_place_is_taken_before_a_failure() {
    let track = Track::<Fake, Fake, u32>::new(bounds(), Some(Version::Http1), Gauge::noop());
    let now = Instant::now();
    let line = track.join();
    for _ in 0..2 {
        assert!(dial(&mut track.lane.lock(), now, 2));
    }
    track.lane.lock().failed(7, now);
    track.lane.lock().opened_http1(Fake::default(), now);
    assert!(matches!(track.look(&line), Look::Found(Found::Http1(_))));
    assert!(matches!(track.look(&line), Look::Nothing), "it may come back");
    track.lane.lock().closed_http1();
    assert!(dial(&mut track.lane.lock(), now, 1));
    track.lane.lock().failed(7, now);
    assert!(matches!(track.look(&line), Look::Failed(7)));
    // Who comes after it does not hear of it.
    drop(line);
    assert_eq!(track.waiting(), 0);
    assert!(matches!(track.look(&track.join()), Look::Nothing));
}

#[tokio::test]
async fn idle_connections_are_used_last_in_first_out_and_grow_old() {
    let (mut lane, start) = (lane(Some(Version::Http1)), Instant::now());
    let connections = [Fake::default(), Fake::default(), Fake::default()];
    for (n, connection) in (0..).zip(&connections) {
        assert!(dial(&mut lane, start, 3));
        lane.opened_http1(connection.clone(), start + Duration::from_secs(n));
    }
    let Some(Found::Http1(last)) = lane.take(start) else { panic!("none is idle") };
    assert!(std::rc::Rc::ptr_eq(&last.0, &connections[2].0));
    lane.closed_http1();
    connections[1].0.set(true);
    assert_eq!(lane.open(), 2);
    assert!(matches!(lane.take(start), Some(Found::Http1(_))));
    lane.released_http1(connections[0].clone(), start);
    assert!(lane.take(start + Duration::from_secs(90)).is_none());
    assert_eq!(lane.open(), 0);
}

#[tokio::test]
async fn an_http2_connection_that_nobody_wants_any_more_is_kept_only_alone() {
    let (mut lane, now) = (lane(None), Instant::now());
    assert!(dial(&mut lane, now, 1));
    lane.opened_http2(Fake::default(), false);
    assert_eq!(lane.open(), 1);
    assert!(!dial(&mut lane, now, 1), "it has room");
    for _ in 0..3 {
        assert!(matches!(lane.take(now), Some(Found::Http2(0, _))));
    }
    for (wanted, open) in [(false, 1), (true, 2)] {
        assert!(dial(&mut lane, now, 1));
        lane.opened_http2(Fake::default(), wanted);
        assert_eq!(lane.open(), open);
    }
}

/// Random operations; after each, no connection has more streams than it may, no more are open than may be, and a
/// request waits only if all is full.
#[tokio::test]
async fn streams_and_connections_stay_within_their_bounds() {
    for seed in 1..200_u64 {
        let mut random = seed;
        let mut next = |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        let (mut lane, mut now) = (lane(Some(Version::Http2)), Instant::now());
        // Requests under way by connection, and how many are being opened.
        let (mut held, mut dialing) = (Vec::<u64>::new(), 0);
        let mut open: Vec<(u64, Fake)> = Vec::new();
        let mut opened = 0;
        for _ in 0..200 {
            now += PAUSE;
            match next(5) {
                0..=2 => match lane.take(now) {
                    Some(Found::Http2(id, _)) => {
                        let (_, connection) = open.iter().find(|(n, _)| *n == id).unwrap();
                        assert!(!connection.is_closed());
                        held.push(id);
                    }
                    None if dial(&mut lane, now, 1) => {
                        dialing += 1;
                        assert!(dialing <= 4);
                    }
                    None => {
                        let alive: Vec<_> =
                            open.iter().filter(|(_, connection)| !connection.is_closed()).collect();
                        let full = |id: &u64| held.iter().filter(|n| *n == id).count() == 3;
                        assert!(alive.iter().all(|(id, _)| full(id)));
                        assert!(dialing > 0 || alive.len() == 4);
                    }
                    Some(Found::Http1(_)) => panic!("no HTTP/1.1 here"),
                },
                3 if dialing > 0 => {
                    dialing -= 1;
                    if next(4) == 0 {
                        lane.failed(1, now);
                    } else {
                        let connection = Fake::default();
                        lane.opened_http2(connection.clone(), true);
                        open.push((opened, connection));
                        opened += 1;
                    }
                }
                4 if next(8) == 0 && !open.is_empty() => {
                    open[usize::try_from(next(open.len() as u64)).unwrap()].1.0.set(true);
                }
                _ if !held.is_empty() => {
                    let at = usize::try_from(next(held.len() as u64)).unwrap();
                    let id = held.swap_remove(at);
                    lane.released_http2(id);
                    // One that ran empty beside another is not kept.
                    open.retain(|(_, connection)| !connection.is_closed());
                    if !held.contains(&id) && open.len() > 1 {
                        open.retain(|(n, _)| *n != id);
                    }
                }
                _ => {}
            }
            for (id, _) in &open {
                assert!(held.iter().filter(|n| *n == id).count() <= 3);
            }
        }
    }
}

#[tokio::test]
async fn idle_connections_are_looked_after_until_there_are_none() {
    let (mut lane, start) = (lane(Some(Version::Http1)), Instant::now());
    let second = Duration::from_secs(1);
    let idle = bounds().idle;
    for n in 0..3 {
        assert!(dial(&mut lane, start, 1));
        assert_eq!(lane.opened_http1(Fake::default(), start), n == 0, "one is enough");
        assert!(lane.take(start).is_some());
    }
    // None is idle yet: one that becomes so at once has its time.
    assert_eq!(lane.expire(start), Some(start + idle));
    lane.released_http1(Fake::default(), start + second);
    lane.released_http1(Fake::default(), start + 3 * second);
    assert_eq!(lane.expire(start + idle), Some(start + second + idle));
    assert_eq!(lane.expire(start + second + idle), Some(start + 3 * second + idle));
    assert_eq!(lane.open(), 2);
    // The last one is closed, and not idle at all.
    lane.closed_http1();
    assert_eq!(lane.expire(start + 3 * second + idle), None);
    assert_eq!(lane.open(), 0);
    assert!(dial(&mut lane, start, 1));
    assert!(lane.opened_http1(Fake::default(), start), "and again from the next on");
}

/// What is begun on a runtime that shuts down ends at once: that must not be begun again and again.
#[test]
fn dials_fail_on_a_runtime_that_has_ended() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    let _inside = handle.enter();
    let config = crate::Config::new("http://127.0.0.1:1").unwrap();
    let pool = super::Pool::connect(&config).unwrap();
    let (one, other) = (pool.0.requests.join(), pool.0.requests.join());
    pool.open_more(false, &http::Request::new(crate::RequestBody::default()));
    assert!(matches!(pool.0.requests.look(&one), Look::Failed(_)));
    assert!(matches!(pool.0.requests.look(&other), Look::Failed(_)));
}

/// A server that is to be shut down may say so by taking no requests at all.
#[tokio::test]
async fn connections_that_take_nothing_are_not_counted() {
    #[derive(Debug, Clone)]
    struct Limited(std::rc::Rc<std::cell::Cell<usize>>);
    impl Reuse for Limited {
        fn is_closed(&self) -> bool {
            false
        }
        fn streams_max(&self) -> usize {
            self.0.get()
        }
    }
    let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(1));
    let limits: Vec<_> = (0..3).map(|_| std::rc::Rc::new(std::cell::Cell::new(1))).collect();
    let bounds = Bounds { http2: 2, ..bounds() };
    let mut lane = Lane::<Fake, Limited, u32>::new(bounds, Some(Version::Http2));
    for limit in &limits[..2] {
        assert!(lane.dial(now, later, 1));
        lane.opened_http2(Limited(limit.clone()), true);
        assert!(lane.take(now).is_some());
    }
    assert!(!lane.dial(now, later, 1), "two are all that may be open");
    for limit in &limits[..2] {
        limit.set(0);
    }
    assert!(lane.dial(now, later, 1));
    lane.opened_http2(Limited(limits[2].clone()), true);
    assert!(matches!(lane.take(now), Some(Found::Http2(2, _))));
    // With nothing of ours on them they go.
    lane.released_http2(0);
    lane.released_http2(1);
    assert!(lane.take(now).is_none());
    assert_eq!(lane.open(), 1);
}
