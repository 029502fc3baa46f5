//! Every kind that kube-apiserver serves and that can be made: written in protobuf, read in both formats, and removed.
//!
//! What is sent is protobuf of our own encoders. What comes back must be the same object in both formats: the message shown as
//! JSON is the server's JSON byte for byte, and that JSON stored as a message is the server's protobuf byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestrata_api_types::{
    Accept, Answer, ApiRequest, ApiResponse, BoxError, Collection, DeleteOptions, Format,
    GetOptions, Object as _, Operation, Payload, Propagation, ResourceType, Scope, WriteOptions,
};
use kubestrata_codec::{Dynamic, Encoded, encode, envelope, proto, schema, transcode};
use kubestrata_transport::Transport;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::bed::single;
use crate::target::{Live, Target};

/// By `apiVersion` and resource: an object of each kind that the server takes and that disturbs nobody: webhooks and policies
/// match a resource that does not exist, and roles are for users that do not.
const BODIES: &str = include_str!("round_trip/bodies.json");

/// Resources that can be created, and are not made here: their kinds are options of a stream, sent in the query.
const STREAMS: [&str; 6] = [
    "v1 nodes/proxy",
    "v1 pods/attach",
    "v1 pods/exec",
    "v1 pods/portforward",
    "v1 pods/proxy",
    "v1 services/proxy",
];

/// Resources that are made of another object, each in a way of its own.
const OF_OTHERS: [&str; 4] =
    ["v1 bindings", "v1 pods/binding", "v1 pods/eviction", "v1 serviceaccounts/token"];

/// What kube-apiserver of the table's release can create by default, subresources included.
const CREATABLE: usize = 80;

/// Of those, reviews: they are answered and not stored.
const REVIEWS: usize = 6;

pub(crate) fn trials() -> Vec<Trial> {
    if !Target::available().contains(&Target::Real) {
        return Vec::new();
    }
    vec![single("it::round_trip::every_kind::real", || Box::pin(every_kind()))]
}

/// A resource as discovery has it.
struct Served {
    resource: Arc<ResourceType>,
    verbs: Vec<String>,
}

struct Trip {
    live: Live,
    namespace: String,
}

async fn every_kind() {
    let live = Live::start(Target::Real).await;
    let namespace = format!("it-round-trip-{}", std::process::id());
    live.create_namespace(&namespace).await;
    let served = discover(&live).await;
    // Some kinds have finalizers, and stay on a server without controllers: each run has names of its own.
    let own = BODIES
        .replace("$NAMESPACE", &namespace)
        .replace(r#""name":"proof""#, &format!(r#""name":"{namespace}""#));
    let bodies: BTreeMap<String, Value> = serde_json::from_str(&own).unwrap();
    let trip = Trip { live, namespace };
    let (mut stored, mut reviews, mut left) = (0, 0, Vec::new());
    for (name, one) in &served {
        let Some(body) = bodies.get(name) else {
            left.push(name.as_str());
            continue;
        };
        if one.verbs.iter().any(|verb| verb == "get") {
            trip.store(name, one, body).await;
            stored += 1;
        } else {
            trip.review(name, one, body).await;
            reviews += 1;
        }
    }
    let mut expected = [&STREAMS[..], &OF_OTHERS].concat();
    expected.sort_unstable();
    assert_eq!(left, expected, "not made");
    trip.of_others().await;
    for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
        trip.scale("apps", kind).await;
    }
    trip.scale("", "ReplicationController").await;
    trip.live.delete_namespace(&trip.namespace).await;
    println!("{stored} kinds stored, {reviews} reviews, {} of others, 4 scales", OF_OTHERS.len());
    assert_eq!((served.len(), reviews), (CREATABLE, REVIEWS));
    assert_eq!(stored, CREATABLE - REVIEWS - STREAMS.len() - OF_OTHERS.len());
}

/// What the server says it can create, by `apiVersion` and resource.
async fn discover(live: &Live) -> BTreeMap<String, Served> {
    let transport = Transport::connect(live.config()).unwrap();
    let get = async |path: &str| {
        let body = transport.raw_get(path).await.unwrap();
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    let mut versions = vec![("v1".to_owned(), "/api/v1".to_owned())];
    for group in get("/apis").await["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let version = version["groupVersion"].as_str().unwrap();
            // Other trials teach the server kinds of their own, which may come and go while we ask.
            if version.contains("kubestrata") {
                continue;
            }
            versions.push((version.to_owned(), format!("/apis/{version}")));
        }
    }
    let mut found = BTreeMap::new();
    for (api_version, path) in versions {
        for resource in get(&path).await["resources"].as_array().unwrap() {
            let text = |field: &str| resource[field].as_str().unwrap_or_default();
            let verbs: Vec<String> = serde_json::from_value(resource["verbs"].clone()).unwrap();
            if !verbs.iter().any(|verb| verb == "create") {
                continue;
            }
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            let scope =
                if resource["namespaced"] == true { Scope::Namespaced } else { Scope::Cluster };
            let ty = ResourceType::new(group, version, text("kind"), text("name"), scope);
            let name = format!("{api_version} {}", text("name"));
            found.insert(name, Served { resource: Arc::new(ty), verbs });
        }
    }
    found
}

/// Protobuf of a JSON object by both encoders, which must agree.
fn message(resource: &Arc<ResourceType>, body: &Value) -> Payload {
    let table = schema::resource(resource).expect("the table has every kind that is served");
    let mut bytes = Vec::new();
    let text = serde_json::to_vec(body).unwrap();
    let notes = transcode::to_protobuf(&text, table, &mut bytes).unwrap();
    assert_eq!(notes.unknown, [""; 0], "{resource}");
    let closed = envelope::close(&resource.api_version(), &resource.kind, &bytes);
    let value = Dynamic { resource: Arc::clone(resource), value: body.clone() };
    let encoded = encode(&value, resource, Format::Protobuf).unwrap();
    assert_eq!(closed, encoded.bytes, "{resource}: the encoders differ");
    encoded
}

/// Decodes an object to a value without nulls, which protobuf does not tell from nothing.
fn value(object: &Encoded) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|_, member| !member.is_null());
                members.values_mut().for_each(strip);
            }
            Value::Array(elements) => elements.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = object.decode().unwrap();
    strip(&mut value);
    value
}

/// Whether the server's object has all that was sent. It may have more, in lists too: defaults, and what admission adds.
fn holds(have: &Value, sent: &Value) -> Result<(), String> {
    match (have, sent) {
        (Value::Object(have), Value::Object(sent)) => sent.iter().try_for_each(|(name, sent)| {
            // An empty string may be left out, and a null is nothing.
            let have = have.get(name).unwrap_or(&Value::Null);
            holds(have, sent).map_err(|what| format!(".{name}{what}"))
        }),
        (Value::Array(have), Value::Array(sent)) => {
            sent.iter().enumerate().try_for_each(|(at, sent)| {
                let found = have.iter().any(|have| holds(have, sent).is_ok());
                found.then_some(()).ok_or_else(|| format!("[{at}]"))
            })
        }
        _ if have == sent => Ok(()),
        _ => Err(format!(": {have}, sent was {sent}")),
    }
}

impl Trip {
    fn collection(&self, resource: &Arc<ResourceType>, format: Format) -> Collection {
        let all = Collection::new(Arc::clone(resource)).accept(Accept::Only(format));
        if resource.is_namespaced() { all.in_namespace(&self.namespace) } else { all }
    }

    async fn call(
        &self,
        resource: &Arc<ResourceType>,
        format: Format,
        operation: Operation,
        subresource: Option<&str>,
    ) -> Result<ApiResponse<Encoded>, BoxError> {
        let mut request = ApiRequest::new(self.collection(resource, format), operation);
        if let Some(subresource) = subresource {
            request = request.subresource(subresource);
        }
        self.live.stack.clone().oneshot(request).await
    }

    /// Creates in protobuf; gives what the server answers, in protobuf too.
    async fn create(&self, resource: &Arc<ResourceType>, body: Payload) -> Encoded {
        let options = WriteOptions::default();
        let create = Operation::Create { name: None, body, options };
        let answer = self.call(resource, Format::Protobuf, create, None).await;
        let answer = answer.unwrap_or_else(|error| panic!("{resource}: {error:?}"));
        answer.into_object().unwrap()
    }

    async fn delete(&self, resource: &Arc<ResourceType>, name: &str) {
        let options = DeleteOptions {
            grace_period_seconds: Some(0),
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        let delete = Operation::Delete { name: name.into(), options };
        let answer = self.call(resource, Format::Protobuf, delete, None).await;
        answer.unwrap_or_else(|error| panic!("{resource}: {error:?}"));
    }

    /// The object in both formats, as of the same version.
    async fn both(
        &self,
        resource: &Arc<ResourceType>,
        name: &str,
        subresource: Option<&str>,
    ) -> (Encoded, Encoded) {
        // The server's own controllers change some kinds between two reads.
        for _ in 0..50 {
            let mut read = Vec::new();
            for format in [Format::Protobuf, Format::Json] {
                let options = GetOptions::default();
                let get = Operation::Get { name: name.into(), options };
                let answer = self.call(resource, format, get, subresource).await.unwrap();
                let object = answer.into_object().unwrap();
                assert_eq!(object.format(), format);
                read.push(object);
            }
            let (Some(json), Some(protobuf)) = (read.pop(), read.pop()) else { continue };
            if json.resource_version() == protobuf.resource_version() {
                return (protobuf, json);
            }
        }
        panic!("{resource} {name} never rests");
    }

    /// A kind that is stored.
    async fn store(&self, name: &str, one: &Served, body: &Value) {
        let mut body = body.clone();
        body["apiVersion"] = json!(one.resource.api_version());
        body["kind"] = json!(one.resource.kind);
        let created = self.create(&one.resource, message(&one.resource, &body)).await;
        holds(&value(&created), &body).unwrap_or_else(|what| panic!("{name}: created{what}"));
        let (protobuf, json) = self.both(&one.resource, created.name(), None).await;
        holds(&value(&json), &body).unwrap_or_else(|what| panic!("{name}: read{what}"));
        same(name, &protobuf, &json);
        self.delete(&one.resource, created.name()).await;
    }

    /// A kind that is answered and not stored: in both formats, sent as protobuf each time.
    async fn review(&self, name: &str, one: &Served, body: &Value) {
        let mut body = body.clone();
        body["apiVersion"] = json!(one.resource.api_version());
        body["kind"] = json!(one.resource.kind);
        let (protobuf, json) = self.answers(name, &one.resource, &body).await;
        // Of this one the answer has only the rules.
        if name != "authorization.k8s.io/v1 selfsubjectrulesreviews" {
            holds(&value(&protobuf), &body).unwrap_or_else(|what| panic!("{name}{what}"));
        }
        assert!(value(&protobuf).get("status").is_some(), "{name}: no answer");
        same(name, &protobuf, &json);
    }

    /// What the server answers to one review in both formats, within one second: the answers bear their time.
    async fn answers(
        &self,
        name: &str,
        resource: &Arc<ResourceType>,
        body: &Value,
    ) -> (Encoded, Encoded) {
        for _ in 0..50 {
            let mut answers = Vec::new();
            for format in [Format::Protobuf, Format::Json] {
                let body = message(resource, body);
                let options = WriteOptions::default();
                let create = Operation::Create { name: None, body, options };
                let answer = self.call(resource, format, create, None).await;
                let answer = answer.unwrap_or_else(|error| panic!("{name}: {error:?}"));
                let object = answer.into_object().unwrap();
                assert_eq!(object.format(), format);
                answers.push(object);
            }
            let (Some(json), Some(protobuf)) = (answers.pop(), answers.pop()) else { continue };
            if value(&json)["metadata"] == value(&protobuf)["metadata"] {
                return (protobuf, json);
            }
        }
        panic!("{name} is never answered twice within one second");
    }

    /// What is made of another object: bindings, an eviction, a token.
    async fn of_others(&self) {
        let core = |kind: &'static str, plural: &'static str| {
            Arc::new(ResourceType::from_static("", "v1", kind, plural, Scope::Namespaced))
        };
        let (pods, bindings) = (core("Pod", "pods"), core("Binding", "bindings"));
        let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let binding = |name: &str| json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "nowhere"}});
        let post = |name: &str, body: Payload| Operation::Create {
            name: Some(name.into()),
            body,
            options: WriteOptions::default(),
        };

        // One pod is bound by its subresource, and then evicted; one by the collection of bindings.
        for name in ["bound", "bound-too"] {
            self.create(&pods, message(&pods, &pod(name))).await;
            let body = message(&bindings, &binding(name));
            let answer = if name == "bound" {
                self.call(&pods, Format::Protobuf, post(name, body), Some("binding")).await
            } else {
                let options = WriteOptions::default();
                let create = Operation::Create { name: None, body, options };
                self.call(&bindings, Format::Protobuf, create, None).await
            };
            succeeded(answer);
            let (protobuf, json) = self.both(&pods, name, None).await;
            assert_eq!(value(&protobuf)["spec"]["nodeName"], "nowhere");
            same(name, &protobuf, &json);
        }
        let eviction = ResourceType::new("policy", "v1", "Eviction", "x", Scope::Namespaced);
        let body =
            json!({"metadata": {"name": "bound"}, "deleteOptions": {"gracePeriodSeconds": 0}});
        let body = message(&Arc::new(eviction), &body);
        succeeded(self.call(&pods, Format::Protobuf, post("bound", body), Some("eviction")).await);
        let options = GetOptions::default();
        let get = Operation::Get { name: "bound".into(), options };
        assert!(self.call(&pods, Format::Protobuf, get, None).await.is_err(), "it is gone");
        self.delete(&pods, "bound-too").await;

        let accounts = core("ServiceAccount", "serviceaccounts");
        self.create(&accounts, message(&accounts, &json!({"metadata": {"name": "token"}}))).await;
        let request = Arc::new(ResourceType::new(
            "authentication.k8s.io",
            "v1",
            "TokenRequest",
            "x",
            Scope::Namespaced,
        ));
        let body = json!({"spec": {"audiences": ["a"], "expirationSeconds": 3600}});
        for format in [Format::Protobuf, Format::Json] {
            let create = post("token", message(&request, &body));
            let answer = self.call(&accounts, format, create, Some("token")).await.unwrap();
            let token = answer.into_object().unwrap();
            assert_eq!((token.format(), &*token.resource().kind), (format, "TokenRequest"));
            let token = value(&token);
            holds(&token, &body).unwrap();
            assert_eq!(token["status"]["token"].as_str().unwrap().split('.').count(), 3);
        }
        self.delete(&accounts, "token").await;
    }

    /// Reads and writes the scale of a workload.
    async fn scale(&self, group: &'static str, kind: &'static str) {
        let plural = format!("{}s", kind.to_lowercase());
        let resource = Arc::new(ResourceType::new(group, "v1", kind, &*plural, Scope::Namespaced));
        let bodies: BTreeMap<String, Value> = serde_json::from_str(BODIES).unwrap();
        let body = &bodies[&format!("{} {plural}", resource.api_version())];
        self.create(&resource, message(&resource, body)).await;
        let (before, json) = self.both(&resource, "proof", Some("scale")).await;
        assert_eq!(&*before.resource().kind, "Scale");
        same(kind, &before, &json);
        let mut scale = value(&before);
        scale["spec"] = json!({"replicas": 2});
        let body = message(before.resource(), &scale);
        let options = WriteOptions::default();
        let update = Operation::Update { name: "proof".into(), body, options };
        let answer = self.call(&resource, Format::Protobuf, update, Some("scale")).await.unwrap();
        assert_eq!(value(&answer.into_object().unwrap())["spec"]["replicas"], 2);
        let (after, json) = self.both(&resource, "proof", Some("scale")).await;
        assert_eq!(value(&after)["spec"]["replicas"], 2);
        same(kind, &after, &json);
        self.delete(&resource, "proof").await;
    }
}

/// Some answers hold the Status of a success.
fn succeeded(answer: Result<ApiResponse<Encoded>, BoxError>) {
    match answer.unwrap().answer {
        Answer::Status(status) => assert!(status.is_success(), "{status}"),
        other => panic!("answered with {other:?}"),
    }
}

/// The one kind whose JSON says more than its protobuf: the templates in it name their kind, for which no message has fields.
const NAMES_KINDS_INSIDE: &str = "apps/v1 statefulsets";
const KIND_INSIDE: &str = r#""kind":"PersistentVolumeClaim","apiVersion":"v1","#;

/// One object in both formats: as values, as JSON text, and as a message.
fn same(name: &str, protobuf: &Encoded, json: &Encoded) {
    let resource = protobuf.resource();
    let table = schema::resource(resource).unwrap();
    let api_version = resource.api_version();
    let options = proto::Options::of(&api_version, &resource.kind);
    if name != NAMES_KINDS_INSIDE {
        assert_eq!(value(protobuf), value(json), "{name}: decoded");
    }

    let mut text = Vec::new();
    let lost = transcode::to_json(protobuf.bytes(), table, &options, &mut text).unwrap();
    assert!(!lost.is_partial(), "{name}: {lost:?}");
    let shown = String::from_utf8_lossy(&text);
    let mut expected = String::from_utf8_lossy(json.bytes().trim_ascii_end()).into_owned();
    if name == NAMES_KINDS_INSIDE {
        assert_eq!(expected.matches(KIND_INSIDE).count(), 1, "{name}");
        expected = expected.replace(KIND_INSIDE, "");
    }
    assert_eq!(shown, expected, "{name}: as JSON");

    let mut bytes = Vec::new();
    let notes = transcode::to_protobuf(json.bytes(), table, &mut bytes).unwrap();
    assert_eq!(notes.unknown, [""; 0], "{name}");
    assert!(bytes == protobuf.bytes(), "{name}: as protobuf");
}
