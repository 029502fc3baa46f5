//! Many objects at once.

use kubestrata_api_types::{
    DeleteOptions, FieldPath, FieldSelector, LabelSelector, ListOptions, Object as _, Operation,
    ResourceVersion, VersionMatch,
};
use libtest_mimic::Trial;

use crate::bed::{Bed, scenarios, status};
use crate::kinds::Sample;

pub(crate) fn trials() -> Vec<Trial> {
    scenarios![
        a_list_is_in_the_order_of_keys,
        selectors_choose,
        pages_show_one_state,
        a_version_chooses_the_state,
        a_version_of_the_future_is_too_large,
        metadata_alone_is_enough,
        a_collection_is_deleted_by_selector,
    ]
    .collect()
}

fn names<K: Sample>(items: &[K]) -> Vec<&str> {
    items.iter().map(|item| item.name()).collect()
}

async fn fill<K: Sample>(bed: &Bed<K>, names: &[&str]) {
    for name in names {
        bed.create(&bed.sample(name, &[])).await.unwrap();
    }
}

async fn a_list_is_in_the_order_of_keys<K: Sample>(bed: Bed<K>) {
    let (items, meta) = bed.list(ListOptions::default()).await.unwrap();
    assert!(items.is_empty());
    assert!(meta.resource_version.as_u64().is_some(), "an empty list has a version too");
    fill(&bed, &["b", "a", "a-b", "a.b", "c"]).await;
    let (items, meta) = bed.list(ListOptions::default()).await.unwrap();
    assert_eq!(names(&items), ["a", "a-b", "a.b", "b", "c"]);
    assert_eq!(meta.continue_token.unwrap_or_default(), "");
    for item in &items {
        assert_eq!(*item, bed.get(item.name()).await.unwrap());
        assert_eq!(meta.resource_version.is_at_least(&item.resource_version()), Some(true));
    }
}

async fn selectors_choose<K: Sample>(bed: Bed<K>) {
    for (name, labels) in [
        ("a", &[("app", "x"), ("tier", "1")][..]),
        ("b", &[("app", "y")]),
        ("c", &[("tier", "2")]),
        ("d", &[]),
    ] {
        bed.create(&bed.sample(name, labels)).await.unwrap();
    }
    for (selector, want) in [
        ("app=x", &["a"][..]),
        ("app!=x", &["b", "c", "d"]),
        ("app in (x,y)", &["a", "b"]),
        ("app notin (x)", &["b", "c", "d"]),
        ("tier", &["a", "c"]),
        ("!tier", &["b", "d"]),
        ("app,tier=1", &["a"]),
        ("app=z", &[]),
    ] {
        let labels: LabelSelector = selector.parse().unwrap();
        let options = ListOptions { labels, ..ListOptions::default() };
        let (items, _) = bed.list(options).await.unwrap();
        assert_eq!(names(&items), want, "{selector}");
    }
    let fields = FieldSelector::equal("metadata.name", "c");
    let (items, _) = bed.list(ListOptions { fields, ..ListOptions::default() }).await.unwrap();
    assert_eq!(names(&items), ["c"]);
    let fields = FieldSelector::equal("spec.nothing", "c");
    let error = bed.list(ListOptions { fields, ..ListOptions::default() }).await.unwrap_err();
    assert_eq!(status(&error).code, 400, "{error:?}");
}

async fn pages_show_one_state<K: Sample>(bed: Bed<K>) {
    let all: Vec<String> = (0..25).map(|index| format!("item-{index:02}")).collect();
    fill(&bed, &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut seen = Vec::new();
    let mut versions = Vec::new();
    let mut remaining = Vec::new();
    let mut options = ListOptions { limit: Some(10), ..ListOptions::default() };
    loop {
        let (items, meta) = bed.list(options.clone()).await.unwrap();
        seen.extend(items.iter().map(|item| item.name().to_owned()));
        versions.push(meta.resource_version.clone());
        remaining.push(meta.remaining_item_count);
        // Neither of these may show in later pages.
        let _ = bed.delete("item-20").await;
        let _ = bed.create(&bed.sample("item-99", &[])).await;
        match meta.continue_token.filter(|token| !token.is_empty()) {
            Some(token) => options.continue_token = Some(token),
            None => break,
        }
    }
    assert_eq!(seen, all);
    assert_eq!(remaining, [Some(15), Some(5), None]);
    versions.dedup();
    assert_eq!(versions.len(), 1, "all pages are of one version: {versions:?}");

    options.continue_token = Some("no token at all".to_owned());
    assert_eq!(status(&bed.list(options).await.unwrap_err()).code, 400);
}

async fn a_version_chooses_the_state<K: Sample>(bed: Bed<K>) {
    let a = bed.create(&bed.sample("a", &[])).await.unwrap();
    let b = bed.create(&bed.sample("b", &[])).await.unwrap();
    bed.delete("a").await.unwrap();
    let at = |version: ResourceVersion, version_match| ListOptions {
        resource_version: version,
        version_match: Some(version_match),
        ..ListOptions::default()
    };
    let (items, meta) = bed.list(at(b.resource_version(), VersionMatch::Exact)).await.unwrap();
    assert_eq!(names(&items), ["a", "b"]);
    assert_eq!(meta.resource_version, b.resource_version());
    let (items, _) = bed.list(at(a.resource_version(), VersionMatch::Exact)).await.unwrap();
    assert_eq!(names(&items), ["a"]);
    let (items, meta) = bed.list(ListOptions::default()).await.unwrap();
    assert_eq!(names(&items), ["b"]);
    let now = meta.resource_version;
    let (items, meta) = bed.list(at(now.clone(), VersionMatch::NotOlderThan)).await.unwrap();
    assert_eq!(names(&items), ["b"]);
    assert_eq!(meta.resource_version.is_at_least(&now), Some(true));
}

async fn a_version_of_the_future_is_too_large<K: Sample>(bed: Bed<K>) {
    let (_, meta) = bed.list(ListOptions::default()).await.unwrap();
    let future = meta.resource_version.as_u64().unwrap() + 1_000_000;
    let options = ListOptions {
        resource_version: ResourceVersion::from(future),
        version_match: Some(VersionMatch::NotOlderThan),
        ..ListOptions::default()
    };
    // The server asks to come again; we want its first answer.
    let bed = bed.without_retries();
    let error = bed.list(options).await.unwrap_err();
    let refused = status(&error);
    assert!(refused.is_too_large_resource_version(), "{refused:?}");
    assert_eq!(refused.code, 504);
}

async fn metadata_alone_is_enough<K: Sample>(bed: Bed<K>) {
    bed.create(&bed.sample("a", &[("app", "x")])).await.unwrap();
    // Managed fields name the fields of the spec.
    let prune = vec![FieldPath::managed_fields()];
    let collection = bed.collection().metadata_only().prune(prune);
    let (items, _) = bed.list_encoded(collection, ListOptions::default()).await.unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!((items[0].name(), items[0].label("app")), ("a", Some("x")));
    let metadata = items[0].metadata().unwrap();
    assert_eq!(metadata.metadata.name.as_deref(), Some("a"));
    assert!(!String::from_utf8_lossy(items[0].bytes()).contains("replicas"), "no spec came");
}

async fn a_collection_is_deleted_by_selector<K: Sample>(bed: Bed<K>) {
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
        bed.create(&bed.sample(name, &[("app", app)])).await.unwrap();
    }
    let list = ListOptions { labels: LabelSelector::equal("app", "x"), ..ListOptions::default() };
    let delete = Operation::DeleteCollection { list, options: DeleteOptions::default() };
    bed.call(delete, None).await.unwrap();
    let (items, _) = bed.list(ListOptions::default()).await.unwrap();
    assert_eq!(names(&items), ["b"]);
}
