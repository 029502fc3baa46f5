use serde_json::json;

use super::harness::{MAPS, Watch, delete, get, map, patch, post, put};
use crate::Server;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

#[tokio::test(start_paused = true)]
async fn create_sets_what_is_the_servers() {
    let server = Server::start_default();
    let body = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "uid": "mine", "generation": 7, "selfLink": "x", "managedFields": []},
        "spec": {"replicas": 3},
        "status": {"replicas": 3},
    });
    let got = post(&server, DEPLOYMENTS, body).await;
    let object = got.json();
    assert_eq!((got.code, object["kind"].as_str()), (201, Some("Deployment")));
    let metadata = &object["metadata"];
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(metadata["creationTimestamp"].as_str().unwrap().len(), 20, "whole seconds");
    assert_eq!((&metadata["generation"], &metadata["namespace"]), (&json!(1), &json!("default")));
    assert_eq!((&object["status"], metadata["selfLink"].is_null()), (&json!({}), true));
    assert_eq!(metadata["resourceVersion"], "6");
    assert_eq!(get(&server, &format!("{DEPLOYMENTS}/d")).await.json(), object);
}

#[tokio::test(start_paused = true)]
async fn create_refuses_in_the_words_of_kubernetes() {
    let server = Server::start_default();
    map(&server, "a").await;
    let rows = [
        (
            MAPS,
            json!({"metadata": {"name": "a"}}),
            409,
            "AlreadyExists",
            "configmaps \"a\" already exists",
        ),
        (
            MAPS,
            json!({"metadata": {"name": "b", "resourceVersion": "5"}}),
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ),
        (
            MAPS,
            json!({"metadata": {}}),
            422,
            "Invalid",
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
        (
            MAPS,
            json!({"metadata": {"name": "b", "namespace": "x"}}),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            MAPS,
            json!({"apiVersion": "v2", "metadata": {"name": "b"}}),
            400,
            "BadRequest",
            "the API version in the data (v2) does not match the expected API version (v1)",
        ),
        (
            "/api/v1/namespaces/nope/configmaps",
            json!({"metadata": {"name": "b"}}),
            404,
            "NotFound",
            "namespaces \"nope\" not found",
        ),
    ];
    for (path, body, code, reason, message) in rows {
        let got = post(&server, path, body).await.failure();
        assert_eq!(got, (code, reason.to_owned(), message.to_owned()));
    }
    let bad = post(&server, MAPS, json!({"metadata": {"name": "A_B"}})).await;
    let status = bad.json();
    assert_eq!((bad.code, &status["details"]["kind"]), (422, &json!("ConfigMap")));
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueInvalid");
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with("ConfigMap \"A_B\" is invalid: metadata.name: Invalid value: \"A_B\": a lowercase RFC 1123 subdomain"));
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_within_their_length() {
    let server = Server::start_default();
    let prefix = "p".repeat(70);
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let body = json!({"metadata": {"generateName": prefix}});
        let name = post(&server, MAPS, body).await.json()["metadata"]["name"].clone();
        let name = name.as_str().unwrap().to_owned();
        assert_eq!((name.len(), name.starts_with(&prefix[..58])), (63, true));
        names.insert(name);
    }
    assert_eq!(names.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn updates_are_based_on_a_version_or_win_last() {
    let server = Server::start_default();
    let version = map(&server, "a").await;
    let path = format!("{MAPS}/a");
    let body = |version: &str, value: &str| json!({"metadata": {"name": "a", "resourceVersion": version}, "data": {"k": value}});
    assert_eq!(put(&server, &path, body(&version.to_string(), "1")).await.code, 200);
    let stale = put(&server, &path, body(&version.to_string(), "2")).await;
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again";
    assert_eq!(stale.failure(), (409, "Conflict".to_owned(), message.to_owned()));
    assert_eq!(stale.json()["details"], json!({"name": "a", "kind": "configmaps"}));
    assert_eq!(put(&server, &path, body("", "3")).await.json()["data"]["k"], "3");

    let other = put(&server, &path, json!({"metadata": {"name": "b"}})).await.failure();
    let message = "the name of the object (b) does not match the name on the URL (a)";
    assert_eq!((other.0, other.2.as_str()), (400, message));
    assert_eq!(
        put(&server, &format!("{MAPS}/zz"), json!({"metadata": {"name": "zz"}})).await.code,
        404
    );

    // A lease is created by an update, and then wants a version.
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    assert_eq!(put(&server, lease, json!({"metadata": {"name": "l"}, "spec": {}})).await.code, 201);
    let got = put(&server, lease, json!({"metadata": {"name": "l"}, "spec": {}})).await.failure();
    let message = "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(got, (422, "Invalid".to_owned(), message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_change_is_no_write() {
    let server = Server::start_default();
    let version = map(&server, "a").await;
    let path = format!("{MAPS}/a");
    let mut watch =
        Watch::open(&server, &format!("{MAPS}?watch=1&resourceVersion={version}")).await;
    let same = put(&server, &path, json!({"metadata": {"name": "a"}})).await;
    assert_eq!((same.code, same.version()), (200, version));
    let same = patch(&server, &path, "merge-patch", json!({"metadata": {"labels": {}}})).await;
    assert_eq!(same.version(), version);
    let changed = put(&server, &path, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    assert_eq!(changed.version(), version + 1);
    assert_eq!(watch.next().await, format!("MODIFIED a@{}", version + 1));
}

#[tokio::test(start_paused = true)]
async fn generation_counts_changes_of_what_is_desired() {
    let server = Server::start_default();
    post(&server, DEPLOYMENTS, json!({"metadata": {"name": "d"}, "spec": {"replicas": 1}})).await;
    let path = format!("{DEPLOYMENTS}/d");
    let generation = async |path: &str, body: serde_json::Value| {
        let got = patch(&server, path, "merge-patch", body).await;
        assert_eq!(got.code, 200, "{}", got.text);
        got.json()["metadata"]["generation"].as_i64().unwrap()
    };
    assert_eq!(generation(&path, json!({"metadata": {"labels": {"a": "b"}}})).await, 1);
    assert_eq!(generation(&path, json!({"spec": {"replicas": 2}})).await, 2);
    let status = format!("{path}/status");
    assert_eq!(generation(&status, json!({"status": {"replicas": 2}})).await, 2);
    // Deployments alone count annotations.
    assert_eq!(generation(&path, json!({"metadata": {"annotations": {"a": "b"}}})).await, 3);
    map(&server, "m").await;
    let got =
        patch(&server, &format!("{MAPS}/m"), "merge-patch", json!({"data": {"k": "v"}})).await;
    assert!(got.json()["metadata"]["generation"].is_null());
}

#[tokio::test(start_paused = true)]
async fn status_has_an_endpoint_of_its_own() {
    let server = Server::start_default();
    post(&server, DEPLOYMENTS, json!({"metadata": {"name": "d"}, "spec": {"replicas": 1}})).await;
    let (main, status) = (format!("{DEPLOYMENTS}/d"), format!("{DEPLOYMENTS}/d/status"));
    let both =
        json!({"metadata": {"name": "d"}, "spec": {"replicas": 5}, "status": {"replicas": 4}});
    let got = put(&server, &main, both.clone()).await.json();
    assert_eq!((&got["spec"]["replicas"], &got["status"]), (&json!(5), &json!({})));
    let both =
        json!({"metadata": {"name": "d"}, "spec": {"replicas": 9}, "status": {"replicas": 4}});
    let got = put(&server, &status, both).await.json();
    assert_eq!((&got["spec"]["replicas"], &got["status"]["replicas"]), (&json!(5), &json!(4)));
    assert_eq!(get(&server, &status).await.json(), got);
    assert_eq!(get(&server, &format!("{MAPS}/x/status")).await.code, 404, "no such subresource");
}

#[tokio::test(start_paused = true)]
async fn patches_by_type() {
    let server = Server::start_default();
    let pods = "/api/v1/namespaces/default/pods";
    let body = json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "a", "image": "a:1", "ports": [{"containerPort": 1}]}, {"name": "b", "image": "b:1"},
    ]}});
    post(&server, pods, body).await;
    let path = format!("{pods}/p");
    let change = json!({"spec": {"containers": [
        {"name": "b", "image": "b:2"}, {"name": "a", "$patch": "delete"}, {"name": "c"},
    ]}});
    let got = patch(&server, &path, "strategic-merge-patch", change).await.json();
    let names = |pod: &serde_json::Value| -> Vec<String> {
        let containers = pod["spec"]["containers"].as_array().unwrap().iter();
        containers
            .map(|c| {
                format!(
                    "{}={}",
                    c["name"].as_str().unwrap(),
                    c["image"].as_str().unwrap_or_default()
                )
            })
            .collect()
    };
    assert_eq!(names(&got), ["b=b:2", "c="]);
    let condition =
        |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    let status = format!("{path}/status");
    patch(&server, &status, "strategic-merge-patch", condition("Ready")).await;
    let got = patch(&server, &status, "strategic-merge-patch", condition("X")).await.json();
    let conditions = got["status"]["conditions"].as_array().unwrap();
    assert_eq!(
        (&conditions[0]["type"], conditions.len()),
        (&json!("X"), 2),
        "what is new comes first"
    );
    let got =
        patch(&server, &path, "merge-patch", json!({"spec": {"containers": [{"name": "z"}]}}))
            .await;
    assert_eq!(names(&got.json()), ["z="]);
    let operations = json!([
        {"op": "test", "path": "/spec/containers/0/name", "value": "z"},
        {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}},
    ]);
    let got = patch(&server, &path, "json-patch", operations).await.json();
    assert_eq!(got["metadata"]["labels"]["l"], "1");

    let failing = json!([{"op": "test", "path": "/metadata/name", "value": "q"}]);
    let got = patch(&server, &path, "json-patch", failing).await;
    let message = "the server rejected our request due to an error in our request".to_owned();
    assert_eq!(got.failure(), (422, "Invalid".to_owned(), message));
    let stale = json!({"metadata": {"resourceVersion": "1"}});
    assert_eq!(patch(&server, &path, "merge-patch", stale).await.code, 409);
    assert_eq!(patch(&server, &format!("{pods}/x"), "merge-patch", json!({})).await.code, 404);
    assert_eq!(patch(&server, &path, "apply-patch", json!({})).await.code, 415);
    let got =
        patch(&server, &path, "merge-patch", json!({"metadata": {"uid": "b"}})).await.failure();
    assert_eq!(
        got.2,
        "Pod \"p\" is invalid: metadata.uid: Invalid value: \"b\": field is immutable"
    );
    assert_eq!(patch(&server, &path, "merge-patch", json!({"spec": 5})).await.failure().0, 422);
    let got = patch(&server, &path, "merge-patch", json!([])).await.failure();
    assert_eq!(
        got.2,
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
    );
    let bad = json!({"metadata": {"labels": {"bad key": "1"}}});
    let message = patch(&server, &path, "merge-patch", bad).await.failure().2;
    assert!(message.starts_with("Pod \"p\" is invalid: metadata.labels: Invalid value: \"bad key\": name part must consist of"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_leaves_no_trace() {
    let server = Server::start_default();
    let version = map(&server, "a").await;
    let got =
        post(&server, &format!("{MAPS}?dryRun=All"), json!({"metadata": {"name": "b"}})).await;
    assert_eq!((got.code, got.json()["metadata"]["uid"].is_string()), (201, true));
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    assert_eq!(put(&server, &format!("{MAPS}/a?dryRun=All"), body).await.json()["data"]["k"], "v");
    assert_eq!(delete(&server, &format!("{MAPS}/a?dryRun=All")).await.code, 200);
    let list = get(&server, MAPS).await;
    assert_eq!((list.names(), list.version()), (vec!["default/a".to_owned()], version));
}

#[tokio::test(start_paused = true)]
async fn bodies_are_bounded_and_typed() {
    use super::harness::{read, send};
    let server = Server::start_default();
    let large = "x".repeat(3 << 20);
    let got = post(&server, MAPS, json!({"metadata": {"name": "a"}, "data": {"k": large}})).await;
    let message = "Request entity too large: limit is 3145728".to_owned();
    assert_eq!(got.failure(), (413, "RequestEntityTooLarge".to_owned(), message));
    let headers = [("content-type", "text/xml")];
    let got = read(send(&server, http::Method::POST, MAPS, &headers, "<a/>").await).await;
    assert_eq!(got.failure().0, 415);
    let headers = [("content-type", "application/yaml")];
    let yaml = "metadata:\n  name: yam\ndata:\n  k: v\n";
    let got = read(send(&server, http::Method::POST, MAPS, &headers, yaml).await).await;
    assert_eq!((got.code, &got.json()["data"]["k"]), (201, &json!("v")));
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_a_view_of_its_object() {
    let server = Server::start_default();
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}});
    post(&server, DEPLOYMENTS, json!({"metadata": {"name": "d"}, "spec": spec})).await;
    let path = format!("{DEPLOYMENTS}/d/scale");
    let scale = get(&server, &path).await.json();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(2)));
    assert_eq!(scale["status"]["selector"], "a=b");
    let mut wanted = scale.clone();
    wanted["spec"]["replicas"] = json!(5);
    assert_eq!(put(&server, &path, wanted.clone()).await.json()["spec"]["replicas"], 5);
    assert_eq!(put(&server, &path, wanted).await.code, 409, "the version is that of the object");
    let got = patch(&server, &path, "merge-patch", json!({"spec": {"replicas": 7}})).await;
    assert_eq!(got.code, 200, "{}", got.text);
    assert_eq!(get(&server, &format!("{DEPLOYMENTS}/d")).await.json()["spec"]["replicas"], 7);
}

#[tokio::test(start_paused = true)]
async fn built_in_objects_fit_their_schema() {
    let server = Server::start_default();
    let wrong = post(&server, MAPS, json!({"metadata": {"name": "a"}, "data": {"k": 1}})).await;
    let (code, reason, message) = wrong.failure();
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
    assert!(message.starts_with("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "));

    let unknown = json!({"metadata": {"name": "a"}, "foo": 1});
    let strict = post(&server, &format!("{MAPS}?fieldValidation=Strict"), unknown.clone()).await;
    let message = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"foo\"";
    assert_eq!(strict.failure(), (400, "BadRequest".to_owned(), message.to_owned()));
    let warned = post(&server, MAPS, unknown).await;
    assert_eq!(warned.headers["warning"], "299 - \"unknown field \\\"foo\\\"\"");
    assert_eq!((warned.code, warned.json()["foo"].is_null()), (201, true), "it is dropped");
}

#[tokio::test(start_paused = true)]
async fn forms_that_mean_the_same_are_no_change() {
    let server = Server::start_default();
    let spec = |cpu: &str| {
        json!({"template": {"spec": {"containers": [
        {"name": "c", "resources": {"limits": {"cpu": cpu}}}]}}})
    };
    let body = json!({"metadata": {"name": "d"}, "spec": spec("1000m")});
    let made = post(&server, DEPLOYMENTS, body).await;
    let limits = &made.json()["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits["cpu"], "1", "quantities are canonical");
    let body = json!({"metadata": {"name": "d"}, "spec": spec("1")});
    let same = put(&server, &format!("{DEPLOYMENTS}/d"), body).await;
    assert_eq!(
        (same.version(), &same.json()["metadata"]["generation"]),
        (made.version(), &json!(1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_secret_takes_text_and_keeps_bytes() {
    let server = Server::start_default();
    let secrets = "/api/v1/namespaces/default/secrets";
    let body = json!({"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"a": "eA==", "c": "ZA=="}});
    let got = post(&server, secrets, body).await.json();
    assert_eq!(
        (&got["data"], got["stringData"].is_null()),
        (&json!({"a": "Yg==", "c": "ZA=="}), true)
    );
    assert_eq!(got["type"], "Opaque");
}

#[tokio::test(start_paused = true)]
async fn a_service_port_targets_itself() {
    let server = Server::start_default();
    let services = "/api/v1/namespaces/default/services";
    let body = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let port = post(&server, services, body).await.json()["spec"]["ports"][0].clone();
    assert_eq!(port, json!({"port": 80, "targetPort": 80, "protocol": "TCP"}));
}

#[tokio::test(start_paused = true)]
async fn what_is_put_must_be_what_the_path_names() {
    let server = Server::start_default();
    map(&server, "m").await;
    let path = format!("{MAPS}/m");
    let put_meta = |path: String, metadata: serde_json::Value| {
        let server = server.clone();
        async move { put(&server, &path, json!({ "metadata": metadata })).await }
    };
    let name = "the name of the object (x) does not match the name on the URL";
    let namespace =
        "the namespace of the provided object does not match the namespace sent on the request";
    // Said before it is looked whether the object is there.
    for (at, wants) in [("m", "(m)"), ("none", "(none)")] {
        let got = put_meta(format!("{MAPS}/{at}"), json!({"name": "x"})).await;
        assert_eq!(got.failure(), (400, "BadRequest".to_owned(), format!("{name} {wants}")));
        let got = put_meta(format!("{MAPS}/{at}"), json!({"name": at, "namespace": "x"})).await;
        assert_eq!(got.failure(), (400, "BadRequest".to_owned(), namespace.to_owned()));
    }
    assert_eq!(put_meta(path.clone(), json!({"name": "m", "namespace": ""})).await.code, 200);
    let nameless = put_meta(path.clone(), json!({})).await.failure();
    assert_eq!((nameless.0, nameless.2.contains("name must be provided")), (400, true));
    let cluster = "/api/v1/namespaces/default".to_owned();
    let got = put_meta(cluster, json!({"name": "default", "namespace": "x"})).await;
    assert_eq!((got.code, &got.json()["metadata"]["namespace"]), (200, &json!(null)));
    let cleared = json!({"metadata": {"namespace": null}});
    let got = patch(&server, &path, "merge-patch", cleared).await;
    assert_eq!((got.code, &got.json()["metadata"]["namespace"]), (200, &json!("default")));
}

#[tokio::test(start_paused = true)]
async fn the_uid_of_a_write_is_a_precondition() {
    let server = Server::start_default();
    map(&server, "m").await;
    let path = format!("{MAPS}/m");
    let uid = get(&server, &path).await.json()["metadata"]["uid"].clone();
    let body = |uid: &serde_json::Value| json!({"metadata": {"name": "m", "uid": uid}});
    assert_eq!(put(&server, &path, body(&uid)).await.code, 200);
    assert_eq!(put(&server, &path, body(&json!(""))).await.json()["metadata"]["uid"], uid);
    let (code, reason, message) = put(&server, &path, body(&json!("other"))).await.failure();
    assert_eq!((code, &*reason), (409, "Conflict"));
    assert!(message.contains("UID in precondition: other, UID in object meta: "), "{message}");
    // An object that is not there has no UID.
    let absent = "/api/v1/namespaces/default/endpoints/m";
    let (code, _, message) = put(&server, absent, body(&json!("other"))).await.failure();
    assert_eq!(code, 409);
    assert!(message.ends_with("UID in object meta: "), "{message}");
    assert_eq!(put(&server, absent, body(&json!(""))).await.code, 201);
}
