//! Routes, versions, and what fails.

use kubestrata_api_types::{ResourceType, Scope, VersionMatch};
use kubestrata_informer::Selection;

use super::*;
use crate::OnMissing;

#[tokio::test(start_paused = true)]
async fn kinds_without_an_informer_start_one_fail_or_go_to_the_server() {
    let (started, server) = cache(&[&["+a/x@1", "end@1"]], Config::default());
    started.start();
    let client = CacheClient::new(started.clone(), server.clone());
    assert!(started.peek(&maps()).is_none());
    assert_eq!(version(&get(&client, "a/x").await.unwrap()), "1");
    assert!(started.peek(&maps()).is_some() && started.peek(&maps().in_namespace("a")).is_some());
    assert_eq!(server.requests().len(), 1, "the second read asks nobody");
    get(&client, "a/x").await.unwrap();
    assert_eq!(server.requests(), ["watch rv=\"\" match=NotOlderThan initial bookmarks"]);

    let (failing, server) = cache(&[], Config { on_missing: OnMissing::Fail, ..Config::default() });
    failing.start();
    let client = CacheClient::new(failing, server);
    let error = get(&client, "a/x").await.unwrap_err();
    assert_eq!(error.to_string(), "configmaps are not cached");

    for config in [
        Config { on_missing: OnMissing::Live, ..Config::default() },
        Config { live: vec![ConfigMap::resource().clone()], ..Config::default() },
    ] {
        let (live, _) = cache(&[], config);
        live.start();
        let server = Scripted::new([object("a/x@7"), object("a/x@8"), object("a/x@7")]);
        let client = CacheClient::new(live, server.clone()).read_your_writes();
        assert_eq!(version(&get(&client, "a/x").await.unwrap()), "7");
        send(&client, "a", update("a/x@7")).await.unwrap();
        assert_eq!(version(&get(&client, "a/x").await.unwrap()), "7");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_can_ask_for_a_version() {
    let (cache, server) =
        cache(&[&["+a/x@1", "end@1", "wait=300", "bookmark@50"]], Config::default());
    cache.start();
    let client = CacheClient::new(cache, server.clone());
    let read = |version: &str| {
        let options = GetOptions { resource_version: version.into() };
        let call = send(&client, "a", Operation::Get { name: "x".into(), options });
        async move { timed(call).await }
    };
    let (took, any) = read("0").await;
    assert!(took == 0 && any.is_ok());
    let (took, newer) = read("40").await;
    assert!(took == 300 && newer.is_ok());
    let (took, never) = read("60").await;
    assert_eq!(took, 10_000);
    assert!(cache_error(&never.unwrap_err()).is_stale());
    // An exact version is not the cache's to give.
    let options = ListOptions {
        resource_version: "40".into(),
        version_match: Some(VersionMatch::Exact),
        ..ListOptions::default()
    };
    let exact = list(&client, "a", options);
    assert!(tokio::time::timeout(Duration::from_secs(1), exact).await.is_err());
    assert!(server.requests().last().unwrap().contains("rv=\"40\" match=Exact"));
}

/// Bug row 51: kinds without namespaces are cached once, whatever namespaces are configured or asked for.
#[tokio::test(start_paused = true)]
async fn k51_cluster_scoped_kinds_have_one_informer() {
    let resource = ResourceType::from_static("g", "v1", "Zone", "zones", Scope::Cluster);
    let json = br#"{"metadata":{"name":"z","resourceVersion":"1"}}"#;
    let shared = Arc::new(resource.clone());
    let zone = Encoded::read(&shared, Format::Json, json, &[]).unwrap();
    let steps = vec![WatchStep::Item(Event::Added(zone)), step("end@1")];
    let server = Scripted::new([Reply::Watch(steps).into()]);
    let factory = InformerFactory::new(Arc::new(server.clone()), Default::default());
    let namespaces = vec!["a".to_owned(), "b".to_owned()];
    let cache = Cache::new(factory, Config { namespaces, ..Config::default() });
    cache.start();
    let client = CacheClient::new(cache, server.clone());
    for namespace in ["", "a"] {
        let collection = Collection::new(resource.clone()).in_namespace(namespace);
        let listed = client.list_encoded(collection.clone(), ListOptions::default()).await.unwrap();
        assert_eq!(listed.items.len(), 1);
        let operation = Operation::Get { name: "z".into(), options: GetOptions::default() };
        let read = client.clone().oneshot(ApiRequest::new(collection, operation)).await.unwrap();
        assert_eq!(read.into_object().unwrap().name(), "z");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn informers_are_kept_until_removed() {
    let (cache, server) = cache(&[&["+a/x@1", "end@1"], &["+a/x@2", "end@2"]], Config::default());
    cache.start();
    let client = CacheClient::new(cache.clone(), server.clone());
    assert_eq!(version(&get(&client, "a/x").await.unwrap()), "1");
    assert_eq!(server.open_streams(), 1);
    assert_eq!(cache.remove(ConfigMap::resource()), 1);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(server.open_streams(), 0);
    assert_eq!(version(&get(&client, "a/x").await.unwrap()), "2");
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_pruned_unless_the_collection_says_otherwise() {
    let (cache, server) = cache(&[&["end@1"], &["end@1"]], Config::default());
    cache.start();
    cache.informer(maps());
    let other: Vec<kubestrata_api_types::FieldPath> = vec!["data".parse().unwrap()];
    cache.informer(Selection::from(maps().in_namespace("b").prune(other)));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let pruned: Vec<String> = server
        .recorded()
        .iter()
        .map(|(_, request)| format!("{:?}", request.collection.prune))
        .collect();
    assert_eq!(pruned, ["[\"metadata.managedFields\"]", "[\"data\"]"]);
}
