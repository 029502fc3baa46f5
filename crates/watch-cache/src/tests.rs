use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, advance};

use crate::{Change, Config, End, From, Next, Ordered, TooOld, WatchCache, WatchConfig, Watcher};

fn put(cache: &WatchCache<String>, key: &str, revision: u64) {
    let previous = cache.get(key);
    cache.apply(Change::put(key.into(), revision, format!("{key}@{revision}"), previous));
}

fn delete(cache: &WatchCache<String>, key: &str, revision: u64) {
    let previous = cache.get(key);
    cache.apply(Change::delete(key.into(), revision, format!("{key}@{revision}"), previous));
}

fn show(next: &Next<String>) -> String {
    match next {
        Next::Initial(item) => format!("={item}"),
        Next::InitialEnd(revision) => format!("end@{revision}"),
        Next::Change(change) if change.deleted => format!("-{}", change.object),
        Next::Change(change) => format!("+{}", change.object),
        Next::Bookmark(revision) => format!("bookmark@{revision}"),
        Next::End(end) => format!("{end:?}"),
    }
}

/// All that is there without waiting.
fn drain(watcher: &mut Watcher<String>) -> String {
    let mut out = Vec::new();
    while let Some(next) = watcher.try_next() {
        out.push(show(&next));
        if matches!(next, Next::End(_)) {
            break;
        }
    }
    out.join(" ")
}

fn watch(cache: &WatchCache<String>, from: From) -> Watcher<String> {
    cache.watch(from, WatchConfig::default()).unwrap()
}

fn cache() -> WatchCache<String> {
    let cache = WatchCache::new(Config::default());
    cache.replace([("b".into(), "b@3".to_owned()), ("a".into(), "a@2".to_owned())], 4);
    cache
}

#[tokio::test]
async fn watches_begin_where_they_are_asked_to() {
    let cache = cache();
    put(&cache, "a", 5);
    let with_end = WatchConfig { initial_end: true, ..WatchConfig::default() };
    let mut state = cache.watch(From::State, with_end).unwrap();
    let mut silent = watch(&cache, From::State);
    let mut now = watch(&cache, From::Now);
    let mut after = watch(&cache, From::After(4));
    let mut future = watch(&cache, From::After(6));
    put(&cache, "c", 6);
    delete(&cache, "b", 7);
    assert_eq!(drain(&mut state), "=a@5 =b@3 end@5 +c@6 -b@7");
    assert_eq!(drain(&mut silent), "=a@5 =b@3 +c@6 -b@7");
    assert_eq!(drain(&mut now), "+c@6 -b@7");
    assert_eq!(drain(&mut after), "+a@5 +c@6 -b@7");
    assert_eq!(drain(&mut future), "-b@7");
    let error = cache.watch(From::After(3), WatchConfig::default()).unwrap_err();
    assert_eq!(error.to_string(), "too old resource version: 3 (4)");
}

#[tokio::test]
async fn a_prefix_narrows_state_and_changes() {
    let cache = WatchCache::<String>::new(Config::default());
    cache.replace([("a/x".into(), "a/x@1".to_owned()), ("a-b/x".into(), "a-b/x@2".to_owned())], 2);
    let config = WatchConfig { prefix: "a/".into(), ..WatchConfig::default() };
    let mut watcher = cache.watch(From::State, config).unwrap();
    put(&cache, "a-b/y", 3);
    put(&cache, "a/y", 4);
    assert_eq!(drain(&mut watcher), "=a/x@1 +a/y@4");
}

#[tokio::test(start_paused = true)]
async fn history_is_bounded_and_its_end_is_exact() {
    let config = Config { history_min: 3, ..Config::default() };
    let cache = WatchCache::<String>::new(config);
    cache.replace([], 10);
    for revision in [11, 13, 15, 17] {
        put(&cache, "a", revision);
    }
    assert_eq!(drain(&mut watch(&cache, From::After(10))), "+a@11 +a@13 +a@15 +a@17");
    advance(Duration::from_secs(76)).await;
    put(&cache, "a", 19);
    // Three are left, of which the oldest is 15: 14 can be resumed from, 13 cannot (k8s#49956).
    assert_eq!(drain(&mut watch(&cache, From::After(14))), "+a@15 +a@17 +a@19");
    let error = cache.watch(From::After(13), WatchConfig::default()).unwrap_err();
    assert_eq!(error, TooOld { requested: 13, oldest: 14 });
    cache.compact(19);
    assert!(cache.watch(From::After(18), WatchConfig::default()).is_err());
    assert_eq!(drain(&mut watch(&cache, From::After(19))), "");

    for bounded in [
        Config { history_max: 2, ..Config::default() },
        Config { history_bytes: 9, ..Config::default() },
    ] {
        let cache = WatchCache::<String>::new(bounded);
        for revision in 11..20 {
            put(&cache, "a", revision);
        }
        assert_eq!(drain(&mut watch(&cache, From::After(17))), "+a@18 +a@19");
        assert!(cache.watch(From::After(16), WatchConfig::default()).is_err());
    }
}

#[tokio::test]
async fn a_slow_watcher_is_closed_and_never_skips() {
    let cache = WatchCache::<String>::new(Config { history_max: 5, ..Config::default() });
    cache.replace([], 1);
    let mut watcher = watch(&cache, From::After(1));
    for revision in 2..=5 {
        put(&cache, "a", revision);
    }
    assert_eq!(drain(&mut watcher), "+a@2 +a@3 +a@4 +a@5");
    for revision in 6..=11 {
        put(&cache, "a", revision);
    }
    assert_eq!(drain(&mut watcher), "Overtaken");
    assert_eq!(watcher.next().await, Next::End(End::Overtaken));
}

#[tokio::test]
async fn a_replaced_state_closes_watchers() {
    let cache = cache();
    let mut watcher = watch(&cache, From::Now);
    cache.replace([], 9);
    assert_eq!(drain(&mut watcher), "Overtaken");
    let mut watcher = watch(&cache, From::Now);
    cache.close();
    assert_eq!(watcher.next().await, Next::End(End::Closed));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let source = Arc::new(AtomicU64::new(4));
    let delivered = source.clone();
    // Relaxed: one thread.
    let cache = WatchCache::<String>::with_progress(Config::default(), move || {
        Some(delivered.load(Ordering::Relaxed))
    });
    cache.replace([], 4);
    let config = WatchConfig {
        bookmarks: true,
        timeout: Duration::from_secs(190),
        ..WatchConfig::default()
    };
    let mut watcher = cache.watch(From::After(4), config.clone()).unwrap();
    watcher.mark_sent(4);
    let start = Instant::now();
    let mut log = Vec::new();
    loop {
        // Another resource changes meanwhile: only the source knows.
        source.fetch_add(2, Ordering::Relaxed);
        let next = watcher.next().await;
        log.push(format!("{}s {}", start.elapsed().as_secs(), show(&next)));
        if matches!(next, Next::End(_)) {
            break;
        }
    }
    let want = [
        "60s bookmark@6",
        "120s bookmark@8",
        "180s bookmark@10",
        "188s bookmark@12",
        "190s Timeout",
    ];
    assert_eq!(log, want);

    let mut quiet = cache.watch(From::Now, config).unwrap();
    quiet.mark_sent(quiet.revision());
    assert_eq!(show(&quiet.next().await), "Timeout", "no bookmark repeats what was sent");
}

#[tokio::test(start_paused = true)]
async fn freshness_waits_for_progress_or_gives_up() {
    let cache = cache();
    assert_eq!(cache.fresh(4, Duration::from_secs(3)).await, Ok(()));
    let start = Instant::now();
    let error = cache.fresh(9, Duration::from_secs(3)).await.unwrap_err();
    assert_eq!(error.to_string(), "Too large resource version: 9, current: 4");
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    let waits = cache.fresh(6, Duration::from_secs(3));
    let (fresh, ()) = tokio::join!(waits, async { cache.progress(6) });
    assert_eq!(fresh, Ok(()));
}

/// State at registration plus changes after it is the state, whenever a watcher starts and however it reads.
#[tokio::test]
async fn state_and_changes_have_no_gap_and_no_duplicate() {
    for seed in 1..30_u64 {
        let cache = WatchCache::<String>::new(Config::default());
        let mut watchers: Vec<(Watcher<String>, BTreeMap<String, String>)> = Vec::new();
        let mut random = seed;
        for revision in 2..400 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = format!("k{:03}", (random >> 33) % 300);
            if random >> 61 == 0 && cache.get(&key).is_some() {
                delete(&cache, &key, revision);
            } else {
                put(&cache, &key, revision);
            }
            if random >> 59 == 7 {
                watchers.push((watch(&cache, From::State), BTreeMap::new()));
            }
            for (watcher, model) in &mut watchers {
                if random.is_multiple_of(3) {
                    follow(watcher, model);
                }
            }
        }
        let state: BTreeMap<String, String> =
            cache.snapshot().items.iter_from("", "").map(|(key, v)| (key.to_string(), v)).collect();
        for (mut watcher, mut model) in watchers {
            follow(&mut watcher, &mut model);
            assert_eq!(model, state, "seed {seed}");
        }
    }
}

fn follow(watcher: &mut Watcher<String>, model: &mut BTreeMap<String, String>) {
    while let Some(next) = watcher.try_next() {
        match next {
            Next::Initial(item) => {
                let key = item.split('@').next().unwrap().to_owned();
                assert_eq!(model.insert(key, item), None, "no duplicate");
            }
            Next::Change(change) if change.deleted => {
                let gone = model.remove(&*change.key);
                assert_eq!(gone, change.previous, "no gap");
            }
            Next::Change(change) => {
                let old = model.insert(change.key.to_string(), change.object.clone());
                assert_eq!(old, change.previous, "no gap");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn ordered_equals_a_b_tree_and_its_clones_do_not_change() {
    let mut map = Ordered::default();
    let mut model = BTreeMap::new();
    let mut clones = Vec::new();
    let mut random = 7_u64;
    for step in 0..6000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key: Arc<str> = format!("{:04}", (random >> 33) % 1500).into();
        if random >> 62 == 0 {
            assert_eq!(map.remove(&key), model.remove(&key));
        } else {
            assert_eq!(map.insert(key.clone(), step), model.insert(key.clone(), step));
        }
        assert_eq!((map.len(), map.get(&key)), (model.len(), model.get(&key)));
        if step % 1000 == 0 {
            clones.push((map.clone(), model.clone()));
        }
    }
    for (map, model) in clones {
        assert!(map.iter_from("", "").eq(model.clone()));
        for (prefix, start) in [("", ""), ("07", ""), ("07", "0750"), ("1", "2"), ("x", "")] {
            let count = map.iter_from(prefix, start).count();
            assert_eq!(map.count_from(prefix, start), count, "{prefix} {start}");
        }
        let from = model.into_iter().filter(|(key, _)| key.starts_with("07") && **key >= *"0750");
        assert!(map.iter_from("07", "0750").eq(from));
    }
}
