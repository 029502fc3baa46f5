use expect_test::expect;
use serde_json::json;

use super::harness::{MAPS, delete, get, map, post, put};
use crate::Server;

#[tokio::test(start_paused = true)]
async fn items_come_in_the_byte_order_of_their_keys() {
    let server = Server::builder().namespace("a").namespace("a-b").start();
    for namespace in ["a", "a-b"] {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        post(&server, &path, json!({"metadata": {"name": "x"}})).await;
    }
    assert_eq!(get(&server, "/api/v1/configmaps").await.names(), ["a-b/x", "a/x"]);
    assert_eq!(get(&server, "/api/v1/namespaces/a/configmaps").await.names(), ["a/x"]);
    let cached = get(&server, "/api/v1/configmaps?resourceVersion=0").await;
    assert_eq!(cached.names(), ["a-b/x", "a/x"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_has_items_and_a_version() {
    let server = Server::start_default();
    let list = get(&server, "/api/v1/secrets").await;
    let want = expect![[r#"
        {"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}
    "#]];
    want.assert_eq(&list.text);
}

/// Five objects, written at known revisions, and one change that makes the first revisions past.
async fn five() -> (Server, u64) {
    let server = Server::start_default();
    for name in ["a", "b", "c", "d"] {
        map(&server, name).await;
    }
    let version = map(&server, "e").await;
    (server, version)
}

#[tokio::test(start_paused = true)]
async fn the_matrix_of_version_match_and_limit() {
    let (server, version) = five().await;
    let path = |query: &str| format!("{MAPS}?{query}");
    delete(&server, &format!("{MAPS}/a")).await;
    let now = version + 1;

    // Query, expected number of items, expected version, whether there is a next page.
    let rows = [
        (String::new(), 4, now, false),
        ("limit=2".to_owned(), 2, now, true),
        ("limit=-1".to_owned(), 4, now, false),
        ("resourceVersion=0".to_owned(), 4, now, false),
        ("resourceVersion=0&limit=2".to_owned(), 4, now, false),
        (format!("resourceVersion={version}"), 4, now, false),
        (format!("resourceVersion={version}&limit=2"), 2, version, true),
        (format!("resourceVersion={version}&limit=9"), 5, version, false),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=2".to_owned(), 4, now, false),
        (format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan"), 4, now, false),
        (
            format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan&limit=2"),
            2,
            now,
            true,
        ),
        (format!("resourceVersion={version}&resourceVersionMatch=Exact"), 5, version, false),
        (format!("resourceVersion={version}&resourceVersionMatch=Exact&limit=2"), 2, version, true),
    ];
    for (query, count, at, more) in rows {
        let got = get(&server, &path(&query)).await;
        assert_eq!(got.names().len(), count, "{query}");
        assert_eq!(got.version(), at, "{query}");
        assert_eq!(got.json()["metadata"]["continue"].is_string(), more, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_options_are_refused_in_the_words_of_kubernetes() {
    let server = Server::start_default();
    let exact = get(&server, &format!("{MAPS}?resourceVersionMatch=Exact")).await;
    let want = expect![[r#"
        {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided","reason":"Invalid","details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided","field":"resourceVersionMatch"}]},"code":422}
    "#]];
    want.assert_eq(&exact.text);

    let rows = [
        (
            "resourceVersion=abc",
            400,
            "BadRequest",
            "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        ),
        ("limit=x", 400, "BadRequest", "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (
            "labelSelector=a%20b",
            400,
            "BadRequest",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("fieldSelector=abc", 400, "BadRequest", "invalid selector: 'abc'; can't understand 'abc'"),
        (
            "fieldSelector=spec.foo%3D1",
            400,
            "BadRequest",
            "\"spec.foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        (
            "resourceVersion=1&resourceVersionMatch=Nope",
            422,
            "Invalid",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Nope\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            422,
            "Invalid",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "sendInitialEvents=false",
            422,
            "Invalid",
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
        (
            "continue=bad!",
            400,
            "BadRequest",
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 3",
        ),
    ];
    for (query, code, reason, message) in rows {
        let got = get(&server, &format!("{MAPS}?{query}")).await.failure();
        assert_eq!(got, (code, reason.to_owned(), message.to_owned()), "{query}");
    }
    let missing = get(&server, "/api/v1/nothings").await;
    let message = "the server could not find the requested resource".to_owned();
    assert_eq!(missing.failure(), (404, "NotFound".to_owned(), message));
    assert_eq!(get(&server, "/apis/apps/v2/deployments").await.failure().0, 404);
    let group = get(&server, "/apis/nope/v1/things").await;
    assert_eq!((group.code, group.text.trim_end()), (404, "404 page not found"));
}

#[tokio::test(start_paused = true)]
async fn a_paged_walk_is_a_snapshot() {
    let (server, version) = five().await;
    let first = get(&server, &format!("{MAPS}?limit=2")).await;
    let metadata = &first.json()["metadata"];
    assert_eq!((first.names().len(), &metadata["remainingItemCount"]), (2, &json!(3)));
    let mut token = metadata["continue"].as_str().unwrap().to_owned();
    map(&server, "bb").await;
    delete(&server, &format!("{MAPS}/d")).await;
    put(&server, &format!("{MAPS}/c"), json!({"metadata": {"name": "c"}, "data": {"k": "v"}}))
        .await;

    let mut names = first.names();
    loop {
        let page = get(&server, &format!("{MAPS}?limit=2&continue={token}")).await;
        assert_eq!(page.version(), version, "every page has the version of the walk");
        assert!(page.json()["items"].as_array().unwrap().iter().all(|item| item["data"].is_null()));
        names.extend(page.names());
        match page.json()["metadata"]["continue"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(names, ["default/a", "default/b", "default/c", "default/d", "default/e"]);
    let both = get(&server, &format!("{MAPS}?resourceVersion=3&continue={token}")).await.failure();
    let message = "specifying resource version is not allowed when using continue";
    assert_eq!((both.0, both.2.as_str()), (400, message));
}

#[tokio::test(start_paused = true)]
async fn a_page_under_a_selector_may_be_empty_and_tells_no_rest() {
    let server = Server::start_default();
    let labelled = json!({"metadata": {"name": "a", "labels": {"app": "x"}}});
    post(&server, MAPS, labelled).await;
    map(&server, "b").await;
    let first = get(&server, &format!("{MAPS}?limit=1&labelSelector=app%3Dx")).await;
    let metadata = first.json()["metadata"].clone();
    assert_eq!(first.names(), ["default/a"]);
    assert!(metadata["remainingItemCount"].is_null());
    let token = metadata["continue"].as_str().unwrap();
    let path = format!("{MAPS}?limit=1&labelSelector=app%3Dx&continue={token}");
    let second = get(&server, &path).await;
    assert_eq!((second.names().len(), second.json()["metadata"]["continue"].is_null()), (0, true));
}

#[tokio::test(start_paused = true)]
async fn what_is_compacted_is_gone_and_a_walk_can_go_on() {
    let (server, version) = five().await;
    let first = get(&server, &format!("{MAPS}?limit=2")).await;
    let token = first.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    map(&server, "f").await;
    server.compact().await;
    let exact = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    let message = "The resourceVersion for the provided list is too old.".to_owned();
    assert_eq!(get(&server, &exact).await.failure(), (410, "Expired".to_owned(), message));

    let expired = get(&server, &format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!((expired.code, &expired.json()["reason"]), (410, &json!("Expired")));
    let token = expired.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let rest = get(&server, &format!("{MAPS}?continue={token}")).await;
    assert_eq!(rest.names(), ["default/c", "default/d", "default/e", "default/f"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_of_the_future_is_waited_for_and_then_refused() {
    let server = Server::start_default();
    for path in [
        format!("{MAPS}?resourceVersion=99"),
        format!("{MAPS}?resourceVersion=99&resourceVersionMatch=Exact"),
        format!("{MAPS}/a?resourceVersion=99"),
    ] {
        let start = tokio::time::Instant::now();
        let got = get(&server, &path).await;
        assert_eq!(start.elapsed().as_millis(), 3000, "{path}");
        assert_eq!(got.headers["retry-after"], "1");
        let status = got.json();
        assert_eq!(status["message"], "Timeout: Too large resource version: 99, current: 5");
        let causes = json!([{
            "reason": "ResourceVersionTooLarge", "message": "Too large resource version"
        }]);
        assert_eq!((got.code, &status["details"]["causes"]), (504, &causes));
    }
}

#[tokio::test(start_paused = true)]
async fn field_selectors_know_the_fields_of_their_kind() {
    let server = Server::start_default();
    let pods = "/api/v1/namespaces/default/pods";
    for (name, node) in [("a", "one"), ("b", "two")] {
        let body = json!({"metadata": {"name": name}, "spec": {"nodeName": node}});
        post(&server, pods, body).await;
    }
    let by = |selector: &str| format!("/api/v1/pods?fieldSelector={selector}");
    assert_eq!(get(&server, &by("spec.nodeName%3Dtwo")).await.names(), ["default/b"]);
    assert_eq!(get(&server, &by("spec.nodeName!%3Dtwo")).await.names(), ["default/a"]);
    let both = "status.phase%3DPending,metadata.name%3Da";
    assert_eq!(get(&server, &by(both)).await.names(), ["default/a"]);
    let unknown = get(&server, &by("spec.foo%3D1")).await.failure();
    assert_eq!((unknown.0, unknown.2.as_str()), (400, "field label not supported: spec.foo"));
}

#[tokio::test(start_paused = true)]
async fn a_large_list_streams_and_equals_its_pages() {
    let server = Server::start_default();
    for index in 0..300 {
        let name = format!("m{index:04}");
        let data = "x".repeat(if index % 50 == 0 { 40_000 } else { 500 });
        post(&server, MAPS, json!({"metadata": {"name": name}, "data": {"k": data}})).await;
    }
    let whole = get(&server, MAPS).await;
    let mut paged = Vec::new();
    let mut token = String::new();
    loop {
        let page = get(&server, &format!("{MAPS}?limit=70&continue={token}")).await.json();
        paged.extend(page["items"].as_array().unwrap().clone());
        match page["metadata"]["continue"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(whole.json()["items"].as_array().unwrap(), &paged);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_and_unacceptable_forms() {
    use super::harness::{read, send};
    let server = Server::start_default();
    post(
        &server,
        MAPS,
        json!({"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"k": "v"}}),
    )
    .await;
    let ask = async |path: &str, accept: &str| {
        read(send(&server, http::Method::GET, path, &[("accept", accept)], "").await).await
    };
    let list = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = ask(MAPS, list).await.json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(list["items"][0]["metadata"]["labels"]["l"], "1");
    assert!(list["items"][0]["data"].is_null());
    let one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let one = ask(&format!("{MAPS}/a"), one).await.json();
    assert_eq!((&one["kind"], &one["data"]), (&json!("PartialObjectMetadata"), &json!(null)));

    let xml = ask(MAPS, "text/xml").await;
    assert_eq!((xml.code, xml.failure().1.as_str()), (406, "NotAcceptable"));
    assert_eq!(xml.json()["details"], json!({}));
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(ask(MAPS, table).await.code, 406);
    let kubectl = format!("{table},application/json");
    assert_eq!(ask(MAPS, &kubectl).await.json()["kind"], "ConfigMapList");
}

#[tokio::test(start_paused = true)]
async fn gates_bring_the_old_ways_back() {
    use super::harness::{Watch, send};
    use crate::{Config, Gates};
    use http_body::Body as _;
    let gates = Gates {
        watch_list: false,
        streaming_collection_encoding_to_json: false,
        ..Gates::default()
    };
    let old = Server::builder().config(Config { gates, ..Config::default() }).start();
    let new = Server::start_default();
    let data = "x".repeat(100_000);
    for server in [&old, &new] {
        for name in ["a", "b"] {
            post(server, MAPS, json!({"metadata": {"name": name}, "data": {"k": data}})).await;
        }
    }
    let list = async |server| send(server, http::Method::GET, MAPS, &[], "").await.into_body();
    assert!(list(&old).await.size_hint().exact().is_some_and(|size| size > 200_000));
    assert_eq!(list(&new).await.size_hint().exact(), None, "nobody knows the size before the end");

    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let refused = get(&old, &format!("{MAPS}?{query}")).await.failure();
    let message = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    assert_eq!((refused.0, refused.2.as_str()), (422, message));
    // A plain watch gives the state all the same, and marks no end.
    let path = format!("{MAPS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=1");
    let events = Watch::open(&old, &path).await.take(3).await;
    assert_eq!(events, ["ADDED a@6", "ADDED b@7", "EOF"]);
}
