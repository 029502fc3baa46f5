//! The two async ends.

use std::collections::VecDeque;
use std::time::Duration;

use kubestrata_telemetry::Memory;
use kubestrata_testkit::Thing;
use tokio::time::{sleep, timeout};

use super::update;
use crate::{Config, Consumer, Limits, Metrics, Producer, channel};

const SHORT: Duration = Duration::from_millis(10);

fn bounded(items: usize) -> (Producer<Thing>, Consumer<Thing>) {
    let limits = Limits { items, ..Limits::default() };
    channel(Config { limits, ..Config::default() })
}

#[tokio::test(start_paused = true)]
async fn the_producer_waits_for_room() {
    let (mut producer, mut consumer) = bounded(2);
    producer.push(update("+a@1")).await.unwrap();
    producer.push(update("+b@2")).await.unwrap();
    assert!(timeout(SHORT, producer.push(update("+c@3"))).await.is_err());
    // What was cancelled was not queued.
    assert_eq!(consumer.next_batch().await.unwrap().deltas().len(), 2);
    producer.push(update("+d@4")).await.unwrap();

    producer.push(update("+e@5")).await.unwrap();
    let (pushed, ()) = tokio::join!(producer.push(update("+f@6")), async {
        sleep(SHORT).await;
        assert_eq!(consumer.next_batch().await.unwrap().deltas().len(), 2);
    });
    pushed.unwrap();
    assert_eq!(consumer.load().items, 1);
}

#[tokio::test(start_paused = true)]
async fn many_updates_wait_for_room_in_their_order() {
    let (mut producer, mut consumer) = bounded(2);
    let mut updates: VecDeque<_> = ["+a@1", "+b@2", "+c@3", "+d@4", "+e@5"].map(update).into();
    assert!(timeout(SHORT, producer.push_all(&mut updates)).await.is_err());
    // What was cancelled was not queued, and is not lost.
    assert_eq!(updates, ["+c@3", "+d@4", "+e@5"].map(update));
    let mut taken = Vec::new();
    let (pushed, ()) = tokio::join!(producer.push_all(&mut updates), async {
        while taken.len() < 5 {
            sleep(SHORT).await;
            let batch = consumer.next_batch().await.unwrap();
            assert!(batch.deltas().len() <= 2);
            taken.extend(batch.deltas().iter().map(|delta| delta.key().unwrap().to_string()));
        }
    });
    pushed.unwrap();
    assert!(updates.is_empty());
    assert_eq!(taken, ["a", "b", "c", "d", "e"]);
    producer.push_all(&mut updates).await.unwrap();

    drop(consumer);
    let mut updates: VecDeque<_> = ["+f@6", "+g@7"].map(update).into();
    let refused = producer.push_all(&mut updates).await.unwrap_err();
    assert_eq!((refused.0, updates.len()), (Some(update("+f@6")), 1));
}

#[tokio::test(start_paused = true)]
async fn the_consumer_waits_for_work() {
    let (mut producer, mut consumer) = bounded(2);
    assert!(timeout(SHORT, consumer.next_batch()).await.is_err());
    let ((), batch) = tokio::join!(
        async {
            sleep(SHORT).await;
            producer.push(update("[a@1]@1")).await.unwrap();
            producer.resync().await.unwrap();
        },
        async { consumer.next_batch().await.unwrap().take() }
    );
    assert_eq!(batch.len(), 1);
    drop(producer);
    assert!(consumer.next_batch().await.is_some());
    assert!(consumer.next_batch().await.is_none());
    assert!(consumer.next_batch().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn synced_is_told_after_processing() {
    let (mut producer, mut consumer) = bounded(2);
    let (first, second) = (consumer.synced(), producer.synced());
    producer.push(update("[a@1]@1")).await.unwrap();
    let batch = consumer.next_batch().await.unwrap();
    assert!(batch.is_initial());
    assert!(timeout(SHORT, first.wait()).await.is_err());
    assert!(!second.is_set());
    let ((), ()) = tokio::join!(second.wait(), async {
        sleep(SHORT).await;
        batch.done();
    });
    assert!(first.is_set());
    first.wait().await;
    producer.push(update("[]@2")).await.unwrap();
    assert!(first.is_set() && !consumer.next_batch().await.unwrap().is_initial());
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_is_gone_refuses() {
    let (mut producer, consumer) = bounded(1);
    producer.push(update("+a@1")).await.unwrap();
    let (pushed, ()) = tokio::join!(producer.push(update("+b@2")), async {
        sleep(SHORT).await;
        drop(consumer);
    });
    assert_eq!(pushed.unwrap_err().0, Some(update("+b@2")));
    assert!(producer.resync().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_processing_does_not_count_as_processed() {
    let (mut producer, mut consumer) = bounded(1);
    let synced = producer.synced();
    producer.push(update("[a@1]@1")).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let _batch = consumer.next_batch().await;
        panic!("of the test");
    });
    assert!(tasks.join_next().await.unwrap().is_err());
    assert!(!synced.is_set());
    assert!(producer.push(update("+b@2")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn metrics_follow() {
    let memory = Memory::new();
    let metrics = Metrics::new(&memory, &[("name", "test")]);
    let (mut producer, mut consumer) =
        channel(Config { metrics, weigh: |_| 100, ..Config::default() });
    producer.push(update("[a@1 b@1]@1")).await.unwrap();
    producer.push(update("+c@2")).await.unwrap();
    assert_eq!(memory.value(r#"informer_queued_items{name="test"}"#), Some(3.0));
    assert!(memory.value(r#"informer_queued_bytes{name="test"}"#) > Some(300.0));
    let batch = consumer.next_batch().await.unwrap();
    sleep(Duration::from_millis(30)).await;
    batch.done();
    assert_eq!(memory.value(r#"informer_queued_items{name="test"}"#), Some(1.0));
    let text = memory.render();
    let line = r#"informer_processing_latency_seconds_bucket{name="test",le="0.05"} 1"#;
    assert!(text.contains(line), "{text}");
}
