//! Models of the hand-off, run under `--cfg kubestrata_loom`.

use std::sync::Arc;
use std::task::Poll;

use kubestrata_api_types::Tick;
use loom::future::block_on;
use loom::thread;

use super::{Config, Got, Place, Shared, WorkQueue};

/// `get` without the timer, which loom does not know: nothing here is delayed.
async fn get(queue: &WorkQueue<u8>) -> Option<u8> {
    let mut place = Place::new(&queue.shared, |inner| &mut inner.getters);
    std::future::poll_fn(|cx| {
        match Shared::poll_get(&queue.shared, cx.waker(), Tick::ZERO, &mut place.slot) {
            Got::Item(item) => Poll::Ready(Some(*item)),
            Got::Finished => Poll::Ready(None),
            Got::Pending(_) => Poll::Pending,
        }
    })
    .await
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn two_getters_get_two_keys() {
    check(|| {
        let queue = WorkQueue::new(Config::default());
        let other = queue.clone();
        let getter = thread::spawn(move || block_on(get(&other)));
        queue.try_add(1).unwrap();
        queue.try_add(2).unwrap();
        let mine = block_on(get(&queue)).unwrap();
        let theirs = getter.join().unwrap().unwrap();
        assert_eq!(mine + theirs, 3);
    });
}

#[test]
fn an_add_during_the_work_is_another_run() {
    check(|| {
        let queue = WorkQueue::new(Config::default());
        queue.try_add(1).unwrap();
        let item = queue.try_get().unwrap();
        let other = queue.clone();
        let adder = thread::spawn(move || other.try_add(1).unwrap());
        drop(item);
        assert_eq!(block_on(get(&queue)), Some(1));
        adder.join().unwrap();
    });
}

#[test]
fn room_made_by_a_done_wakes_the_waiting_add() {
    check(|| {
        let queue = WorkQueue::new(Config { max_keys: 1, ..Config::default() });
        queue.try_add(1).unwrap();
        let item = queue.try_get().unwrap();
        let other = queue.clone();
        let adder = thread::spawn(move || block_on(other.add(2)).unwrap());
        drop(item);
        adder.join().unwrap();
        assert_eq!(block_on(get(&queue)), Some(2));
    });
}

#[test]
fn a_shutdown_ends_a_blocked_get_and_a_drain() {
    check(|| {
        let queue = WorkQueue::<u8>::new(Config::default());
        queue.try_add(1).unwrap();
        let item = queue.try_get().unwrap();
        let (getter, drainer) = (queue.clone(), queue.clone());
        let get = thread::spawn(move || block_on(get(&getter)));
        let drain = thread::spawn(move || block_on(drainer.drain()));
        queue.shut_down();
        assert_eq!(get.join().unwrap(), None);
        assert!(!drain.join().unwrap());
        drop(item);
        assert_eq!(Arc::strong_count(&queue.shared), 1);
    });
}
