//! Informers: a copy that follows, whatever happens on the way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kubestrata_api_types::{ListWatch, Object, PatchKind, ResourceVersion};
use kubestrata_codec::{DecodeLayer, Decoded, Encoded, Item};
use kubestrata_informer::{Config, Handler, HandlerConfig, Informer};
use kubestrata_store_index::{Index, Reader, Stored};
use libtest_mimic::Trial;
use serde_json::json;
use tower::Layer as _;

use crate::bed::{Bed, SOON, eventually, scenarios};
use crate::kinds::Sample;

pub(crate) fn trials() -> Vec<Trial> {
    scenarios![
        a_copy_follows_the_collection,
        a_decoded_copy_follows_too,
        handlers_are_told_what_happens,
        an_index_finds_what_a_field_says,
    ]
    .collect()
}

/// A running informer over the objects of a bed.
pub(crate) async fn informer<K: Sample, T: Stored>(
    bed: &Bed<K>,
    source: Arc<dyn ListWatch<T>>,
) -> Informer<T> {
    let informer = Informer::new(source, bed.collection(), Config::default());
    informer.start();
    informer.wait_synced(SOON).await.unwrap();
    informer
}

/// Names and wishes of all objects in a store.
pub(crate) fn state<K: Sample, T: Stored + Item<K>>(reader: &Reader<T>) -> BTreeMap<String, i32> {
    let items = reader.list();
    items.iter().map(|item| (item.name().to_owned(), item.get().unwrap().replicas())).collect()
}

/// Changes the collection in all ways, and gives what it must be at the end, and at which version.
pub(crate) async fn churn<K: Sample>(bed: &Bed<K>) -> (BTreeMap<String, i32>, ResourceVersion) {
    let mut model = BTreeMap::new();
    for (index, name) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
        bed.create(&bed.sample(name, &[("app", "x")])).await.unwrap();
        let replicas = i32::try_from(index).unwrap();
        let patch = json!({"spec": {"replicas": replicas}});
        bed.patch(name, PatchKind::Merge, patch, None).await.unwrap();
        model.insert(name.to_owned(), replicas);
    }
    for name in ["b", "e"] {
        bed.delete(name).await.unwrap();
        model.remove(name);
    }
    // Gone and back: another object under the same name.
    bed.delete("c").await.unwrap();
    bed.create(&bed.sample("c", &[])).await.unwrap();
    model.insert("c".to_owned(), 1);
    let (_, meta) = bed.list(Default::default()).await.unwrap();
    (model, meta.resource_version)
}

async fn check<K: Sample, T: Stored + Item<K>>(bed: &Bed<K>, source: Arc<dyn ListWatch<T>>) {
    bed.create(&bed.sample("early", &[])).await.unwrap();
    let informer = informer(bed, source).await;
    let reader = informer.reader();
    assert_eq!(state(&reader), BTreeMap::from([("early".to_owned(), 1)]));
    let (mut model, version) = churn(bed).await;
    bed.delete("early").await.unwrap();
    eventually("the copy equals the model", async || state(&reader) == model).await;
    assert_eq!(
        reader.wait_at_least(version, SOON).await.map(|_| ()),
        Ok(()),
        "the store knows how far it is"
    );
    // What is read live and what is stored are the same objects.
    let (items, _) = bed.list(Default::default()).await.unwrap();
    for live in items {
        assert_eq!(*reader.get(&live.key()).unwrap().get().unwrap(), live);
        model.remove(live.name());
    }
    assert!(model.is_empty());
    informer.stop().await;
}

async fn a_copy_follows_the_collection<K: Sample>(bed: Bed<K>) {
    check::<K, Encoded>(&bed, Arc::new(bed.stack.clone())).await;
}

async fn a_decoded_copy_follows_too<K: Sample>(bed: Bed<K>) {
    let decoded = DecodeLayer::<K>::new().layer(bed.stack.clone());
    check::<K, Decoded<K>>(&bed, Arc::new(decoded)).await;
}

/// Writes down what it is told.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl<T: Object> Handler<T> for Log {
    fn on_add(&self, object: &T, initial: bool) {
        self.add(format!("+{}{}", object.name(), if initial { " initial" } else { "" }));
    }

    fn on_update(&self, old: &T, new: &T) {
        assert_ne!(old.resource_version(), new.resource_version(), "an update is a change");
        self.add(format!("~{}", new.name()));
    }

    fn on_delete(&self, last: &T, final_state_known: bool) {
        assert!(final_state_known, "the watch saw it go");
        self.add(format!("-{}", last.name()));
    }
}

async fn handlers_are_told_what_happens<K: Sample>(bed: Bed<K>) {
    bed.create(&bed.sample("old", &[])).await.unwrap();
    let informer = informer::<K, Encoded>(&bed, Arc::new(bed.stack.clone())).await;
    let log = Arc::new(Log::default());
    let registration = informer.add_handler(Arc::clone(&log), HandlerConfig::default()).unwrap();
    registration.wait_synced().await.unwrap();
    assert_eq!(log.lines(), ["+old initial"]);
    bed.create(&bed.sample("new", &[])).await.unwrap();
    bed.patch("new", PatchKind::Merge, json!({"spec": {"replicas": 7}}), None).await.unwrap();
    bed.delete("old").await.unwrap();
    let want = ["+old initial", "+new", "~new", "-old"];
    eventually("the handler was told", async || log.lines().len() >= want.len()).await;
    assert_eq!(log.lines(), want);
    registration.remove();
    registration.ended().await;
    bed.delete("new").await.unwrap();
    eventually("the store follows", async || informer.reader().is_empty()).await;
    assert_eq!(log.lines(), want, "a removed handler is told no more");
    informer.stop().await;
}

async fn an_index_finds_what_a_field_says<K: Sample>(bed: Bed<K>) {
    for (name, replicas) in [("a", 1), ("b", 2), ("c", 2)] {
        let mut object = bed.sample(name, &[]);
        object.set_replicas(replicas);
        bed.create(&object).await.unwrap();
    }
    let informer = informer::<K, Encoded>(&bed, Arc::new(bed.stack.clone())).await;
    informer.add_index(Index::field("spec.replicas".parse().unwrap())).unwrap();
    let reader = informer.reader();
    let names = |value: &str| -> Vec<String> {
        let found = reader.by_index("spec.replicas", value).unwrap();
        let mut names: Vec<String> = found.iter().map(|item| item.name().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!((names("1"), names("2")), (vec!["a".into()], vec!["b".into(), "c".into()]));
    bed.patch("b", PatchKind::Merge, json!({"spec": {"replicas": 1}}), None).await.unwrap();
    eventually("the index follows", async || names("1") == ["a", "b"]).await;
    assert_eq!(names("2"), ["c"]);
    informer.stop().await;
}
