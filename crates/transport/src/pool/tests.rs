//! The decisions of a lane, against a naive model of what is open.

use std::time::Duration;

use tokio::time::Instant;

use super::lane::{Bounds, Lane, Reuse, Take, Version};

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

#[tokio::test]
async fn one_connection_is_opened_until_the_version_is_known() {
    let (mut lane, now) = (lane(None), Instant::now());
    assert!(matches!(lane.take(now), Take::Dial));
    assert!(matches!(lane.take(now), Take::Wait));
    lane.opened_http1();
    for _ in 0..3 {
        assert!(matches!(lane.take(now), Take::Dial));
    }
    assert!(matches!(lane.take(now), Take::Wait));
    lane.abandoned();
    assert!(matches!(lane.take(now), Take::Dial));
}

#[tokio::test]
async fn a_failure_is_shared_with_those_who_waited() {
    let (mut lane, now) = (lane(None), Instant::now());
    let before = lane.failures();
    assert!(matches!(lane.take(now), Take::Dial));
    lane.failed(7);
    assert_eq!(lane.failure_since(before), Some(7));
    // Who comes later tries anew.
    assert_eq!(lane.failure_since(lane.failures()), None);
    assert!(matches!(lane.take(now), Take::Dial));
}

#[tokio::test]
async fn idle_connections_are_used_last_in_first_out_and_grow_old() {
    let (mut lane, start) = (lane(Some(Version::Http1)), Instant::now());
    let connections = [Fake::default(), Fake::default(), Fake::default()];
    for _ in &connections {
        assert!(matches!(lane.take(start), Take::Dial));
        lane.opened_http1();
    }
    for (n, connection) in (0..).zip(&connections) {
        lane.released_http1(connection.clone(), start + Duration::from_secs(n));
    }
    let Take::Http1(last) = lane.take(start) else { panic!("none is idle") };
    assert!(std::rc::Rc::ptr_eq(&last.0, &connections[2].0));
    lane.closed_http1();
    connections[1].0.set(true);
    assert_eq!(lane.open(), 2);
    assert!(matches!(lane.take(start), Take::Http1(_)));
    lane.released_http1(connections[0].clone(), start);
    assert!(matches!(lane.take(start + Duration::from_secs(90)), Take::Dial));
    assert_eq!(lane.open(), 0);
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
        for _ in 0..200 {
            match next(5) {
                0..=2 => match lane.take(now) {
                    Take::Http2(id, _) => {
                        let (_, connection) = open.iter().find(|(n, _)| *n == id).unwrap();
                        assert!(!connection.is_closed());
                        held.push(id);
                    }
                    Take::Dial => {
                        assert!(!dialing);
                        dialing = true;
                    }
                    Take::Wait => {
                        let alive: Vec<_> =
                            open.iter().filter(|(_, connection)| !connection.is_closed()).collect();
                        let full = |id: &u64| held.iter().filter(|n| *n == id).count() == 3;
                        assert!(alive.iter().all(|(id, _)| full(id)));
                        assert!(dialing || alive.len() == 2);
                    }
                    Take::Http1(_) => panic!("no HTTP/1.1 here"),
                },
                3 if dialing => {
                    dialing = false;
                    if next(4) == 0 {
                        lane.failed(1);
                    } else {
                        let connection = Fake::default();
                        let id = lane.opened_http2(connection.clone());
                        open.push((id, connection));
                        held.push(id);
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
        assert!(matches!(lane.take(start), Take::Dial));
        assert_eq!(lane.opened_http1(), n == 0, "one is enough");
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
    assert!(matches!(lane.take(start), Take::Dial));
    assert!(lane.opened_http1(), "and again from the next on");
}
