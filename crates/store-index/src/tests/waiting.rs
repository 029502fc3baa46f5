//! Versions, epochs, and those who wait for them.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{Item, item};
use crate::{Change, WaitError, store};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn versions_only_grow_and_bookmarks_advance_them() {
    let (mut writer, reader) = store::<Item>();
    assert!(reader.version().version.is_unset());
    assert!(reader.check_at_least(&"0".into()).is_err(), "not filled yet");
    writer.replace(vec![], 5.into());
    assert!(reader.check_at_least(&"0".into()).is_ok());
    writer.upsert(item("a/1", 3, "", &[]));
    assert_eq!(reader.version().version, 5.into());
    writer.upsert(item("a/1", 7, "", &[]));
    writer.bookmark(9.into());
    writer.bookmark(8.into());
    assert_eq!(reader.version().version, 9.into());
    writer.apply(vec![Change::Delete { key: "a/1".parse().unwrap(), version: 11.into() }]);
    assert_eq!(reader.version().version, 11.into());
    assert_eq!(reader.version().epoch, 0);
}

#[test]
fn only_those_whose_version_has_come_are_woken() {
    let (mut writer, reader) = store::<Item>();
    writer.bookmark(1.into());
    let counts: [Arc<Count>; 2] = std::array::from_fn(|_| Arc::new(Count::default()));
    let wakers = counts.clone().map(Waker::from);
    let mut near = pin!(reader.at_least(5.into()));
    let mut far = pin!(reader.at_least(9.into()));
    let mut contexts = wakers.each_ref().map(Context::from_waker);
    assert!(near.as_mut().poll(&mut contexts[0]).is_pending());
    assert!(near.as_mut().poll(&mut contexts[0]).is_pending());
    assert!(far.as_mut().poll(&mut contexts[1]).is_pending());
    writer.bookmark(4.into());
    assert_eq!(counts.each_ref().map(|count| count.0.load(Ordering::SeqCst)), [0, 0]);
    writer.bookmark(6.into());
    assert_eq!(counts.each_ref().map(|count| count.0.load(Ordering::SeqCst)), [1, 0]);
    let Poll::Ready(Ok(version)) = near.as_mut().poll(&mut contexts[0]) else {
        panic!("not ready")
    };
    assert_eq!(version.version, 6.into());
    drop(writer);
    assert_eq!(far.as_mut().poll(&mut contexts[1]), Poll::Ready(Err(WaitError::Closed)));
    assert_eq!(counts[1].0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_dropped_wait_leaves_nothing_behind() {
    let (mut writer, reader) = store::<Item>();
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    {
        let mut wait = pin!(reader.at_least(5.into()));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(Arc::strong_count(&count), 3);
    }
    assert_eq!(Arc::strong_count(&count), 2);
    writer.bookmark(9.into());
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
}

#[test]
fn a_snapshot_below_the_version_begins_an_epoch_and_ends_older_waits() {
    let (mut writer, reader) = store::<Item>();
    writer.replace(vec![item("a/1", 90, "", &[])], 100.into());
    let mut wait = pin!(reader.at_least(120.into()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(&mut context).is_pending());
    assert!(writer.replace(vec![item("a/1", 40, "", &[])], 50.into()).rewound);
    let rewound = WaitError::Rewound { have: 50.into(), want: 120.into() };
    assert_eq!(wait.as_mut().poll(&mut context), Poll::Ready(Err(rewound)));
    assert_eq!((reader.version().epoch, reader.version().version), (1, 50.into()));
    // A version learnt in the old epoch says nothing in the new one, even if it is smaller.
    let mut old = pin!(reader.at_least_in(0, 40.into()));
    assert!(matches!(old.as_mut().poll(&mut context), Poll::Ready(Err(WaitError::Rewound { .. }))));
    writer.bookmark(60.into());
    assert!(reader.check_at_least(&55.into()).is_ok());
}
