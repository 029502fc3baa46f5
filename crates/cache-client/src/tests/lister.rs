//! Listers and typed handlers, over both item types.

use kubestrata_api_types::Undecodable;
use kubestrata_codec::{DecodeLayer, Decoded, Item, Tracked};
use kubestrata_informer::{Config as InformerConfig, HandlerConfig, Informer};
use kubestrata_store_index::{Index, Query, Stored, store};
use parking_lot::Mutex;
use tower::Layer as _;

use super::*;
use crate::{Lister, Typed, TypedHandler};

/// Its data is a number where a map must be.
fn undecodable(name: &str, version: u64) -> Encoded {
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"a","resourceVersion":"{version}","labels":{{"app":"web"}}}},"data":5}}"#
    );
    let resource = Arc::new(ConfigMap::resource().clone());
    Encoded::read(&resource, Format::Json, json.as_bytes(), &[]).unwrap()
}

fn items() -> Vec<Encoded> {
    vec![
        map("a/x@1 app=web .v=1"),
        map("a/y@2 app=db .v=1"),
        map("b/x@3 app=web .v=2"),
        undecodable("bad", 5),
    ]
}

fn check<T: Stored + Item<ConfigMap>>(items: Vec<T>) {
    let (mut writer, reader) = store::<T>();
    writer.replace(items, 9.into());
    reader.add_index(Index::field("data.v".parse().unwrap())).unwrap();
    let lister = Lister::<ConfigMap, T>::new(reader);
    let key = |text: &str| text.parse::<ObjectKey>().unwrap();

    let found = lister.get(&key("a/x")).unwrap().unwrap();
    assert_eq!(found.data.as_ref().unwrap()["v"], "1");
    assert!(lister.get(&key("a/none")).unwrap().is_none());
    assert_eq!(lister.get(&key("a/bad")).unwrap_err().key, key("a/bad"));
    assert_eq!(lister.handle(&key("a/bad")).unwrap().label("app"), Some("web"));

    let listed = lister.list().unwrap();
    assert_eq!((listed.items.len(), listed.undecodable.len()), (3, 1));
    assert_eq!(listed.version.version, 9.into());
    let web = Query::all().labels("app=web".parse().unwrap());
    let in_a = lister.in_namespace("a");
    let listed = in_a.select(web.clone()).unwrap();
    assert_eq!((listed.items.len(), listed.undecodable.len()), (1, 1));
    assert_eq!(in_a.handles(web).unwrap().objects.len(), 2, "handles do not decode");
    assert_eq!(lister.by_index("data.v", "1").unwrap().items.len(), 2);
    assert!(lister.by_index("data.w", "1").is_err());
    assert!(in_a.get(&key("b/x")).unwrap().is_none(), "not of this namespace");
}

#[test]
fn listers_read_encoded_items() {
    check(items());
}

#[test]
fn listers_read_decoded_items() {
    check(items().iter().map(Decoded::<ConfigMap>::decode).collect());
}

#[test]
fn decoded_items_are_shared() {
    let (mut writer, reader) = store::<Decoded<ConfigMap>>();
    writer.upsert(Decoded::decode(&map("a/x@1")));
    let lister = Lister::<ConfigMap, _>::new(reader);
    let key = "a/x".parse().unwrap();
    let [one, two] = [(); 2].map(|()| lister.get(&key).unwrap().unwrap());
    assert!(Arc::ptr_eq(&one, &two));
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: &str, map: &ConfigMap) {
        let data = map.data.as_ref().and_then(|data| data.get("v")).map_or("", String::as_str);
        self.0.lock().push(format!("{what}{}={data}", map.name()));
    }
}

impl TypedHandler<ConfigMap> for Log {
    fn on_add(&self, object: Arc<Tracked<ConfigMap>>, initial: bool) {
        self.note(if initial { "!" } else { "+" }, &object);
    }
    fn on_update(&self, _: Arc<Tracked<ConfigMap>>, new: Arc<Tracked<ConfigMap>>) {
        self.note("~", &new);
    }
    fn on_delete(&self, last: Arc<Tracked<ConfigMap>>, _: bool) {
        self.note("-", &last);
    }
    fn on_undecodable(&self, error: &Undecodable) {
        self.0.lock().push(format!("?{}", error.key.name()));
    }
}

fn script() -> Scripted<Encoded> {
    let mut steps: Vec<_> = ["+a/x@1 .v=1", "end@1", "~a/x@2 .v=2"].map(step).into();
    steps.push(WatchStep::Item(Event::Added(undecodable("bad", 5))));
    steps.push(step("~a/bad@7 .v=3"));
    steps.push(WatchStep::Item(Event::Modified(undecodable("x", 8))));
    steps.push(step("-a/x@9 .v=2"));
    Scripted::new([Reply::Watch(steps).into()])
}

const TOLD: [&str; 6] = ["!x=1", "~x=2", "?bad", "+bad=3", "?x", "-x=2"];

#[tokio::test(start_paused = true)]
async fn typed_handlers_decode_encoded_items() {
    let informer = Informer::new(Arc::new(script()), maps(), InformerConfig::default());
    let log = Log::default();
    informer.add_handler(Typed::new(log.clone()), HandlerConfig::default()).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*log.0.lock(), TOLD);
}

/// The decoded representation is a layer between transport and reflector; all else is the same.
#[tokio::test(start_paused = true)]
async fn typed_handlers_share_decoded_items() {
    let decoding = DecodeLayer::<ConfigMap>::new().layer(script());
    let informer = Informer::new(Arc::new(decoding), maps(), InformerConfig::default());
    let log = Log::default();
    informer.add_handler(Typed::new(log.clone()), HandlerConfig::default()).unwrap();
    informer.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*log.0.lock(), TOLD);
}
