//! The decisions of a lane, against a naive model of what is open.

use std::time::Duration;

use tokio::time::Instant;

use kubestrata_telemetry::Gauge;

use super::lane::{Bounds, Found, Lane, Reuse, Version};
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
    Bounds { streams: 3, http2: 2, http1: 4, idle: Duration::from_secs(90) }
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
    lane.failed(1);
    assert!(dial(&mut lane, now, 9));
}

#[tokio::test]
async fn a_failure_is_shared_with_those_who_waited() {
    let (mut lane, now) = (lane(None), Instant::now());
    let before = lane.failures();
    assert!(dial(&mut lane, now, 1));
    lane.failed(7);
    assert_eq!(lane.failure_since(before), Some(7));
    // Who comes later tries anew.
    assert_eq!(lane.failure_since(lane.failures()), None);
    assert!(dial(&mut lane, now, 1));
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
    track.lane.lock().failed(7);
    track.lane.lock().opened_http1(Fake::default(), now);
    assert!(matches!(track.look(&line), Look::Found(Found::Http1(_))));
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
        let (mut lane, now) = (lane(Some(Version::Http2)), Instant::now());
        // Requests under way by connection, and whether one is being opened.
        let (mut held, mut dialing) = (Vec::<u64>::new(), false);
        let mut open: Vec<(u64, Fake)> = Vec::new();
        let mut opened = 0;
        for _ in 0..200 {
            match next(5) {
                0..=2 => match lane.take(now) {
                    Some(Found::Http2(id, _)) => {
                        let (_, connection) = open.iter().find(|(n, _)| *n == id).unwrap();
                        assert!(!connection.is_closed());
                        held.push(id);
                    }
                    None if dial(&mut lane, now, 1) => {
                        assert!(!dialing);
                        dialing = true;
                    }
                    None => {
                        let alive: Vec<_> =
                            open.iter().filter(|(_, connection)| !connection.is_closed()).collect();
                        let full = |id: &u64| held.iter().filter(|n| *n == id).count() == 3;
                        assert!(alive.iter().all(|(id, _)| full(id)));
                        assert!(dialing || alive.len() == 2);
                    }
                    Some(Found::Http1(_)) => panic!("no HTTP/1.1 here"),
                },
                3 if dialing => {
                    dialing = false;
                    if next(4) == 0 {
                        lane.failed(1);
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
