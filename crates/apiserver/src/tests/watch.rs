use serde_json::json;
use tokio::time::Instant;

use super::harness::{MAPS, Watch, delete, get, map, patch, post, put};
use crate::Server;

fn watching(query: &str) -> String {
    format!("{MAPS}?watch=1&{query}")
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_gives_every_change_after_it() {
    let server = Server::start_default();
    let version = map(&server, "a").await;
    map(&server, "b").await;
    let mut watch = Watch::open(&server, &watching(&format!("resourceVersion={version}"))).await;
    delete(&server, &format!("{MAPS}/a")).await;
    assert_eq!(watch.take(2).await, ["ADDED b@7", "DELETED a@8"]);
    map(&server, "c").await;
    assert_eq!(watch.next().await, "ADDED c@9");
}

#[tokio::test(start_paused = true)]
async fn sequences_of_initial_events_by_version_and_options() {
    let server = Server::start_default();
    map(&server, "b").await;
    map(&server, "a").await;
    let ask = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    // Query; what comes before anything changes; the state is a@7 b@6.
    let rows = [
        (ask.to_owned() + "&allowWatchBookmarks=1", "ADDED a@7, ADDED b@6, BOOKMARK @7 end=true"),
        (
            ask.to_owned() + "&allowWatchBookmarks=1&resourceVersion=0",
            "ADDED a@7, ADDED b@6, BOOKMARK @7 end=true",
        ),
        (
            ask.to_owned() + "&allowWatchBookmarks=1&resourceVersion=6",
            "ADDED a@7, ADDED b@6, BOOKMARK @7 end=true",
        ),
        (ask.to_owned(), "ADDED a@7, ADDED b@6"),
        // A plain watch from now is a streaming list.
        (String::new(), "ADDED a@7, ADDED b@6"),
        ("allowWatchBookmarks=1".to_owned(), "ADDED a@7, ADDED b@6, BOOKMARK @7 end=true"),
        (
            "resourceVersion=0&allowWatchBookmarks=1".to_owned(),
            "ADDED a@7, ADDED b@6, BOOKMARK @7 end=true",
        ),
        ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan".to_owned(), ""),
        (
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0"
                .to_owned(),
            "",
        ),
        ("resourceVersion=6".to_owned(), "ADDED a@7"),
        ("resourceVersion=7&allowWatchBookmarks=1".to_owned(), ""),
    ];
    let mut watches = Vec::new();
    for (query, want) in rows {
        let mut watch = Watch::open(&server, &watching(&query)).await;
        let count = want.split(", ").filter(|event| !event.is_empty()).count();
        assert_eq!(watch.take(count).await.join(", "), want, "{query}");
        if count == 0 {
            // The watch begins when its body is first read.
            let waits = tokio::time::timeout(std::time::Duration::ZERO, watch.next()).await;
            assert!(waits.is_err(), "{query}");
        }
        watches.push((query, watch));
    }
    map(&server, "c").await;
    for (query, mut watch) in watches {
        assert_eq!(watch.next().await, "ADDED c@8", "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn selectors_see_objects_come_and_go() {
    let server = Server::start_default();
    let query = "resourceVersion=5&labelSelector=app%3Dx";
    let mut watch = Watch::open(&server, &watching(query)).await;
    let label = |value: &str| json!({"metadata": {"labels": {"app": value}}});
    let path = format!("{MAPS}/a");
    map(&server, "a").await;
    patch(&server, &path, "merge-patch", label("x")).await;
    patch(&server, &path, "merge-patch", json!({"data": {"k": "v"}})).await;
    patch(&server, &path, "merge-patch", label("y")).await;
    patch(&server, &path, "merge-patch", label("x")).await;
    delete(&server, &path).await;
    assert_eq!(watch.take(2).await, ["ADDED a@7", "MODIFIED a@8"]);
    let gone = watch.event().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"]["app"], "x", "the state that was seen last");
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], "9", "the version of the change");
    assert_eq!(gone["object"]["kind"], "ConfigMap");
    assert_eq!(watch.take(2).await, ["ADDED a@10", "DELETED a@11"]);
}

#[tokio::test(start_paused = true)]
async fn one_object_and_one_namespace() {
    let server = Server::builder().namespace("other").start();
    let mut one =
        Watch::open(&server, &watching("resourceVersion=6&fieldSelector=metadata.name%3Da")).await;
    let mut path = Watch::open(&server, "/api/v1/watch/namespaces/default/configmaps/a").await;
    map(&server, "b").await;
    post(&server, "/api/v1/namespaces/other/configmaps", json!({"metadata": {"name": "a"}})).await;
    map(&server, "a").await;
    assert_eq!(one.next().await, "ADDED a@9");
    assert_eq!(path.next().await, "ADDED a@9");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_an_error_event() {
    let server = Server::start_default();
    map(&server, "a").await;
    map(&server, "b").await;
    server.compact().await;
    let mut watch = Watch::open(&server, &watching("resourceVersion=6")).await;
    assert_eq!(watch.take(2).await, ["ERROR 410 too old resource version: 6 (7)", "EOF"]);
    let mut watch = Watch::open(&server, &watching("resourceVersion=7&timeoutSeconds=1")).await;
    assert_eq!(watch.next().await, "EOF");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_of_the_future_is_an_error_event_after_three_seconds() {
    let server = Server::start_default();
    let start = Instant::now();
    let query = "resourceVersion=99&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = Watch::open(&server, &watching(query)).await;
    let want = "ERROR 504 Timeout: Too large resource version: 99, current: 5";
    assert_eq!(watch.take(2).await, [want, "EOF"]);
    assert_eq!(start.elapsed().as_millis(), 3000);

    // Without initial events it is silent until the version is passed.
    let mut watch = Watch::open(&server, &watching("resourceVersion=7")).await;
    for name in ["a", "b", "c"] {
        map(&server, name).await;
    }
    assert_eq!(watch.next().await, "ADDED c@8");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_and_the_end() {
    let server = Server::start_default();
    map(&server, "a").await;
    let start = Instant::now();
    let query = "resourceVersion=6&allowWatchBookmarks=1&timeoutSeconds=70";
    let mut watch = Watch::open(&server, &watching(query)).await;
    // Another resource changes: the version of this one advances all the same.
    post(&server, "/api/v1/namespaces/default/secrets", json!({"metadata": {"name": "s"}})).await;
    assert_eq!(watch.next().await, "BOOKMARK @7");
    assert_eq!(start.elapsed().as_secs(), 60);
    map(&server, "b").await;
    assert_eq!(watch.next().await, "ADDED b@8");
    post(&server, "/api/v1/namespaces/default/secrets", json!({"metadata": {"name": "t"}})).await;
    assert_eq!(watch.next().await, "BOOKMARK @9");
    assert_eq!(start.elapsed().as_secs(), 68);
    assert_eq!(watch.next().await, "EOF");
    assert_eq!(start.elapsed().as_secs(), 70);

    let mut watch = Watch::open(&server, &watching("timeoutSeconds=-1")).await;
    assert_eq!(watch.take(2).await, ["ERROR 500 context deadline exceeded", "EOF"]);
}

#[tokio::test(start_paused = true)]
async fn invalid_watches_are_refused_before_they_begin() {
    let server = Server::start_default();
    let rows = [
        (
            "sendInitialEvents=true",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "resourceVersion=5&resourceVersionMatch=NotOlderThan",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            "resourceVersion=abc",
            500,
            "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        ),
    ];
    for (query, code, message) in rows {
        let got = get(&server, &watching(query)).await.failure();
        assert_eq!((got.0, got.2.as_str()), (code, message), "{query}");
    }
    // The path prefix is validated as a list is.
    let path = "/api/v1/watch/namespaces/default/configmaps?sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let got = get(&server, path).await;
    assert_eq!((got.code, got.json()["details"]["causes"].as_array().unwrap().len()), (422, 2));
}

#[tokio::test(start_paused = true)]
async fn the_prefix_gives_state_and_no_end_mark() {
    let server = Server::start_default();
    map(&server, "a").await;
    let path = "/api/v1/watch/namespaces/default/configmaps?allowWatchBookmarks=1&timeoutSeconds=1";
    let mut watch = Watch::open(&server, path).await;
    assert_eq!(watch.take(2).await, ["ADDED a@6", "EOF"]);
}

/// A list and a watch from its version, at any time, give the state: through writes of every kind.
#[tokio::test(start_paused = true)]
async fn list_and_watch_agree_with_the_state() {
    let server = Server::start_default();
    let mut followers = Vec::new();
    let mut random = 1_u64;
    for _ in 0..200 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let name = format!("m{}", (random >> 33) % 12);
        let path = format!("{MAPS}/{name}");
        match random >> 61 {
            0 | 1 => {
                delete(&server, &path).await;
            }
            2..=4 => {
                let body = json!({"metadata": {"name": name}, "data": {"r": random.to_string()}});
                put(&server, &path, body).await;
            }
            _ => {
                post(&server, MAPS, json!({"metadata": {"name": name}})).await;
            }
        }
        if random >> 60 == 3 {
            let list = get(&server, MAPS).await;
            let state: std::collections::BTreeMap<String, serde_json::Value> = list.json()["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item.clone()))
                .collect();
            let query = format!("resourceVersion={}&timeoutSeconds=5", list.version());
            followers.push((state, Watch::open(&server, &watching(&query)).await));
        }
    }
    assert!(followers.len() > 3);
    let want = get(&server, MAPS).await.json()["items"].as_array().unwrap().clone();
    for (mut state, mut watch) in followers {
        let mut last = 0;
        while let Some(mut event) = watch.event().await {
            let object = event["object"].as_object_mut().unwrap();
            object.remove("kind");
            object.remove("apiVersion");
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            let version = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            assert!(version > last, "live events increase");
            last = version;
            let (kind, object) = (event["type"].clone(), event["object"].clone());
            let before =
                if kind == "DELETED" { state.remove(&name) } else { state.insert(name, object) };
            assert_eq!(before.is_some(), kind != "ADDED");
        }
        assert_eq!(state.into_values().collect::<Vec<_>>(), want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_be_asked_to_last_for_ever() {
    let server = Server::start_default();
    let query = format!("resourceVersion=5&timeoutSeconds={}&allowWatchBookmarks=true", i64::MAX);
    let mut watch = Watch::open(&server, &watching(&query)).await;
    let version = map(&server, "a").await;
    assert_eq!(watch.next().await, format!("ADDED a@{version}"));
    let version = map(&server, "b").await;
    assert_eq!(watch.next().await, format!("ADDED b@{version}"), "it is still open");
}
