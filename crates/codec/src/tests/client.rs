//! The typed methods and the decode layer over a service that answers from a script.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kubestrata_api_types::{
    Accept, Answer, ApiRequest, ApiResponse, BoxError, Collection, DeleteOptions, Event, FieldPath,
    Format, ListMeta, ListOptions, ListPart, Object, ObjectKey, Operation, PatchKind,
    Preconditions, Propagation, ResourceType, ResourceVersion, Scope, Status, WatchOptions,
};
use serde_json::{Value, json};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::{POD, pods};
use crate::{
    Client, ClientError, DecodeLayer, Decoded, Deletion, Dynamic, Encoded, EncodedService, Item,
    Negotiation, Tracked, accept_header, decode_object, delete_options_body, format_of, schema,
};

pub(super) type Log = Arc<Mutex<Vec<ApiRequest>>>;

/// A service that notes each request and answers with what `answer` makes of it.
pub(super) fn service(
    answer: impl Fn(&ApiRequest) -> Result<Answer<Encoded>, BoxError> + Clone + Send + Sync + 'static,
) -> (impl EncodedService, Log) {
    let log = Log::default();
    let noted = Arc::clone(&log);
    let service = service_fn(move |request: ApiRequest| {
        let answer = answer(&request).map(ApiResponse::new);
        noted.lock().unwrap().push(request);
        async move { answer }
    });
    (service, log)
}

fn pod(text: &str) -> Encoded {
    Encoded::read(&pods(), Format::Json, text.as_bytes(), &[]).unwrap()
}

fn body(request: &ApiRequest) -> Value {
    let payload = match &request.operation {
        Operation::Create { body, .. } | Operation::Update { body, .. } => body,
        Operation::Patch { body, .. } => return serde_json::from_slice(body).unwrap(),
        other => panic!("{other:?} has no body"),
    };
    match decode_object(&request.collection, payload.format, &payload.bytes).unwrap() {
        Answer::Object(object) => object.decode().unwrap(),
        other => panic!("{other:?} is no object"),
    }
}

fn body_of(object: &Dynamic) -> kubestrata_api_types::Payload {
    crate::client::body_of(object, &object.resource).unwrap()
}

#[tokio::test]
async fn get_tells_not_found_from_failure() {
    let (client, log) = service(|request| match request.name() {
        Some("a") => Ok(Answer::Object(pod(POD))),
        Some("none") => Err(Box::new(Status::failure(404, "NotFound", "no"))),
        _ => Err("connection refused".into()),
    });
    let found = client.get::<Pod>(&ObjectKey::namespaced("b", "a")).await.unwrap();
    assert_eq!(found.name(), "a");
    assert_eq!(log.lock().unwrap()[0].collection.namespace.as_deref(), Some("b"));
    let none = ObjectKey::namespaced("b", "none");
    assert!(client.get::<Pod>(&none).await.unwrap_err().is_not_found());
    assert_eq!(client.get_opt::<Pod>(&none).await.unwrap(), None);
    let error = client.get_opt::<Pod>(&ObjectKey::cluster("x")).await.unwrap_err();
    assert!(matches!(error, ClientError::Service(_)) && !error.is_not_found());
}

#[tokio::test]
async fn list_follows_pages_and_names_what_does_not_decode() {
    let bad = POD
        .replace("\"nodeName\":\"n\"", "\"nodeName\":1")
        .replace("\"name\":\"a\"", "\"name\":\"bad\"");
    let (client, log) = service(move |request| {
        let Operation::List(options) = &request.operation else { panic!("no list") };
        let token = options.continue_token.is_none().then(|| "t".to_owned());
        let parts = vec![
            Ok(ListPart::Meta(ListMeta { continue_token: token, ..ListMeta::default() })),
            Ok(ListPart::Item(pod(POD))),
            Ok(ListPart::Item(pod(&bad))),
        ];
        Ok(Answer::List(Box::pin(futures_util::stream::iter(parts))))
    });
    let options = ListOptions {
        limit: Some(2),
        resource_version: ResourceVersion::ANY,
        ..ListOptions::default()
    };
    let list = client.list::<Pod>(None, options).await.unwrap();
    assert_eq!((list.items.len(), list.undecodable.len()), (2, 2));
    assert_eq!(list.undecodable[0].key.name(), "bad");
    let log = log.lock().unwrap();
    let Operation::List(second) = &log[1].operation else { panic!("no list") };
    assert_eq!(second.continue_token.as_deref(), Some("t"));
    assert!(second.resource_version.is_unset(), "a token carries the version");
    assert_eq!(log.len(), 2);
}

#[tokio::test]
async fn a_list_that_breaks_off_is_an_error() {
    let (client, _) = service(|_| {
        let parts = vec![Ok(ListPart::Item(pod(POD))), Err(BoxError::from("reset"))];
        Ok(Answer::List(Box::pin(futures_util::stream::iter(parts))))
    });
    assert!(client.list::<Pod>(None, ListOptions::default()).await.is_err());
}

#[tokio::test]
async fn writes_go_where_they_belong() {
    let (client, log) = service(|_| Ok(Answer::Object(pod(POD))));
    let object = Tracked::<Pod>::decode(&pod(POD)).unwrap();
    client.create(&*object).await.unwrap();
    client.update(&object).await.unwrap();
    client.update_status(&object).await.unwrap();
    let patch = json!({"metadata": {"labels": {"x": null}}});
    client.patch::<Pod>(&object.key(), PatchKind::Merge, &patch).await.unwrap();
    client.patch_status::<Pod>(&object.key(), PatchKind::Merge, &patch).await.unwrap();
    client.apply(&*object, "me", true).await.unwrap();
    let dynamic =
        Dynamic { resource: pods(), value: json!({"metadata": {"name": "a", "namespace": "b"}}) };
    client.update(&Tracked::new(dynamic)).await.unwrap();
    let log = log.lock().unwrap();
    let seen: Vec<String> = log
        .iter()
        .map(|request| {
            let subresource = request.subresource.as_deref().unwrap_or_default();
            let key = request.key().map_or_else(String::new, |key| key.to_string());
            format!("{} {key} {subresource}", request.verb())
        })
        .collect();
    assert_eq!(
        seen,
        [
            "create  ",
            "update b/a ",
            "update b/a status",
            "patch b/a ",
            "patch b/a status",
            "patch b/a ",
            "update b/a "
        ]
    );
    assert_eq!(body(&log[3]), patch);
    assert_eq!(body(&log[5])["kind"], "Pod");
    let Operation::Patch { kind, options, .. } = &log[5].operation else { panic!("no patch") };
    assert_eq!(
        (kind, options.field_manager.as_deref(), options.force),
        (&PatchKind::Apply, Some("me"), true)
    );
    // A dynamic object need not repeat what its resource type says.
    assert_eq!(body(&log[6])["kind"], "Pod");
    assert_eq!(body(&log[6])["metadata"], json!({"name": "a", "namespace": "b"}));
    let unknown = json!({"metadata": {"name": "a"}, "spec": {"ofTheFuture": 1}});
    let unknown = Dynamic { resource: pods(), value: unknown };
    let payload = body_of(&unknown);
    assert_eq!(payload.format, Format::Json, "a field that the schema lacks is not lost");
}

#[tokio::test]
async fn a_delete_is_done_or_pending() {
    let (client, _) = service(|request| match request.name() {
        Some("a") => Ok(Answer::Object(pod(POD))),
        _ => Ok(Answer::Status(Box::new(Status {
            status: "Success".to_owned(),
            ..Status::default()
        }))),
    });
    let delete = |name| {
        let client = client.clone();
        async move {
            client.delete::<Pod>(&ObjectKey::namespaced("b", name), DeleteOptions::default()).await
        }
    };
    assert!(matches!(delete("a").await.unwrap(), Deletion::Pending(pod) if pod.name() == "a"));
    assert!(matches!(delete("b").await.unwrap(), Deletion::Gone(status) if status.is_success()));
}

#[tokio::test]
async fn the_decode_layer_passes_on_what_does_not_decode() {
    let bad = POD.replace("\"nodeName\":\"n\"", "\"nodeName\":1");
    let (client, _) = service(move |_| {
        let events = vec![Ok(Event::Added(pod(POD))), Ok(Event::Deleted(pod(&bad)))];
        Ok(Answer::Watch(Box::pin(futures_util::stream::iter(events))))
    });
    let decoding = DecodeLayer::<Pod>::new().layer(client);
    let request = Operation::Watch(WatchOptions::default());
    let response =
        decoding.oneshot(ApiRequest::new(Collection::new(pods()), request)).await.ok().unwrap();
    let mut events = response.into_watch().unwrap();
    let Some(Ok(Event::Added(whole))) = events.next().await else { panic!("no event") };
    assert_eq!(whole.get().unwrap().spec.as_ref().unwrap().node_name.as_deref(), Some("n"));
    let Some(Ok(Event::Deleted(broken))) = events.next().await else { panic!("no event") };
    let broken: Decoded<Pod> = broken;
    assert_eq!(broken.key().as_str(), "b/a");
    assert_eq!(broken.label("app"), Some("web"));
    assert_eq!(broken.get().unwrap_err().path, "spec.nodeName");
}

#[test]
fn what_is_asked_for() {
    let list = Operation::List(ListOptions::default());
    let accept = |collection: Collection, operation: &Operation| {
        let request = ApiRequest::new(collection, operation.clone());
        accept_header(&request, &Negotiation::default()).into_owned()
    };
    let custom = ResourceType::from_static("example.com", "v1", "Foo", "foos", Scope::Namespaced);
    let both = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(accept(Collection::new(pods()), &list), both);
    assert_eq!(accept(Collection::new(custom.clone()), &list), "application/json");
    assert_eq!(
        accept(Collection::new(custom).metadata_only(), &list),
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
         application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    );
    let table = Collection::new(pods()).as_table();
    assert_eq!(accept(table, &list), "application/json;as=Table;g=meta.k8s.io;v=v1");
    assert_eq!(format_of("application/json; charset=utf-8"), Some(Format::Json));
    assert_eq!(
        format_of("application/vnd.kubernetes.protobuf;stream=watch"),
        Some(Format::Protobuf)
    );
    assert_eq!(format_of("text/html"), None);
}

#[test]
fn a_whole_object_is_asked_for_in_json_of_a_server_that_may_be_newer() {
    let get = Operation::Get { name: "a".into(), options: Default::default() };
    let accept = |server_minor| {
        let collection = Collection::new(pods()).accept(Accept::Whole);
        let request = ApiRequest::new(collection, get.clone());
        let negotiation = Negotiation { server_minor, ..Negotiation::default() };
        accept_header(&request, &negotiation).into_owned()
    };
    let both = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(accept(None), "application/json");
    assert_eq!(accept(Some(schema::MINOR - 1)), both);
    assert_eq!(accept(Some(schema::MINOR)), both);
    assert_eq!(accept(Some(schema::MINOR + 1)), "application/json");
}

#[test]
fn managed_fields_are_dropped_by_the_server_where_nobody_wants_them() {
    let accept = |collection: Collection, operation: Operation, drop_managed_fields| {
        let negotiation = Negotiation { drop_managed_fields, ..Negotiation::default() };
        accept_header(&ApiRequest::new(collection, operation), &negotiation).into_owned()
    };
    let list = || Operation::List(ListOptions::default());
    let pruned = Collection::new(pods()).prune([FieldPath::managed_fields()]);
    let asked = "application/vnd.kubernetes.protobuf;drop=metadata.managedFields,\
                 application/json;drop=metadata.managedFields";
    assert_eq!(accept(pruned.clone(), list(), true), asked);
    assert_eq!(
        accept(pruned.clone().accept(Accept::Only(Format::Json)).metadata_only(), list(), true),
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;drop=metadata.managedFields"
    );
    let plain = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(accept(pruned.clone(), list(), false), plain, "nobody asked");
    assert_eq!(accept(Collection::new(pods()), list(), true), plain, "somebody may read them");
    let write = Operation::Delete { name: "a".into(), options: DeleteOptions::default() };
    assert_eq!(accept(pruned, write, true), plain, "a write is asked for in full");
}

#[test]
fn delete_options_are_sent_where_they_say_something() {
    assert_eq!(delete_options_body(&DeleteOptions::default()), None);
    let options = DeleteOptions {
        preconditions: Preconditions {
            uid: Some("u".to_owned()),
            resource_version: Some(7.into()),
        },
        grace_period_seconds: Some(0),
        propagation: Some(Propagation::Foreground),
        dry_run: true,
    };
    let body = delete_options_body(&options).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&body.bytes).unwrap(),
        json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u", "resourceVersion": "7"},
            "propagationPolicy": "Foreground", "dryRun": ["All"]
        })
    );
}
