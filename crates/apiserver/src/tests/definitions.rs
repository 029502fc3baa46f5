use kubestrata_api_types::{ResourceType, Scope};
use serde_json::{Value, json};

use super::harness::{Watch, delete, get, patch, post, put};
use crate::Server;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A widget of `example.com/v1`.
fn widget(name: &str, fields: Value) -> Value {
    let mut widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    for (field, value) in fields.as_object().unwrap() {
        widget[field] = value.clone();
    }
    widget
}

fn definition() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}},
            "selectableFields": [{"jsonPath": ".spec.color"}],
        })
    };
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [version("v1", true), version("v2beta1", false)],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_definition_serves_its_versions_at_once() {
    let server = Server::start_default();
    assert_eq!(get(&server, WIDGETS).await.code, 404);
    let got = post(&server, DEFINITIONS, definition()).await;
    assert_eq!(got.code, 201, "{}", got.text);
    let conditions = &got.json()["status"]["conditions"];
    assert_eq!(
        (&conditions[1]["type"], &conditions[1]["status"]),
        (&json!("Established"), &json!("True"))
    );
    assert_eq!(got.json()["status"]["storedVersions"], json!(["v1"]));

    let body = widget("w", json!({"spec": {"count": 2, "color": "red"}, "status": {"x": 1}}));
    let untyped = post(&server, WIDGETS, json!({"metadata": {"name": "w"}})).await.failure();
    assert!(untyped.0 == 400 && untyped.2.ends_with("Object 'Kind' is missing"), "{untyped:?}");
    let made = post(&server, WIDGETS, body).await.json();
    assert_eq!((&made["apiVersion"], &made["kind"]), (&json!("example.com/v1"), &json!("Widget")));
    assert_eq!((&made["metadata"]["generation"], made["status"].is_null()), (&json!(1), true));
    let beta = "/apis/example.com/v2beta1/namespaces/default/widgets";
    let list = get(&server, &format!("{beta}?fieldSelector=spec.color%3Dred")).await.json();
    assert_eq!(
        (&list["kind"], &list["items"][0]["apiVersion"]),
        (&json!("WidgetList"), &json!("example.com/v2beta1"))
    );
    let scale = get(&server, &format!("{WIDGETS}/w/scale")).await.json();
    assert_eq!(scale["spec"]["replicas"], 2);

    let unversioned = put(&server, &format!("{WIDGETS}/w"), widget("w", json!({}))).await;
    let message = "widgets.example.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(unversioned.failure(), (422, "Invalid".to_owned(), message.to_owned()));
    let path = format!("{WIDGETS}/w");
    assert_eq!(patch(&server, &path, "strategic-merge-patch", json!({})).await.code, 415);

    let group = get(&server, "/apis/example.com").await.json();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let resources = get(&server, "/apis/example.com/v1").await.json();
    let names: Vec<&str> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
}

#[tokio::test(start_paused = true)]
async fn a_schema_prunes_defaults_and_refuses() {
    let server = Server::start_default();
    let mut body = definition();
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "minimum": 0, "default": 1},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "list": {"type": "array", "items": {
                    "type": "object", "properties": {"on": {"type": "boolean", "default": true}}}},
            },
        }},
    });
    assert_eq!(post(&server, DEFINITIONS, body).await.code, 201);
    let spec = json!({"color": "red", "unknown": 1, "free": {"x": {"y": 1}}, "map": {"k": "v"}, "list": [{"z": 1}]});
    let got = post(&server, WIDGETS, widget("w", json!({"spec": spec}))).await.json();
    let want = json!({"color": "red", "count": 1, "free": {"x": {"y": 1}}, "map": {"k": "v"}, "list": [{"on": true}]});
    assert_eq!(got["spec"], want);
    let rows = [
        (json!({}), "spec: Required value"),
        (
            json!({"spec": {"count": -1}}),
            "spec.count: Invalid value: -1: spec.count in body should be greater than or equal to 0",
        ),
        (
            json!({"spec": {"count": "a"}}),
            "spec.count: Invalid value: \"string\": spec.count in body must be of type integer: \"string\"",
        ),
        (
            json!({"spec": {"color": "green"}}),
            "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
        ),
        (
            json!({"spec": {"map": {"k": 1}}}),
            "spec.map.k: Invalid value: \"integer\": spec.map.k in body must be of type string: \"integer\"",
        ),
    ];
    for (fields, problem) in rows {
        let object = widget("x", fields);
        let message = format!("Widget.example.com \"x\" is invalid: {problem}");
        assert_eq!(
            post(&server, WIDGETS, object).await.failure(),
            (422, "Invalid".to_owned(), message)
        );
    }
    let path = format!("{WIDGETS}/w");
    assert_eq!(
        patch(&server, &path, "merge-patch", json!({"spec": {"count": "x"}})).await.code,
        422
    );
    let mut misnamed = definition();
    misnamed["metadata"]["name"] = json!("other.example.com");
    let refused = post(&server, DEFINITIONS, misnamed).await.failure();
    assert!(
        refused.0 == 422 && refused.2.contains("must be spec.names.plural+\".\"+spec.group"),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_objects_along() {
    let server = Server::start_default();
    post(&server, DEFINITIONS, definition()).await;
    post(&server, WIDGETS, widget("a", json!({}))).await;
    let held = widget("held", json!({"metadata": {"name": "held", "finalizers": ["x/y"]}}));
    post(&server, WIDGETS, held).await;
    let mut watch = Watch::open(&server, &format!("{WIDGETS}?watch=1")).await;
    assert_eq!(watch.take(2).await.len(), 2);
    let path = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(delete(&server, &path).await.code, 200);
    assert_eq!(get(&server, WIDGETS).await.names(), ["default/held"]);
    let held = format!("{WIDGETS}/held");
    patch(&server, &held, "merge-patch", json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(get(&server, &path).await.code, 404);
    assert_eq!(get(&server, WIDGETS).await.code, 404);
    while watch.next().await != "EOF" {}
}

#[tokio::test(start_paused = true)]
async fn declared_resources_come_and_go_at_run_time() {
    let server = Server::start_default();
    let things = ResourceType::new("test.io", "v1", "Thing", "things", Scope::Cluster);
    server.declare(things.clone());
    let path = "/apis/test.io/v1/things";
    assert_eq!(
        post(
            &server,
            path,
            json!({"apiVersion": "test.io/v1", "kind": "Thing", "metadata": {"name": "t"}})
        )
        .await
        .code,
        201
    );
    let mut watch = Watch::open(&server, &format!("{path}?watch=1")).await;
    assert!(watch.next().await.starts_with("ADDED t@"));
    assert!(server.undeclare(&things).await);
    while watch.next().await != "EOF" {}
    assert_eq!(get(&server, path).await.code, 404);
    server.declare(things);
    assert_eq!(get(&server, path).await.names().len(), 0);
    let pods = ResourceType::new("", "v1", "Pod", "pods", Scope::Namespaced);
    assert!(!server.undeclare(&pods).await);
}

#[tokio::test(start_paused = true)]
async fn discovery_tells_in_both_forms() {
    use super::harness::{read, send};
    let server = Server::start_default();
    assert_eq!(get(&server, "/api").await.json()["versions"], json!(["v1"]));
    let groups = get(&server, "/apis").await.json();
    let autoscaling =
        groups["groups"].as_array().unwrap().iter().find(|g| g["name"] == "autoscaling").unwrap();
    assert_eq!(autoscaling["preferredVersion"]["groupVersion"], "autoscaling/v2");
    let core = get(&server, "/api/v1").await.json();
    let pods = core["resources"].as_array().unwrap().iter().find(|r| r["name"] == "pods").unwrap();
    assert_eq!((&pods["kind"], &pods["shortNames"]), (&json!("Pod"), &json!(["po"])));
    assert_eq!(get(&server, "/apis/nope/v1").await.code, 404);

    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;q=0.9";
    let ask = async |headers: &[(&str, &str)]| {
        read(send(&server, http::Method::GET, "/apis", headers, "").await).await
    };
    let got = ask(&[("accept", accept)]).await;
    assert_eq!(
        got.headers["content-type"],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let apps = got.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|g| g["metadata"]["name"] == "apps")
        .unwrap()
        .clone();
    let scale = &apps["versions"][0]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["resource"] == "deployments")
        .unwrap()["subresources"][0];
    assert_eq!(
        scale["responseKind"],
        json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
    );
    let tag = got.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(ask(&[("accept", accept), ("if-none-match", &tag)]).await.code, 304);
    assert_eq!(get(&server, "/version").await.json()["minor"], "37");
    assert_eq!(get(&server, "/readyz").await.text, "ok");
    let review = json!({"spec": {"resourceAttributes": {"verb": "list"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(post(&server, path, review).await.json()["status"]["allowed"], true);
}
