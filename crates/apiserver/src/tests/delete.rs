use http::Method;
use serde_json::json;

use super::harness::{MAPS, Watch, delete, get, map, patch, post, read, send};
use crate::Server;

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn a_delete_answers_with_a_status_or_the_object() {
    let server = Server::start_default();
    map(&server, "a").await;
    let uid = get(&server, &format!("{MAPS}/a")).await.json()["metadata"]["uid"].clone();
    let got = delete(&server, &format!("{MAPS}/a")).await;
    let details = json!({"name": "a", "kind": "configmaps", "uid": uid});
    assert_eq!(
        (got.code, &got.json()["status"], &got.json()["details"]),
        (200, &json!("Success"), &details)
    );
    let message = "configmaps \"a\" not found".to_owned();
    assert_eq!(
        delete(&server, &format!("{MAPS}/a")).await.failure(),
        (404, "NotFound".to_owned(), message)
    );
    post(&server, PODS, json!({"metadata": {"name": "p"}, "spec": {}})).await;
    let pod = delete(&server, &format!("{PODS}/p")).await.json();
    assert_eq!(
        (&pod["kind"], &pod["metadata"]["deletionGracePeriodSeconds"]),
        (&json!("Pod"), &json!(0))
    );
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_and_the_last_lets_it_go() {
    let server = Server::start_default();
    let body = json!({"metadata": {"name": "a", "finalizers": ["x/y", "x/z"]}});
    let version = post(&server, MAPS, body).await.version();
    let path = format!("{MAPS}/a");
    let mut watch =
        Watch::open(&server, &format!("{MAPS}?watch=1&resourceVersion={version}")).await;
    let marked = delete(&server, &path).await.json();
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(delete(&server, &path).await.json(), marked, "a second delete changes nothing");
    let more = json!({"metadata": {"finalizers": ["x/y", "x/z", "x/new"]}});
    let got = patch(&server, &path, "merge-patch", more).await.failure();
    assert_eq!(got.0, 422);
    assert!(got.2.contains("no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x/new\"}"), "{}", got.2);
    let again = post(&server, MAPS, json!({"metadata": {"name": "a"}})).await.failure();
    assert_eq!(again.2, "object is being deleted: configmaps \"a\" already exists");
    patch(&server, &path, "merge-patch", json!({"metadata": {"finalizers": ["x/z"]}})).await;
    let last = patch(&server, &path, "merge-patch", json!({"metadata": {"finalizers": []}})).await;
    assert_eq!(last.code, 200);
    assert_eq!(get(&server, &path).await.code, 404);
    assert_eq!(watch.take(3).await, ["MODIFIED a@7", "MODIFIED a@8", "DELETED a@9"]);
}

#[tokio::test(start_paused = true)]
async fn preconditions_and_policies_are_looked_at() {
    let server = Server::start_default();
    map(&server, "a").await;
    let path = format!("{MAPS}/a");
    let with = async |body: serde_json::Value| {
        read(send(&server, Method::DELETE, &path, &[], &body.to_string()).await).await
    };
    let uid = with(json!({"preconditions": {"uid": "other"}})).await.failure();
    assert!(
        uid.0 == 409 && uid.2.contains("the UID in the precondition (other) does not match"),
        "{uid:?}"
    );
    assert_eq!(with(json!({"preconditions": {"resourceVersion": "1"}})).await.code, 409);
    assert_eq!(with(json!({"propagationPolicy": "Sideways"})).await.code, 422);
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    assert_eq!(with(both).await.code, 422);
    let waits = with(json!({"propagationPolicy": "Foreground"})).await.json();
    assert_eq!(waits["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    with(json!({"propagationPolicy": "Background"})).await;
    assert_eq!(get(&server, &path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_has_its_grace() {
    let server = Server::start_default();
    let body = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}});
    post(&server, PODS, body).await;
    let path = format!("{PODS}/p");
    let marked = delete(&server, &path).await.json();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    // A write while the grace runs does not end it.
    patch(&server, &path, "merge-patch", json!({"metadata": {"labels": {"a": "b"}}})).await;
    let longer = delete(&server, &format!("{path}?gracePeriodSeconds=60")).await.json();
    assert_eq!(longer["metadata"]["deletionGracePeriodSeconds"], 30, "only shorter");
    assert_eq!(delete(&server, &format!("{path}?gracePeriodSeconds=0")).await.code, 200);
    assert_eq!(get(&server, &path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let server = Server::start_default();
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
        post(&server, MAPS, json!({"metadata": {"name": name, "labels": {"app": app}}})).await;
    }
    let got = delete(&server, &format!("{MAPS}?labelSelector=app%3Dx")).await;
    assert_eq!(got.names(), ["default/a", "default/c"]);
    assert_eq!(get(&server, MAPS).await.names(), ["default/b"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_content_along() {
    let server = Server::builder().namespace("n").start();
    let maps = "/api/v1/namespaces/n/configmaps";
    post(&server, maps, json!({"metadata": {"name": "a"}})).await;
    post(&server, maps, json!({"metadata": {"name": "held", "finalizers": ["x/y"]}})).await;
    let got = delete(&server, "/api/v1/namespaces/n").await.json();
    assert_eq!(got["status"]["phase"], "Terminating");
    assert_eq!(get(&server, maps).await.names(), ["n/held"]);
    assert_eq!(get(&server, "/api/v1/namespaces/n").await.json()["status"]["phase"], "Terminating");
    let refused = post(&server, maps, json!({"metadata": {"name": "new"}})).await;
    assert_eq!(
        (refused.code, &refused.json()["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    let path = format!("{maps}/held");
    patch(&server, &path, "merge-patch", json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(get(&server, "/api/v1/namespaces/n").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_every_cluster_stay() {
    let server = Server::start_default();
    map(&server, "a").await;
    for name in ["default", "kube-system", "kube-public"] {
        let path = format!("/api/v1/namespaces/{name}");
        let got = delete(&server, &path).await;
        let message =
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        assert_eq!(got.failure(), (403, "Forbidden".to_owned(), message));
        assert_eq!(get(&server, &path).await.json()["status"]["phase"], "Active");
    }
    assert_eq!(get(&server, &format!("{MAPS}/a")).await.code, 200);
    assert_eq!(delete(&server, "/api/v1/namespaces/kube-node-lease").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn pods_are_bound_once_and_evicted() {
    let server = Server::start_default();
    post(&server, PODS, json!({"metadata": {"name": "p"}, "spec": {}})).await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}});
    let path = format!("{PODS}/p/binding");
    assert_eq!(post(&server, &path, binding.clone()).await.code, 201);
    assert_eq!(get(&server, &format!("{PODS}/p")).await.json()["spec"]["nodeName"], "n1");
    assert_eq!(post(&server, &path, binding).await.code, 409);
    let eviction = json!({"metadata": {"name": "p"}});
    assert_eq!(post(&server, &format!("{PODS}/p/eviction"), eviction).await.code, 201);
    let pod = get(&server, &format!("{PODS}/p")).await.json();
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
}
