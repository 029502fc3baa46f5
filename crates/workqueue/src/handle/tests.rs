//! Tests of the handle, with tokio's paused clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubestrata_telemetry::Memory;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::{AddOptions, Closed, Config, TryAddError, WorkQueue};

const SOON: Duration = Duration::from_millis(1);

fn bounded(max_keys: usize) -> WorkQueue<u32> {
    WorkQueue::new(Config { max_keys, ..Config::default() })
}

#[tokio::test(start_paused = true)]
async fn a_blocked_get_gets_what_is_added_later() {
    let queue = bounded(10);
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        tasks.spawn(async move { *queue.get().await.unwrap() });
    }
    sleep(SOON).await;
    for key in [1, 2, 3] {
        queue.add(key).await.unwrap();
    }
    let mut keys = tasks.join_all().await;
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_come_at_their_time_whoever_waits() {
    let queue = bounded(10);
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        tasks.spawn(async move {
            let key = *queue.get().await.unwrap();
            (start.elapsed().as_secs(), key)
        });
    }
    sleep(SOON).await;
    for (key, seconds) in [(3, 30), (1, 10), (2, 20)] {
        let delay = Duration::from_secs(seconds) - SOON;
        queue.add_with(key, AddOptions::new().after(delay)).await.unwrap();
    }
    let mut keys = tasks.join_all().await;
    keys.sort_unstable();
    assert_eq!(keys, [(10, 1), (20, 2), (30, 3)]);
}

/// The first in line keeps the timer; when its future is dropped the next one has to take it over.
#[tokio::test(start_paused = true)]
async fn a_dropped_get_hands_on_timer_and_wake_up() {
    let queue = bounded(10);
    let first = {
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item) }
    };
    let mut first = Box::pin(first);
    assert!(timeout(SOON, &mut first).await.is_err());
    let mut tasks = JoinSet::new();
    let second = queue.clone();
    tasks.spawn(async move { *second.get().await.unwrap() });
    sleep(SOON).await;
    queue.add_with(7, AddOptions::new().after(Duration::from_secs(5))).await.unwrap();
    drop(first);
    assert_eq!(
        timeout(Duration::from_secs(6), tasks.join_next()).await.unwrap().unwrap().unwrap(),
        7
    );
}

#[tokio::test(start_paused = true)]
async fn k6_shutdown_lets_all_waiting_calls_return() {
    let queue = bounded(1);
    let mut tasks = JoinSet::new();
    queue.add(1).await.unwrap();
    let held = queue.get().await.unwrap();
    for _ in 0..4 {
        let queue = queue.clone();
        tasks.spawn(async move {
            assert!(queue.get().await.is_none());
        });
    }
    for key in 10..14 {
        let queue = queue.clone();
        tasks.spawn(async move {
            assert_eq!(queue.add(key).await, Err(Closed));
        });
    }
    sleep(SOON).await;
    let draining = queue.clone();
    tasks.spawn(async move {
        assert!(!draining.drain().await, "cut short");
    });
    sleep(SOON).await;
    queue.shut_down();
    queue.shut_down();
    timeout(SOON, tasks.join_all()).await.expect("all calls return");
    assert_eq!(queue.try_add(3), Err(TryAddError::Closed(3)));
    drop(held);
    assert!(!queue.drain().await);
}

/// kubernetes PR 141079: a drain must wait for queued keys too, also while none is processed.
#[tokio::test(start_paused = true)]
async fn drain_waits_for_queued_and_running_work() {
    let queue = bounded(10);
    for key in 0..3 {
        queue.add(key).await.unwrap();
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    let (worker, keys) = (queue.clone(), Arc::clone(&seen));
    tasks.spawn(async move {
        sleep(Duration::from_secs(1)).await;
        while let Some(item) = worker.get().await {
            sleep(Duration::from_secs(1)).await;
            keys.lock().unwrap().push(*item);
        }
    });
    let start = Instant::now();
    let (a, b) = tokio::join!(queue.drain(), queue.drain());
    assert!(a && b);
    assert_eq!(start.elapsed().as_secs(), 4);
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
    timeout(SOON, tasks.join_all()).await.expect("the worker has returned");
    assert!(queue.drain().await, "a second drain has nothing to wait for");
}

#[tokio::test(start_paused = true)]
async fn at_the_bound_new_keys_wait_in_turn_and_none_is_lost() {
    let queue = bounded(2);
    let mut tasks = JoinSet::new();
    for key in 0..20 {
        let queue = queue.clone();
        tasks.spawn(async move { queue.add(key).await.unwrap() });
        tokio::task::yield_now().await;
    }
    assert_eq!(queue.try_add(99), Err(TryAddError::Full(99)));
    assert_eq!(queue.try_add(0), Ok(()), "it is there already");
    let mut keys = Vec::new();
    for _ in 0..20 {
        let item = timeout(SOON, queue.get()).await.unwrap().unwrap();
        keys.push(*item);
    }
    assert_eq!(keys, Vec::from_iter(0..20));
    tasks.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_add_leaves_its_place_to_the_next() {
    let queue = bounded(1);
    queue.add(1).await.unwrap();
    let mut first = Box::pin(queue.add(2));
    assert!(timeout(SOON, &mut first).await.is_err());
    let mut tasks = JoinSet::new();
    let second = queue.clone();
    tasks.spawn(async move { second.add(3).await });
    sleep(SOON).await;
    drop(queue.get().await);
    drop(first);
    timeout(SOON, tasks.join_all()).await.expect("there is room");
    assert_eq!(queue.get().await.as_deref(), Some(&3));
}

#[tokio::test(start_paused = true)]
async fn an_item_is_requeued_with_its_priority() {
    let queue = bounded(10);
    queue.add_with(1, AddOptions::new().priority(-100)).await.unwrap();
    let start = Instant::now();
    for (failures, waited) in [(0, 0), (1, 5), (2, 15)] {
        let item = queue.get().await.unwrap();
        assert_eq!((item.priority(), item.failures()), (-100, failures));
        assert_eq!(start.elapsed().as_millis(), waited);
        item.retry();
    }
    queue.get().await.unwrap().requeue_after(Duration::from_secs(3));
    let before = Instant::now();
    let item = queue.get().await.unwrap();
    assert_eq!((before.elapsed().as_secs(), item.priority(), item.failures()), (3, -100, 0));
}

#[tokio::test(start_paused = true)]
async fn metrics_have_client_gos_names_and_meaning() {
    let metrics = Memory::new();
    let config =
        Config { name: "q".to_owned(), metrics: Arc::new(metrics.clone()), ..Config::default() };
    let queue = WorkQueue::new(config);
    let value = |name: &str| metrics.value(&format!("workqueue_{name}")).unwrap();
    for key in [1, 1, 2] {
        queue.add(key).await.unwrap();
    }
    queue.add_with(3, AddOptions::new().priority(-100)).await.unwrap();
    queue.add_with(4, AddOptions::new().after(Duration::from_secs(1))).await.unwrap();
    assert_eq!(value(r#"depth{name="q",priority="0"}"#), 2.0);
    assert_eq!(value(r#"depth{name="q",priority="-100"}"#), 1.0);
    assert_eq!(value(r#"adds_total{name="q"}"#), 4.0);
    assert_eq!(value(r#"retries_total{name="q"}"#), 1.0);
    sleep(Duration::from_secs(2)).await;
    let (a, b) = (queue.get().await.unwrap(), queue.get().await.unwrap());
    assert_eq!(value(r#"queue_duration_seconds{name="q"}"#), 4.0);
    sleep(Duration::from_secs(3)).await;
    queue.update_metrics();
    assert_eq!(value(r#"unfinished_work_seconds{name="q"}"#), 6.0);
    assert_eq!(value(r#"longest_running_processor_seconds{name="q"}"#), 3.0);
    drop((a, b));
    assert_eq!(value(r#"work_duration_seconds{name="q"}"#), 6.0);
    assert_eq!(value(r#"depth{name="q",priority="0"}"#), 1.0, "the delayed key is ready now");
    for priority in 1..100 {
        let options = AddOptions::new().priority(priority);
        queue.add_with(1000 + u32::try_from(priority).unwrap(), options).await.unwrap();
    }
    let other = r#"depth{name="q",priority="exceeded_cardinality_limit"}"#;
    assert_eq!(value(other), 76.0);
    queue.shut_down();
    assert_eq!(value(other), 0.0);
}

/// Many threads, many keys: every key is processed after its last add, and never by two workers at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_lost_or_processed_twice_at_once() {
    let queue = WorkQueue::new(Config { max_keys: 8, ..Config::default() });
    let wanted = Arc::new(Mutex::new(BTreeMap::<u32, u32>::new()));
    let seen = Arc::new(Mutex::new(BTreeMap::<u32, u32>::new()));
    let busy = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let (queue, wanted) = (queue.clone(), Arc::clone(&wanted));
        let (seen, busy) = (Arc::clone(&seen), Arc::clone(&busy));
        workers.spawn(async move {
            while let Some(item) = queue.get().await {
                assert!(busy.lock().unwrap().insert(*item), "two workers at once");
                let version = wanted.lock().unwrap()[&*item];
                tokio::task::yield_now().await;
                seen.lock().unwrap().insert(*item, version);
                busy.lock().unwrap().remove(&*item);
            }
        });
    }
    let mut producers = JoinSet::new();
    for producer in 0..4_u32 {
        let (queue, wanted) = (queue.clone(), Arc::clone(&wanted));
        producers.spawn(async move {
            for step in 0..5000_u32 {
                let key = (step * 7 + producer) % 30;
                *wanted.lock().unwrap().entry(key).or_insert(0) += 1;
                queue.add(key).await.unwrap();
            }
        });
    }
    producers.join_all().await;
    assert!(timeout(Duration::from_secs(60), queue.drain()).await.unwrap());
    workers.join_all().await;
    assert_eq!(*seen.lock().unwrap(), *wanted.lock().unwrap());
}
