//! Tests of the queue as a structure: vectors K1 to K5, and a model.

use std::time::Duration;

use kubestrata_api_types::Tick;

use super::{AddOptions, Ageing, Refused, State};
use crate::limiter::{ExponentialBackoff, FastSlow, MaxOf, RateLimiter, TokenBucket};

mod model;

fn queue() -> State<&'static str> {
    State::new(Box::new(ExponentialBackoff::default()), 100_000, Ageing::default())
}

fn at(millis: u64) -> Tick {
    Tick::from_origin(Duration::from_millis(millis))
}

fn after(millis: u64) -> AddOptions {
    AddOptions::new().after(Duration::from_millis(millis))
}

fn priority(priority: i32) -> AddOptions {
    AddOptions::new().priority(priority)
}

/// Pops and finishes all that is ready.
fn run_all(queue: &mut State<&'static str>, now: Tick) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while let Some(popped) = queue.pop(now) {
        keys.push(popped.key);
        queue.done(now, &popped.key);
    }
    keys
}

#[test]
fn k1_many_adds_are_one_run_and_an_add_during_the_run_exactly_one_more() {
    let mut queue = queue();
    for _ in 0..100 {
        queue.add(at(0), &"a", AddOptions::new()).unwrap();
    }
    assert_eq!(queue.pop(at(0)).unwrap().key, "a");
    for _ in 0..100 {
        queue.add(at(0), &"a", AddOptions::new()).unwrap();
        assert_eq!(queue.pop(at(0)), None, "a key is never processed twice at once");
    }
    assert!(queue.done(at(0), &"a").is_some());
    assert_eq!(run_all(&mut queue, at(0)), ["a"]);
    assert_eq!(queue.total(), 0);
}

#[test]
fn k2_delays_double_from_5_ms_up_to_1000_s_and_forget_starts_again() {
    let mut limiter = ExponentialBackoff::default();
    let delays: Vec<_> = (0..19).map(|_| limiter.when(at(0), &"a").as_millis()).collect();
    assert_eq!(delays[..5], [5, 10, 20, 40, 80]);
    assert_eq!(delays[17..], [655_360, 1_000_000]);
    for _ in 0..100 {
        assert_eq!(limiter.when(at(0), &"a"), Duration::from_secs(1000));
    }
    assert_eq!(limiter.failures(&"a"), 119);
    assert_eq!(limiter.when(at(0), &"b"), Duration::from_millis(5), "each key for itself");
    limiter.forget(&"a");
    assert_eq!(limiter.when(at(0), &"a"), Duration::from_millis(5));
}

#[test]
fn k3_the_earlier_delay_wins_and_a_direct_add_takes_the_place_of_a_delayed_one() {
    let mut queue = queue();
    queue.add(at(0), &"a", after(10_000)).unwrap();
    queue.add(at(0), &"a", after(1000)).unwrap();
    queue.add(at(0), &"a", after(5000)).unwrap();
    assert_eq!(queue.next_deadline(), Some(at(1000)));
    assert_eq!(run_all(&mut queue, at(999)), [""; 0]);
    assert_eq!(run_all(&mut queue, at(1000)), ["a"]);
    assert_eq!(run_all(&mut queue, at(20_000)), [""; 0]);

    queue.add(at(20_000), &"a", after(10_000)).unwrap();
    queue.add(at(20_000), &"a", AddOptions::new()).unwrap();
    assert_eq!(run_all(&mut queue, at(20_000)), ["a"]);
    assert_eq!(run_all(&mut queue, at(90_000)), [""; 0], "client-go runs it a second time");
}

#[test]
fn k4_a_key_of_higher_priority_goes_before_all_of_lower() {
    let names: Vec<&'static str> = (0..1000).map(|n| &*n.to_string().leak()).collect();
    let mut queue = queue();
    for name in &names {
        queue.add(at(0), name, priority(-100)).unwrap();
    }
    queue.add(at(0), &"late", AddOptions::new()).unwrap();
    assert_eq!(run_all(&mut queue, at(0))[..3], ["late", "0", "1"]);
}

#[test]
fn k5_a_raised_key_goes_to_the_end_of_its_new_priority_and_none_is_lowered() {
    let mut queue = queue();
    queue.add(at(0), &"low", priority(-100)).unwrap();
    queue.add(at(0), &"raised", priority(-100)).unwrap();
    queue.add(at(0), &"a", AddOptions::new()).unwrap();
    queue.add(at(0), &"b", AddOptions::new()).unwrap();
    queue.add(at(0), &"raised", AddOptions::new()).unwrap();
    queue.add(at(0), &"c", AddOptions::new()).unwrap();
    queue.add(at(0), &"a", priority(-100)).unwrap();
    assert_eq!(run_all(&mut queue, at(0)), ["a", "b", "raised", "c", "low"]);
}

#[test]
fn steady_traffic_does_not_starve_low_priorities() {
    let mut queue = queue();
    queue.add(at(0), &"low", priority(-100)).unwrap();
    let mut handed_out = None;
    for step in 0..2000_u64 {
        let now = at(step * 10);
        for key in ["x", "y", "z"] {
            queue.add(now, &key, AddOptions::new()).unwrap();
        }
        let popped = queue.pop(now).unwrap();
        queue.done(now, &popped.key);
        if popped.key == "low" {
            handed_out = Some(step * 10);
            break;
        }
    }
    let millis = handed_out.expect("the low key has its share");
    assert!((10_000..10_100).contains(&millis), "{millis}");
}

#[test]
fn fresh_keys_keep_their_share_before_a_large_old_backlog() {
    let names: Vec<&'static str> = (0..1000).map(|n| &*n.to_string().leak()).collect();
    let mut queue = queue();
    for name in &names {
        queue.add(at(0), name, priority(-100)).unwrap();
    }
    let now = at(60_000);
    queue.add(now, &"fresh", AddOptions::new()).unwrap();
    let first: Vec<_> = (0..2).map(|_| queue.pop(now).unwrap().key).collect();
    assert!(first.contains(&"fresh"), "{first:?}");
}

#[test]
fn a_stray_done_changes_nothing() {
    let mut queue = queue();
    queue.add(at(0), &"a", AddOptions::new()).unwrap();
    assert_eq!(queue.done(at(0), &"a"), None);
    assert_eq!(queue.done(at(0), &"unknown"), None);
    assert_eq!(run_all(&mut queue, at(0)), ["a"]);
}

#[test]
fn the_bound_counts_distinct_keys_and_never_refuses_one_that_is_there() {
    let mut queue = State::new(Box::new(ExponentialBackoff::default()), 3, Ageing::default());
    queue.add(at(0), &"running", AddOptions::new()).unwrap();
    queue.pop(at(0)).unwrap();
    queue.add(at(0), &"ready", AddOptions::new()).unwrap();
    queue.add(at(0), &"waiting", after(5)).unwrap();
    assert_eq!(queue.add(at(0), &"new", AddOptions::new()), Err(Refused::Full));
    for key in ["running", "ready", "waiting"] {
        queue.add(at(0), &key, AddOptions::new().rate_limited()).unwrap();
    }
    queue.done(at(0), &"running");
    assert_eq!(queue.total(), 3);
}

#[test]
fn rate_limited_with_a_delay_takes_the_shorter() {
    let mut queue = queue();
    queue.add(at(0), &"a", after(1000).rate_limited()).unwrap();
    queue.add(at(0), &"b", after(1).rate_limited()).unwrap();
    assert_eq!(queue.next_deadline(), Some(at(1)));
    assert_eq!(run_all(&mut queue, at(1)), ["b"]);
    assert_eq!(queue.next_deadline(), Some(at(5)));
}

/// A requeue while the key is processed waits for its time, however long the processing takes.
#[test]
fn a_delay_that_ends_during_the_work_means_one_more_run() {
    let mut queue = queue();
    queue.add(at(0), &"a", AddOptions::new()).unwrap();
    queue.pop(at(0)).unwrap();
    queue.add(at(0), &"a", after(10)).unwrap();
    assert_eq!(queue.pop(at(50)), None);
    queue.done(at(60), &"a");
    let popped = queue.pop(at(60)).unwrap();
    assert_eq!((popped.key, popped.waited), ("a", Duration::ZERO));
}

#[test]
fn draining_hands_out_what_is_there_and_what_was_added_during_the_work() {
    let mut queue = queue();
    for key in ["a", "b"] {
        queue.add(at(0), &key, AddOptions::new()).unwrap();
    }
    queue.add(at(0), &"delayed", after(5)).unwrap();
    let first = queue.pop(at(0)).unwrap().key;
    queue.add(at(0), &first, AddOptions::new()).unwrap();
    queue.drain();
    assert_eq!(queue.add(at(0), &"new", AddOptions::new()), Err(Refused::Closed));
    assert_eq!(queue.pop(at(9)).unwrap().key, "b");
    queue.done(at(9), &"b");
    assert!(!queue.is_finished(), "a has to run again");
    queue.done(at(9), &first);
    assert_eq!(run_all(&mut queue, at(9)), ["a"]);
    assert!(queue.is_finished());
    assert_eq!(queue.total(), 0);
}

#[test]
fn closing_drops_all_but_the_running() {
    let mut queue = queue();
    for key in ["a", "b", "c"] {
        queue.add(at(0), &key, AddOptions::new()).unwrap();
    }
    queue.add(at(0), &"d", after(5)).unwrap();
    queue.pop(at(0)).unwrap();
    queue.add(at(0), &"a", AddOptions::new()).unwrap();
    queue.close();
    queue.close();
    assert_eq!((queue.pop(at(9)), queue.total(), queue.running()), (None, 1, 1));
    queue.done(at(9), &"a");
    assert_eq!(queue.total(), 0);
}

#[test]
fn a_bucket_gives_its_burst_then_its_rate() {
    let mut bucket = TokenBucket::new(Duration::from_millis(100), 3);
    let mut when = |millis| RateLimiter::<&str>::when(&mut bucket, at(millis), &"a").as_millis();
    assert_eq!([when(0), when(0), when(0), when(0), when(0)], [0, 0, 0, 100, 200]);
    assert_eq!(when(250), 50);
    assert_eq!([when(10_000), when(10_000), when(10_000), when(10_000)], [0, 0, 0, 100]);
}

#[test]
fn limiters_combine() {
    let bucket = TokenBucket::new(Duration::from_secs(1), 1);
    let mut max = MaxOf::new(ExponentialBackoff::default(), bucket);
    assert_eq!(max.when(at(0), &"a"), Duration::from_millis(5));
    assert_eq!(max.when(at(0), &"a"), Duration::from_secs(1));
    assert_eq!(max.failures(&"a"), 2);
    let (fast, slow) = (Duration::from_millis(5), Duration::from_secs(10));
    let mut limiter = FastSlow::new(fast, slow, 2, 10);
    assert_eq!([0; 3].map(|_| limiter.when(at(0), &"a")), [fast, fast, slow]);
}

#[test]
fn failures_are_remembered_in_bounded_memory() {
    let mut limiter =
        ExponentialBackoff::new(Duration::from_millis(1), Duration::from_secs(9), 100);
    for round in 0..10 {
        for key in 0..1000 {
            limiter.when(at(0), &key);
            // A key that goes on failing is not pushed out by the others.
            limiter.when(at(0), &-1);
        }
        assert_eq!(limiter.failures(&-1), (round + 1) * 1000);
    }
    let remembered = (0..1000).filter(|key| limiter.failures(key) > 0).count();
    assert!(remembered <= 100, "{remembered}");
}
