use kubestrata_codec::schema;
use serde_json::{Value, json};

use super::merge;

fn try_merged(kind: &str, old: Value, patch: Value) -> Result<Value, (u16, String)> {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    let mut object = old;
    let merged = merge(&mut object, &patch, schema::kind_of(api_version, kind).unwrap());
    merged.map(|()| object).map_err(|failure| {
        let status = failure.status();
        (status.code, status.message)
    })
}

fn merged(kind: &str, old: Value, patch: Value) -> Value {
    try_merged(kind, old, patch).unwrap()
}

/// The pod spec that a patch makes of another.
fn spec(old: Value, patch: Value) -> Value {
    merged("Pod", json!({ "spec": old }), json!({ "spec": patch }))["spec"].take()
}

#[test]
fn one_field_name_has_a_key_for_each_kind() {
    let container = |ports: Value| json!({"containers": [{"name": "c", "ports": ports}]});
    // The key of `patchMergeKey` is the number alone, though a port is told apart by its protocol too.
    let old = container(json!([{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 80}]));
    let got = spec(old, container(json!([{"containerPort": 53, "protocol": "UDP"}])));
    let ports = json!([{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 80}]);
    assert_eq!(got, container(ports));

    let service = |ports: Value| json!({"spec": {"ports": ports}});
    let old = service(json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]));
    let got = merged("Service", old, service(json!([{"port": 81, "targetPort": 8081}])));
    let ports = json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b", "targetPort": 8081}]);
    assert_eq!(got, service(ports));

    let subset = |port: u16| json!({"subsets": [{"ports": [{"port": port}]}]});
    assert_eq!(merged("Endpoints", subset(1), subset(2)), subset(2), "subsets have no key");
}

#[test]
fn addresses_are_merged_in_a_node_and_replaced_in_endpoints() {
    let node = |kind: &str| json!({"status": {"addresses": [{"type": kind, "address": "a"}]}});
    let got = merged("Node", node("Hostname"), node("InternalIP"));
    assert_eq!(got["status"]["addresses"].as_array().unwrap().len(), 2);
    let subset = |ip: &str| json!({"subsets": [{"addresses": [{"ip": ip}]}]});
    assert_eq!(merged("Endpoints", subset("10.0.0.1"), subset("10.0.0.2")), subset("10.0.0.2"));
}

#[test]
fn a_list_without_a_strategy_is_replaced() {
    let tolerations = |key: &str| json!({"tolerations": [{"key": key, "operator": "Exists"}]});
    assert_eq!(spec(tolerations("a"), tolerations("b")), tolerations("b"));
    let command = |word: &str| json!({"containers": [{"name": "c", "command": [word]}]});
    assert_eq!(spec(command("a"), command("b")), command("b"));
}

#[test]
fn plain_values_are_merged_as_a_set() {
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let got =
        merged("ConfigMap", finalizers(json!(["x/a", "x/b"])), finalizers(json!(["x/c", "x/b"])));
    assert_eq!(got, finalizers(json!(["x/c", "x/a", "x/b"])), "what is new comes first");
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a", "x/none"]}});
    assert_eq!(merged("ConfigMap", got, patch), finalizers(json!(["x/c", "x/b"])));
}

#[test]
fn retain_keys_clears_the_other_fields() {
    let old = json!({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]});
    let patch = json!({"volumes": [
        {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/p"}},
    ]});
    let volumes = json!([{"name": "v", "hostPath": {"path": "/p"}}, {"name": "w", "emptyDir": {}}]);
    assert_eq!(spec(old, patch), json!({ "volumes": volumes }));

    let rolling =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let got = merged("Deployment", rolling.clone(), patch);
    assert_eq!(got, json!({"spec": {"strategy": {"type": "Recreate"}}}));

    let uncovered = json!({"spec": {"strategy": {"$retainKeys": [], "type": "Recreate"}}});
    let refused = try_merged("Deployment", rolling, uncovered);
    assert_eq!(refused.unwrap_err(), (400, "invalid patch format of retainKeys".to_owned()));
}

#[test]
fn directives_replace_and_delete() {
    let old = || json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "y"}});
    let patch = json!({"containers": [{"$patch": "delete", "name": "a"}]});
    assert_eq!(spec(old(), patch)["containers"], json!([{"name": "b"}]));
    let patch = json!({"containers": [{"$patch": "replace"}, {"name": "c"}]});
    assert_eq!(spec(old(), patch)["containers"], json!([{"name": "c"}]));
    let patch = json!({"nodeSelector": {"$patch": "replace", "k": "v"}});
    assert_eq!(spec(old(), patch)["nodeSelector"], json!({"k": "v"}));
    let patch = json!({"nodeSelector": {"$patch": "delete"}});
    assert_eq!(spec(old(), patch)["nodeSelector"], json!({}));
    let patch = json!({"nodeSelector": null, "affinity": null});
    assert_eq!(spec(old(), patch), json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    // What is new is taken as it is, but for directives and nulls; keys are not compared.
    let ports =
        json!([{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]);
    let patch = json!({"containers": [{"name": "a", "ports": ports, "env": [{"$patch": "delete", "name": "E"}], "image": null}]});
    assert_eq!(
        spec(old(), patch)["containers"][0],
        json!({"name": "a", "ports": ports, "env": []})
    );
}

#[test]
fn the_order_of_elements_can_be_set() {
    let old = || json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
    let patch = json!({"$setElementOrder/containers": named(&["c", "new", "a"]), "containers": named(&["new"])});
    assert_eq!(spec(old(), patch)["containers"], named(&["b", "c", "new", "a"]));
    let patch = json!({"$setElementOrder/containers": named(&["c", "b", "a"])});
    assert_eq!(spec(old(), patch)["containers"], named(&["c", "b", "a"]));
    let patch = json!({"spec": {"$setElementOrder/containers": named(&["b", "a"]), "containers": named(&["a", "b"])}});
    let (code, message) = try_merged("Pod", json!({ "spec": old() }), patch).unwrap_err();
    assert_eq!(code, 500);
    assert!(
        message.starts_with("The order in patch list:\n[map[name:a] map[name:b]]"),
        "{message}"
    );
    let patch = json!({"metadata": {"$setElementOrder/finalizers": ["x/b", "x/a"]}});
    let old = json!({"metadata": {"finalizers": ["x/a", "x/b"]}});
    assert_eq!(merged("Pod", old, patch)["metadata"]["finalizers"], json!(["x/b", "x/a"]));
}

#[test]
fn what_cannot_be_merged_is_named() {
    let old = || json!({"spec": {"containers": [{"name": "a"}]}, "nonsense": {"a": {}}});
    let refused = |patch: Value| try_merged("Pod", old(), patch).unwrap_err();
    let missing = json!({"spec": {"containers": [{"image": "i", "env": []}]}});
    assert_eq!(
        refused(missing),
        (500, "map: map[env:[] image:i] does not contain declared merge key: name".to_owned())
    );
    let unknown = json!({"spec": {"$patch": "eat", "n": 1}});
    assert_eq!(
        refused(unknown),
        (500, "unknown patch type: eat in map: map[$patch:eat n:1]".to_owned())
    );
    let message = "unable to find api field in struct Pod for the json field \"nonsense\"";
    assert_eq!(refused(json!({"nonsense": {"b": 1}})), (500, message.to_owned()));
    let mixed = json!({"spec": {"containers": [{"name": "a"}, 1]}});
    assert_eq!(refused(mixed), (500, "list element types are not identical".to_owned()));
}
