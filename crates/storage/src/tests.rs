use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::{
    Change, ChangeKind, Config, Expected, Memory, Observer, Range, ReadError, Revision, Storage,
    WriteError,
};

fn store() -> Memory<String> {
    Memory::new(Config::default())
}

async fn create(store: &Memory<String>, key: &str, value: &str) -> Revision {
    store.put(key, Expected::Absent, &|_| value.to_owned()).await.unwrap().revision
}

async fn keys(store: &Memory<String>, range: Range<'_>) -> Result<Vec<String>, ReadError> {
    let page = store.range(range).await?;
    Ok(page.items.into_iter().map(|entry| format!("{}={}", entry.key, entry.value)).collect())
}

#[tokio::test]
async fn one_revision_counts_all_writes_from_two() {
    let store = store();
    assert_eq!(store.current().await, Ok(1));
    assert_eq!(create(&store, "/a", "1").await, 2);
    assert_eq!(create(&store, "/b", "1").await, 3);
    let gone = store.delete("/a", 2, &|revision| format!("gone@{revision}")).await.unwrap();
    assert_eq!((gone.revision, gone.value.as_str()), (4, "gone@4"));
    assert_eq!(store.current().await, Ok(4));
    assert_eq!(store.delivered(), Some(4));
}

#[tokio::test]
async fn writes_compare_before_they_set() {
    let store = store();
    create(&store, "/a", "1").await;
    let again = store.put("/a", Expected::Absent, &|_| "2".to_owned()).await;
    let Err(WriteError::Conflict { current: Some(current) }) = again else { panic!("{again:?}") };
    assert_eq!((current.revision, current.value.as_str()), (2, "1"));
    let stale = store.put("/a", Expected::Revision(1), &|_| "2".to_owned()).await;
    assert!(matches!(stale, Err(WriteError::Conflict { .. })));
    let absent = store.delete("/b", 2, &|_| String::new()).await;
    assert!(matches!(absent, Err(WriteError::Conflict { current: None })));
    assert_eq!(store.current().await, Ok(2), "a refused write takes no revision");
}

#[tokio::test]
async fn ranges_read_the_past_in_the_byte_order_of_keys() {
    let store = store();
    create(&store, "/p/a/x", "1").await;
    create(&store, "/p/a-b/x", "1").await;
    create(&store, "/p/b/x", "1").await;
    create(&store, "/q/x", "1").await;
    let before = store.current().await.unwrap();
    store.put("/p/a/x", Expected::Revision(2), &|_| "2".to_owned()).await.unwrap();
    store.delete("/p/b/x", 4, &|_| String::new()).await.unwrap();

    let all = keys(&store, Range::prefix("/p/")).await;
    assert_eq!(all.unwrap(), ["/p/a-b/x=1", "/p/a/x=2"], "a hyphen sorts before a slash");
    let past = keys(&store, Range::prefix("/p/").at(before)).await;
    assert_eq!(past.unwrap(), ["/p/a-b/x=1", "/p/a/x=1", "/p/b/x=1"]);
    let page = store.range(Range::prefix("/p/").at(before).start("/p/a/x\0").limit(1)).await;
    let page = page.unwrap();
    assert_eq!((page.items.len(), page.count), (1, 1));
    let future = keys(&store, Range::prefix("/p/").at(99)).await;
    assert_eq!(future, Err(ReadError::Future { requested: 99, current: 7 }));
}

#[tokio::test]
async fn compaction_forgets_what_nobody_can_read() {
    let store = store();
    create(&store, "/a", "1").await;
    store.put("/a", Expected::Revision(2), &|_| "2".to_owned()).await.unwrap();
    create(&store, "/b", "1").await;
    store.delete("/b", 4, &|_| String::new()).await.unwrap();
    store.compact(3).await.unwrap();
    assert_eq!(
        keys(&store, Range::prefix("/").at(2)).await,
        Err(ReadError::Compacted { requested: 2, oldest: 3 })
    );
    assert_eq!(keys(&store, Range::prefix("/").at(4)).await.unwrap(), ["/a=2", "/b=1"]);
    store.compact(5).await.unwrap();
    assert_eq!(keys(&store, Range::prefix("/").at(5)).await.unwrap(), ["/a=2"]);
    assert!(matches!(store.compact(9).await, Err(ReadError::Future { .. })));
}

#[tokio::test(start_paused = true)]
async fn history_is_bounded_by_count_bytes_and_age() {
    let bounds = [
        (Config { history_values: 2, ..Config::default() }, 8),
        (Config { history_bytes: 2, ..Config::default() }, 8),
        (Config { history_age: Duration::from_millis(2500), ..Config::default() }, 7),
    ];
    for (config, want) in bounds {
        let store = Memory::<String>::new(config);
        create(&store, "/a", "v").await;
        for revision in 2..10 {
            tokio::time::advance(Duration::from_secs(1)).await;
            store.put("/a", Expected::Revision(revision), &|_| "v".to_owned()).await.unwrap();
        }
        let oldest = store.oldest();
        assert_eq!(oldest, want);
        assert!(store.range(Range::prefix("/").at(oldest)).await.is_ok());
        assert!(store.range(Range::prefix("/").at(oldest - 1)).await.is_err());
    }
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Observer<String> for Log {
    fn changed(&self, change: &Change<String>) {
        let sign = if change.kind == ChangeKind::Put { '+' } else { '-' };
        let previous = change.previous.as_deref().unwrap_or("none");
        let line = format!("{sign}{}@{} {previous}->{}", change.key, change.revision, change.value);
        self.0.lock().push(line);
    }

    fn progressed(&self, _: Revision) {}
}

#[tokio::test]
async fn a_subscription_goes_on_exactly_where_its_state_ends() {
    let store = store();
    create(&store, "/p/a", "1").await;
    let log = Arc::new(Log::default());
    let subscribed = store.subscribe("/p/", log.clone()).await.unwrap();
    assert_eq!((subscribed.state.items.len(), subscribed.state.revision), (1, 2));
    store.put("/p/a", Expected::Revision(2), &|_| "2".to_owned()).await.unwrap();
    create(&store, "/q/a", "1").await;
    store.delete("/p/a", 3, &|revision| format!("last@{revision}")).await.unwrap();
    drop(subscribed);
    create(&store, "/p/b", "1").await;
    assert_eq!(*log.0.lock(), ["+/p/a@3 1->2", "-/p/a@5 2->last@5"]);
}

/// The store against a map for each revision, over pseudo-random operations.
#[tokio::test]
async fn every_readable_revision_equals_a_naive_model() {
    for seed in 1..40_u64 {
        let store = Memory::<String>::new(Config { history_values: 12, ..Config::default() });
        let mut models: BTreeMap<Revision, BTreeMap<String, String>> = BTreeMap::new();
        models.insert(1, BTreeMap::new());
        let mut random = seed;
        for _ in 0..60 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = format!("/k/{}", (random >> 33) % 5);
            let now = store.current().await.unwrap();
            let mut model = models[&now].clone();
            let current = store.get(&key).await.unwrap();
            assert_eq!(current.as_ref().map(|entry| &entry.value), model.get(&key));
            let value = format!("v{now}");
            match current {
                Some(entry) if random >> 60 < 6 => {
                    store.delete(&key, entry.revision, &|_| String::new()).await.unwrap();
                    model.remove(&key);
                }
                current => {
                    let expected = current
                        .map_or(Expected::Absent, |entry| Expected::Revision(entry.revision));
                    store.put(&key, expected, &|_| value.clone()).await.unwrap();
                    model.insert(key, value);
                }
            }
            models.insert(now + 1, model);
            for (revision, model) in models.range(store.oldest()..) {
                let page = store.range(Range::prefix("/k/").at(*revision)).await.unwrap();
                let have: BTreeMap<String, String> = page
                    .items
                    .into_iter()
                    .map(|entry| (entry.key.to_string(), entry.value))
                    .collect();
                assert_eq!(have, *model, "seed {seed} revision {revision}");
            }
        }
    }
}

#[tokio::test]
async fn a_store_can_begin_above_the_revisions_of_an_earlier_one() {
    let store = Memory::new(Config { first_revision: 1_000, ..Config::default() });
    assert_eq!((store.current().await, store.oldest()), (Ok(1_000), 1_000));
    assert_eq!(create(&store, "/a", "1").await, 1_001);
    let old = keys(&store, Range::prefix("/").at(999)).await;
    assert_eq!(old, Err(ReadError::Compacted { requested: 999, oldest: 1_000 }));
    let none = Memory::<String>::new(Config { first_revision: 0, ..Config::default() });
    assert_eq!(none.current().await, Ok(1), "0 is never a revision");
}

#[tokio::test]
async fn a_restored_store_has_the_objects_and_no_history() {
    let first = store();
    let made = create(&first, "/a", "1").await;
    create(&first, "/b", "1").await;
    let backup = first.range(Range::prefix("/")).await.unwrap();
    create(&first, "/c", "1").await;

    // At the backup's revision: the next write gets the revision that `/c` had.
    let same = Memory::restored(Config::default(), backup.items.clone(), backup.revision);
    assert_eq!(keys(&same, Range::prefix("/")).await.unwrap(), ["/a=1", "/b=1"]);
    assert_eq!(create(&same, "/d", "1").await, 4);
    let old = keys(&same, Range::prefix("/").at(made)).await;
    assert_eq!(old, Err(ReadError::Compacted { requested: made, oldest: 3 }));
    let updated = same.put("/a", Expected::Revision(made), &|_| "2".to_owned()).await;
    assert_eq!(updated.unwrap().revision, 5, "entries keep the revisions of their writes");

    // Above everything: no revision is given twice.
    let above = Memory::restored(Config::default(), backup.items.clone(), 100);
    assert_eq!((create(&above, "/d", "1").await, above.oldest()), (101, 100));
    // A revision below that of an entry would give it again.
    let low = Memory::restored(Config::default(), backup.items, 1);
    assert_eq!(low.current().await, Ok(3));
}
