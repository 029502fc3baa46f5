//! Changes as they happen.

use std::time::Duration;

use kubestrata_api_types::{
    Event, LabelSelector, ListOptions, ResourceVersion, VersionMatch, WatchOptions,
};
use libtest_mimic::Trial;
use serde_json::json;
use tokio::time::Instant;

use crate::bed::{Bed, scenarios};
use crate::kinds::Sample;

pub(crate) fn trials() -> Vec<Trial> {
    scenarios![
        a_watch_continues_a_list,
        a_streaming_list_ends_with_a_bookmark,
        a_streaming_list_of_nothing_ends_too,
        a_selector_makes_objects_come_and_go,
        a_watch_ends_when_its_time_is_up,
        a_watch_that_sees_nothing_gets_a_bookmark,
        a_watch_from_its_own_write_does_not_repeat_it,
    ]
    .collect()
}

/// The options of a streaming list.
pub(crate) fn streaming() -> WatchOptions {
    WatchOptions {
        send_initial_events: Some(true),
        version_match: Some(VersionMatch::NotOlderThan),
        allow_bookmarks: true,
        ..WatchOptions::default()
    }
}

fn after(version: ResourceVersion) -> WatchOptions {
    WatchOptions { resource_version: version, ..WatchOptions::default() }
}

async fn a_watch_continues_a_list<K: Sample>(bed: Bed<K>) {
    bed.create(&bed.sample("old", &[])).await.unwrap();
    let (_, meta) = bed.list(ListOptions::default()).await.unwrap();
    // This happens between list and watch, and must not be lost.
    bed.create(&bed.sample("between", &[])).await.unwrap();
    let mut watch = bed.watch(after(meta.resource_version)).await.unwrap();
    assert_eq!(watch.text().await, "+between");

    let mut object = bed.create(&bed.sample("new", &[])).await.unwrap();
    let Event::Added(added) = watch.event().await else { panic!("an addition") };
    assert_eq!(added, object, "the event holds the object as it was written");
    object.set_replicas(2);
    let updated = bed.update(&object).await.unwrap();
    let Event::Modified(modified) = watch.event().await else { panic!("a change") };
    assert_eq!(modified, updated);
    bed.delete("old").await.unwrap();
    bed.delete("new").await.unwrap();
    assert_eq!(watch.text().await, "-old");
    let Event::Deleted(deleted) = watch.event().await else { panic!("a deletion") };
    assert_eq!(deleted.uid(), updated.uid());
    assert_eq!(deleted.replicas(), 2, "the last state");
    let newer = deleted.resource_version().compare(&updated.resource_version());
    assert_eq!(newer, Ok(std::cmp::Ordering::Greater), "with the version of the deletion");
}

async fn a_streaming_list_ends_with_a_bookmark<K: Sample>(bed: Bed<K>) {
    for name in ["a", "b", "c"] {
        bed.create(&bed.sample(name, &[])).await.unwrap();
    }
    bed.delete("b").await.unwrap();
    let (_, meta) = bed.list(ListOptions::default()).await.unwrap();
    let mut watch = bed.watch(streaming()).await.unwrap();
    let mut initial = [watch.text().await, watch.text().await];
    initial.sort();
    assert_eq!(initial, ["+a", "+c"]);
    let Event::Bookmark(end) = watch.event().await else { panic!("a bookmark") };
    assert!(end.initial_events_end);
    assert_eq!(end.resource_version.is_at_least(&meta.resource_version), Some(true));
    bed.create(&bed.sample("d", &[])).await.unwrap();
    assert_eq!(watch.text().await, "+d");
}

async fn a_streaming_list_of_nothing_ends_too<K: Sample>(bed: Bed<K>) {
    let mut watch = bed.watch(streaming()).await.unwrap();
    assert_eq!(watch.text().await, "=end");
}

async fn a_selector_makes_objects_come_and_go<K: Sample>(bed: Bed<K>) {
    bed.create(&bed.sample("one", &[("app", "no")])).await.unwrap();
    let labels = LabelSelector::equal("app", "yes");
    let mut watch = bed.watch(WatchOptions { labels, ..streaming() }).await.unwrap();
    assert_eq!(watch.text().await, "=end");
    for (app, want) in [("yes", "+one"), ("no", "-one"), ("yes", "+one")] {
        let patch = json!({"metadata": {"labels": {"app": app}}});
        bed.patch("one", kubestrata_api_types::PatchKind::Merge, patch, None).await.unwrap();
        assert_eq!(watch.text().await, want);
    }
    let patch = json!({"spec": {"replicas": 4}});
    bed.patch("one", kubestrata_api_types::PatchKind::Merge, patch, None).await.unwrap();
    assert_eq!(watch.text().await, "~one");
    bed.delete("one").await.unwrap();
    assert_eq!(watch.text().await, "-one");
}

async fn a_watch_ends_when_its_time_is_up<K: Sample>(bed: Bed<K>) {
    let (_, meta) = bed.list(ListOptions::default()).await.unwrap();
    let timeout = Some(Duration::from_secs(1));
    let options = WatchOptions { timeout, ..after(meta.resource_version) };
    let mut watch = bed.watch(options).await.unwrap();
    assert!(watch.raw().await.is_none(), "a clean end, without an error");
}

async fn a_watch_that_sees_nothing_gets_a_bookmark<K: Sample>(bed: Bed<K>) {
    // What is written in the first second is known when the bookmark is made, two before the end. A busy machine may write
    // later; then that says nothing, and another try does.
    for name in ["one", "two", "three", "four", "five", "six"] {
        let (_, meta) = bed.list(ListOptions::default()).await.unwrap();
        // A watch that is about to end gets one, so that the next watch starts late.
        let options = WatchOptions {
            labels: LabelSelector::equal("app", "nothing-has-this"),
            allow_bookmarks: true,
            timeout: Some(Duration::from_secs(5)),
            ..after(meta.resource_version)
        };
        let start = Instant::now();
        let mut watch = bed.watch(options).await.unwrap();
        let object = bed.create(&bed.sample(name, &[])).await.unwrap();
        let in_time = start.elapsed() < Duration::from_secs(1);
        let mut last = None;
        while let Some(event) = watch.raw().await {
            match event.unwrap() {
                Event::Bookmark(bookmark) => {
                    assert!(!bookmark.initial_events_end);
                    last = Some(bookmark.resource_version);
                }
                other => panic!("nothing is selected, but {other:?} came"),
            }
        }
        let last = last.expect("a bookmark before the end");
        if in_time {
            assert_eq!(last.is_at_least(&object.resource_version()), Some(true));
            return;
        }
    }
    panic!("every watch and write took more than a second");
}

async fn a_watch_from_its_own_write_does_not_repeat_it<K: Sample>(bed: Bed<K>) {
    let object = bed.create(&bed.sample("one", &[])).await.unwrap();
    let mut watch = bed.watch(after(object.resource_version())).await.unwrap();
    bed.create(&bed.sample("two", &[])).await.unwrap();
    assert_eq!(watch.text().await, "+two");
}
