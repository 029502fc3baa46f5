//! Every operation as HTTP.

use std::time::Duration;

use expect_test::expect;
use kubestrata_api_types::{
    Accept, ApiRequest, Collection, DeleteOptions, FieldValidation, Format, GetOptions,
    ListOptions, Operation, PatchKind, Payload, ResourceType, Scope, ShardField, ShardSelector,
    VersionMatch, WatchOptions, WriteOptions,
};

use super::to_http;
use crate::Config;
use crate::error::TransportError;
use crate::wire::Call;

const NODES: ResourceType = ResourceType::from_static("", "v1", "Node", "nodes", Scope::Cluster);
const FOOS: ResourceType =
    ResourceType::from_static("x.io", "v1beta1", "Foo", "foos", Scope::Namespaced);

fn http(request: &ApiRequest) -> Result<String, TransportError> {
    let config = Config::new("https://host").unwrap();
    let call = Call::new(super::purpose(request), config.timeouts.request);
    let http = to_http(request, &config, true, call)?;
    let header = |name| http.headers().get(name).map_or("-", |value| value.to_str().unwrap());
    Ok(format!(
        "{} {} accept={} content-type={} encoding={}",
        http.method(),
        http.uri(),
        header("accept"),
        header("content-type"),
        header("accept-encoding")
    ))
}

fn foo(operation: Operation) -> ApiRequest {
    ApiRequest::new(
        Collection::new(FOOS).in_namespace("ns").accept(Accept::Only(Format::Json)),
        operation,
    )
}

#[test]
fn operations_become_requests() {
    let write = WriteOptions {
        field_manager: Some("me & you".into()),
        dry_run: true,
        force: true,
        field_validation: Some(FieldValidation::Strict),
    };
    let patch = |kind| Operation::Patch {
        name: "a".into(),
        kind,
        body: "{}".into(),
        options: write.clone(),
    };
    let list = ListOptions {
        labels: "app=web,tier in (a,b)".parse().unwrap(),
        fields: "spec.nodeName=n/1".parse().unwrap(),
        resource_version: "7".into(),
        version_match: Some(VersionMatch::Exact),
        limit: Some(500),
        continue_token: Some("a+b/c=".into()),
        shard: None,
    };
    let watch = WatchOptions {
        resource_version: "0".into(),
        version_match: Some(VersionMatch::NotOlderThan),
        send_initial_events: Some(true),
        allow_bookmarks: true,
        timeout: Some(Duration::from_millis(1500)),
        ..WatchOptions::default()
    };
    let get =
        Operation::Get { name: "a".into(), options: GetOptions { resource_version: "0".into() } };
    let body = Payload::protobuf("k8s");
    let requests = [
        foo(get.clone()),
        ApiRequest::new(Collection::new(NODES).accept(Accept::Only(Format::Json)), get)
            .subresource("status"),
        foo(Operation::List(list.clone())),
        foo(Operation::Watch(watch)),
        foo(Operation::Create { name: None, body: body.clone(), options: WriteOptions::default() }),
        foo(Operation::Create {
            name: Some("a".into()),
            body: Payload::json("{}"),
            options: write.clone(),
        })
        .subresource("eviction"),
        foo(Operation::Update { name: "a".into(), body, options: WriteOptions::default() }),
        foo(patch(PatchKind::Json)),
        foo(patch(PatchKind::Merge)),
        foo(patch(PatchKind::Strategic)),
        foo(patch(PatchKind::Apply)).subresource("status"),
        foo(Operation::Delete { name: "a".into(), options: DeleteOptions::default() }),
        foo(Operation::DeleteCollection {
            list,
            options: DeleteOptions { dry_run: true, ..DeleteOptions::default() },
        }),
    ];
    let lines: Vec<_> = requests.iter().map(|request| http(request).unwrap()).collect();
    expect![[r#"
        GET https://host/apis/x.io/v1beta1/namespaces/ns/foos/a?resourceVersion=0 accept=application/json content-type=- encoding=-
        GET https://host/api/v1/nodes/a/status?resourceVersion=0 accept=application/json content-type=- encoding=-
        GET https://host/apis/x.io/v1beta1/namespaces/ns/foos?labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29&fieldSelector=spec.nodeName%3Dn%2F1&resourceVersion=7&resourceVersionMatch=Exact&limit=500&continue=a%2Bb%2Fc%3D accept=application/json content-type=- encoding=gzip
        GET https://host/apis/x.io/v1beta1/namespaces/ns/foos?watch=true&allowWatchBookmarks=true&resourceVersion=0&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=2 accept=application/json content-type=- encoding=gzip
        POST https://host/apis/x.io/v1beta1/namespaces/ns/foos accept=application/json content-type=application/vnd.kubernetes.protobuf encoding=-
        POST https://host/apis/x.io/v1beta1/namespaces/ns/foos/a/eviction?fieldManager=me%20%26%20you&dryRun=All&fieldValidation=Strict accept=application/json content-type=application/json encoding=-
        PUT https://host/apis/x.io/v1beta1/namespaces/ns/foos/a accept=application/json content-type=application/vnd.kubernetes.protobuf encoding=-
        PATCH https://host/apis/x.io/v1beta1/namespaces/ns/foos/a?fieldManager=me%20%26%20you&dryRun=All&fieldValidation=Strict accept=application/json content-type=application/json-patch+json encoding=-
        PATCH https://host/apis/x.io/v1beta1/namespaces/ns/foos/a?fieldManager=me%20%26%20you&dryRun=All&fieldValidation=Strict accept=application/json content-type=application/merge-patch+json encoding=-
        PATCH https://host/apis/x.io/v1beta1/namespaces/ns/foos/a?fieldManager=me%20%26%20you&dryRun=All&fieldValidation=Strict accept=application/json content-type=application/strategic-merge-patch+json encoding=-
        PATCH https://host/apis/x.io/v1beta1/namespaces/ns/foos/a/status?fieldManager=me%20%26%20you&dryRun=All&fieldValidation=Strict&force=true accept=application/json content-type=application/apply-patch+yaml encoding=-
        DELETE https://host/apis/x.io/v1beta1/namespaces/ns/foos/a accept=application/json content-type=- encoding=-
        DELETE https://host/apis/x.io/v1beta1/namespaces/ns/foos?labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29&fieldSelector=spec.nodeName%3Dn%2F1&resourceVersion=7&resourceVersionMatch=Exact&limit=500&continue=a%2Bb%2Fc%3D accept=application/json content-type=application/json encoding=-"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn what_makes_no_url_is_refused() {
    let get = |name: &str| Operation::Get { name: name.into(), options: GetOptions::default() };
    let create = Operation::Create {
        name: None,
        body: Payload::json("{}"),
        options: WriteOptions::default(),
    };
    let cases = [
        ApiRequest::new(Collection::new(FOOS), get("a")),
        ApiRequest::new(Collection::new(NODES).in_namespace("d"), get("a")),
        ApiRequest::new(Collection::new(NODES), get("../../secrets")),
        ApiRequest::new(Collection::new(NODES), create).subresource("status"),
        foo(get("a")).subresource("../status"),
        ApiRequest::new(Collection::new(FOOS).in_namespace("a/b"), get("a")),
    ];
    let lines: Vec<_> =
        cases.iter().map(|request| http(request).unwrap_err().to_string()).collect();
    expect![[r#"
        the request is not valid: foos.x.io is namespaced, and get needs a namespace
        the request is not valid: nodes is cluster-scoped, and a namespace is given
        the request is not valid: the name "../../secrets" cannot stand in a path
        the request is not valid: a subresource needs the name of an object
        the request is not valid: the subresource ".." cannot stand in a path
        the request is not valid: the namespace "a/b" cannot stand in a path"#]]
    .assert_eq(&lines.join("\n"));
}

/// KEP-5866: shards are asked for in lists and watches, and never in what deletes.
#[test]
fn a_shard_is_asked_for() {
    let shard = ShardSelector::part(ShardField::Uid, 0, 2).ok();
    let list = ListOptions { shard: shard.clone(), ..ListOptions::default() };
    let watch = WatchOptions { shard, ..WatchOptions::default() };
    let delete =
        Operation::DeleteCollection { list: list.clone(), options: DeleteOptions::default() };
    for operation in [Operation::List(list), Operation::Watch(watch)] {
        let text = http(&foo(operation)).unwrap();
        let want = "shardSelector=shardRange%28object.metadata.uid%2C%20%270x0000000000000000%27%2C%20%270x8000000000000000%27%29 ";
        assert!(text.contains(want), "{text}");
    }
    let error = http(&foo(delete)).unwrap_err().to_string();
    assert_eq!(error, "the request is not valid: a shard cannot be deleted");
}

/// Names may hold what URLs may not.
#[test]
fn names_are_escaped() {
    let operation =
        Operation::Get { name: "system:node é?#".into(), options: GetOptions::default() };
    let request = ApiRequest::new(Collection::new(NODES), operation);
    let text = http(&request).unwrap();
    assert!(
        text.starts_with("GET https://host/api/v1/nodes/system%3Anode%20%C3%A9%3F%23 "),
        "{text}"
    );
}
