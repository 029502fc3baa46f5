//! Tests of the store, on a small object type of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubestrata_api_types::{
    FieldPath, FieldSelector, Object, ObjectKey, OwnerRef, ResourceVersion, Timestamp, View,
    ViewError, Weigh, Weight,
};

use crate::{Change, Index, IndexFailure, Query, QueryError, Reader, WaitError, Writer, store};

mod freeing;
mod model;
mod waiting;

/// An object with a label `app`, and a field `spec.v` that has any number of values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item(Arc<Body>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Body {
    namespace: String,
    name: String,
    uid: String,
    version: u64,
    app: String,
    values: Vec<String>,
    broken: bool,
}

impl Object for Item {
    fn name(&self) -> &str {
        &self.0.name
    }
    fn namespace(&self) -> Option<&str> {
        Some(&self.0.namespace)
    }
    fn uid(&self) -> Option<&str> {
        Some(&self.0.uid)
    }
    fn resource_version(&self) -> ResourceVersion {
        self.0.version.into()
    }
    fn generation(&self) -> Option<i64> {
        None
    }
    fn deletion_timestamp(&self) -> Option<Timestamp> {
        None
    }
    fn label(&self, key: &str) -> Option<&str> {
        (key == "app").then_some(self.0.app.as_str())
    }
    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        f("app", &self.0.app);
    }
    fn for_each_owner(&self, _: &mut dyn FnMut(OwnerRef<'_>)) {}
}

impl View for Item {
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        for value in &self.0.values {
            out(value);
        }
        if self.0.broken { Err(ViewError::new(path, "truncated")) } else { Ok(()) }
    }
}

impl Weigh for Item {
    fn weight(&self) -> Weight {
        let head = self.0.name.len() + self.0.namespace.len();
        Weight { head, body: self.0.values.iter().map(String::len).sum() }
    }
}

fn item(key: &str, version: u64, app: &str, values: &[&str]) -> Item {
    let key: ObjectKey = key.parse().unwrap();
    Item(Arc::new(Body {
        namespace: key.namespace().unwrap().to_owned(),
        name: key.name().to_owned(),
        uid: format!("uid-{key}"),
        version,
        app: app.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        broken: false,
    }))
}

fn broken(key: &str, version: u64) -> Item {
    let mut body = Arc::unwrap_or_clone(item(key, version, "", &["half"]).0);
    body.broken = true;
    Item(Arc::new(body))
}

fn by_v() -> Index<Item> {
    Index::field("spec.v".parse().unwrap())
}

fn filled() -> (Writer<Item>, Reader<Item>) {
    let (mut writer, reader) = store();
    reader.add_index(by_v()).unwrap();
    let items = vec![
        item("a/1", 1, "web", &["x"]),
        item("a/2", 2, "web", &["y"]),
        item("a/3", 3, "db", &["x", "y"]),
        item("b/1", 4, "web", &["x"]),
    ];
    writer.replace(items, 9.into());
    (writer, reader)
}

/// Sorted keys of what a query selects.
fn keys(reader: &Reader<Item>, query: &Query) -> Vec<String> {
    let selected = reader.select(query).unwrap();
    let mut keys: Vec<String> =
        selected.objects.iter().map(|object| object.key().to_string()).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn objects_are_found_by_key_namespace_label_field_and_any_of_these_together() {
    let (_writer, reader) = filled();
    assert_eq!(reader.get_by_name(Some("a"), "2").unwrap().0.version, 2);
    assert_eq!(reader.get_by_name(Some("b"), "2"), None);
    assert_eq!(keys(&reader, &Query::all()), ["a/1", "a/2", "a/3", "b/1"]);
    assert_eq!(keys(&reader, &Query::all().in_namespace("b")), ["b/1"]);
    assert_eq!(keys(&reader, &Query::all().in_namespace("")).len(), 4);
    assert_eq!(keys(&reader, &Query::all().in_namespace("c")), [""; 0]);
    let web = || Query::all().labels("app=web".parse().unwrap());
    assert_eq!(keys(&reader, &web()), ["a/1", "a/2", "b/1"]);
    assert_eq!(keys(&reader, &web().in_namespace("a")), ["a/1", "a/2"]);
    assert_eq!(keys(&reader, &web().in_namespace("a").index("spec.v", "x")), ["a/1"]);
    let both = FieldSelector::equal("spec.v", "x").and(kubestrata_api_types::FieldTerm {
        field: "spec.v".into(),
        value: "y".into(),
        equal: true,
    });
    assert_eq!(keys(&reader, &Query::all().fields(both)), ["a/3"]);
    assert_eq!(reader.index_values("spec.v").unwrap(), ["x", "y"]);
    assert_eq!(reader.list_in("a").len(), 3);
    reader.check();
}

#[test]
fn name_and_namespace_need_no_index_and_other_fields_do() {
    let (_writer, reader) = filled();
    let fields = |text: &str| Query::all().fields(text.parse().unwrap());
    assert_eq!(keys(&reader, &fields("metadata.name=1")), ["a/1", "b/1"]);
    assert_eq!(keys(&reader, &fields("metadata.name=1").in_namespace("b")), ["b/1"]);
    assert_eq!(keys(&reader, &fields("metadata.name=1,metadata.namespace=a")), ["a/1"]);
    assert_eq!(keys(&reader, &fields("metadata.name=1,metadata.name=2")), [""; 0]);
    assert_eq!(keys(&reader, &fields("metadata.name=1,spec.v=y").in_namespace("a")), [""; 0]);
    let no_index = QueryError::NoIndex { name: "spec.w".into() };
    assert_eq!(reader.select(&fields("spec.w=1")).unwrap_err(), no_index);
    let not_exact = QueryError::NotExact { field: "spec.v".into() };
    assert_eq!(reader.select(&fields("spec.v!=x")).unwrap_err(), not_exact);
}

#[test]
fn limit_says_whether_there_is_more_and_order_is_by_key() {
    let (_writer, reader) = filled();
    let selected = reader.select(&Query::all().ordered().limit(2)).unwrap();
    let names: Vec<_> = selected.objects.iter().map(|object| object.key().to_string()).collect();
    assert_eq!((names, selected.more), (vec!["a/1".to_owned(), "a/2".to_owned()], true));
    assert!(!reader.select(&Query::all().limit(4)).unwrap().more);
    assert!(reader.select(&Query::all().limit(3)).unwrap().more);
    assert!(reader.select(&Query::all().limit(0)).unwrap().more);
}

#[test]
fn pages_join_to_the_whole() {
    let (mut writer, reader) = store::<Item>();
    for number in 0..25 {
        writer.upsert(item(&format!("a/{:02}", number * 7 % 25), 1, "", &[]));
    }
    let (mut query, mut seen) = (Query::all().ordered().limit(10), Vec::new());
    loop {
        let page = reader.select(&query).unwrap();
        seen.extend(page.objects.iter().map(|object| object.name().to_owned()));
        let Some(last) = page.objects.last().filter(|_| page.more) else { break };
        query = query.after(last.key());
    }
    assert_eq!(seen, (0..25).map(|number| format!("{number:02}")).collect::<Vec<_>>());
}

/// I7: value set {x} → {x,y} → {y} → {}.
#[test]
fn i7_index_moves_leave_no_empty_set() {
    let (mut writer, reader) = store();
    reader
        .add_index(Index::by("v", |item: &Item, out| {
            item.0.values.iter().for_each(|value| out(value));
        }))
        .unwrap();
    let mut version = 0;
    for (values, x, y) in
        [(&["x"][..], 1, 0), (&["x", "y"], 1, 1), (&["y"], 0, 1), (&[], 0, 0), (&["x", "x"], 1, 0)]
    {
        version += 1;
        writer.upsert(item("a/1", version, "", values));
        let found = |value| reader.by_index("v", value).unwrap().len();
        assert_eq!((found("x"), found("y")), (x, y), "{values:?}");
        assert_eq!(reader.index_values("v").unwrap().len(), x + y);
        reader.check();
    }
    writer.delete(ObjectKey::namespaced("a", "1"), ResourceVersion::UNSET);
    assert_eq!(reader.index_values("v").unwrap(), [""; 0]);
    assert_eq!(reader.usage().indexes[1].entries, 0);
}

#[test]
fn an_object_that_an_index_cannot_handle_is_stored_and_reported() {
    let (mut writer, reader) = filled();
    reader
        .add_index(Index::by("picky", |item: &Item, out| {
            assert!(!item.0.broken, "as a user's function may");
            out("fine");
        }))
        .unwrap();
    let batch = writer.upsert(broken("a/1", 10));
    let failures: Vec<_> = batch.problems.iter().map(|problem| &problem.failure).collect();
    assert!(matches!(failures[..], [IndexFailure::View(_), IndexFailure::Panicked]), "{batch:?}");
    assert_eq!(reader.get_by_name(Some("a"), "1").unwrap().0.version, 10);
    let selected = reader.select(&Query::all().index("spec.v", "x")).unwrap();
    assert_eq!((selected.objects.len(), selected.unindexed), (2, 1));
    assert_eq!(reader.by_index("spec.v", "half").unwrap(), []);
    reader.check();
    // It is found again as soon as it can be read.
    writer.upsert(item("a/1", 11, "web", &["x"]));
    let selected = reader.select(&Query::all().index("spec.v", "x")).unwrap();
    assert_eq!((selected.objects.len(), selected.unindexed), (3, 0));
}

#[test]
fn indexes_come_and_go_at_any_time() {
    let (mut writer, reader) = filled();
    reader.add_index(by_v()).unwrap();
    assert!(reader.add_index(Index::by("spec.v", |_: &Item, _| {})).is_err());
    assert_eq!(
        reader.by_index("metadata.labels['app']", "web").unwrap_err(),
        QueryError::NoIndex { name: "metadata.labels['app']".into() }
    );
    reader.add_index(Index::label("app")).unwrap();
    assert_eq!(reader.by_index("metadata.labels['app']", "web").unwrap().len(), 3);
    let selector = "app in (web,db)".parse().unwrap();
    assert_eq!(keys(&reader, &Query::all().labels(selector)).len(), 4);
    writer.upsert(item("b/1", 10, "db", &[]));
    assert_eq!(keys(&reader, &Query::all().labels("app=db".parse().unwrap())), ["a/3", "b/1"]);
    // An absent field is the empty string, as in a server's selector.
    assert_eq!(keys(&reader, &Query::all().index("spec.v", "")), ["b/1"]);
    reader.check();
    assert!(reader.remove_index("spec.v"));
    assert!(!reader.remove_index("spec.v") && !reader.remove_index("metadata.namespace"));
    assert_eq!(reader.indexes().len(), 2);
    assert_eq!(keys(&reader, &Query::all().labels("app=db".parse().unwrap())), ["a/3", "b/1"]);
}

#[test]
fn replace_tells_what_was_there_and_keeps_what_has_not_changed() {
    let (mut writer, reader) = filled();
    let kept = reader.get_by_name(Some("a"), "1").unwrap();
    let frozen = reader.freeze();
    let new = vec![item("a/1", 1, "web", &["x"]), item("c/1", 12, "web", &[])];
    let replaced = writer.replace(new, 12.into());
    assert!(!replaced.rewound);
    assert_eq!(replaced.previous, [Some(kept.clone()), None]);
    let mut removed: Vec<_> = replaced.removed.iter().map(|o| o.key().to_string()).collect();
    removed.sort_unstable();
    assert_eq!(removed, ["a/2", "a/3", "b/1"]);
    let stored = reader.get_by_name(Some("a"), "1").unwrap();
    assert!(Arc::ptr_eq(&kept.0, &stored.0), "the old allocation stays");
    assert_eq!((frozen.len(), frozen.iter().count(), reader.len()), (4, 4, 2));
    assert_eq!(reader.version().version, 12.into());
    reader.check();
    // Of two with one key the last stays; a re-created object is no unchanged one.
    let mut body = (*item("a/1", 1, "web", &[]).0).clone();
    body.uid = "other".into();
    let double = vec![item("a/1", 1, "web", &["x"]), Item(Arc::new(body))];
    writer.replace(double, 13.into());
    assert_eq!(reader.list()[0].uid(), Some("other"));
    reader.check();
}

#[test]
fn a_frozen_state_does_not_change_while_the_store_does() {
    let (mut writer, reader) = filled();
    let frozen = reader.freeze();
    writer.apply(vec![
        Change::Upsert(item("a/1", 10, "web", &[])),
        Change::Delete { key: ObjectKey::namespaced("a", "2"), version: 11.into() },
        Change::Upsert(item("z/1", 12, "web", &[])),
    ]);
    let seen: BTreeMap<_, _> =
        frozen.iter().map(|object| (object.key().to_string(), object.0.version)).collect();
    let want = [("a/1", 1), ("a/2", 2), ("a/3", 3), ("b/1", 4)];
    assert_eq!(seen, want.map(|(key, version)| (key.to_owned(), version)).into());
    assert_eq!(frozen.version().version, 9.into());
    assert_eq!((reader.len(), reader.version().version), (4, 12.into()));
}

#[test]
fn usage_counts_objects_heads_bodies_and_each_index() {
    let (mut writer, reader) = filled();
    let usage = reader.usage();
    assert_eq!((usage.objects, usage.heads, usage.bodies), (4, 8, 5));
    assert!(usage.keys > 0);
    let names: Vec<_> = usage.indexes.iter().map(|index| &*index.name).collect();
    assert_eq!(names, ["metadata.namespace", "spec.v"]);
    let by_v = &usage.indexes[1];
    assert_eq!((by_v.values, by_v.entries), (2, 5));
    assert!(by_v.bytes > 0 && usage.total() > by_v.bytes + usage.keys + 13);
    for number in 0..1000 {
        writer.upsert(item("a/1", 10 + number, "web", &[&format!("value-{number}")]));
    }
    let after = &reader.usage().indexes[1];
    assert_eq!((after.values, after.entries), (3, 5));
    assert!(after.bytes < by_v.bytes + 200, "values that nobody has are given back: {after:?}");
}

/// Bug row 25: no half-applied store after an index function fails in the middle of a batch.
#[test]
fn k25_a_failing_index_function_costs_its_object_alone() {
    let (mut writer, reader) = filled();
    let batch = writer.apply(vec![
        Change::Upsert(item("n/1", 20, "web", &["x"])),
        Change::Upsert(broken("n/2", 21)),
        Change::Upsert(item("n/3", 22, "web", &["x"])),
    ]);
    assert_eq!((batch.problems.len(), batch.previous.len()), (1, 3));
    assert_eq!(batch.problems[0].key.as_str(), "n/2");
    assert_eq!(batch.problems[0].to_string(), "object n/2 is not in index \"spec.v\"");
    assert_eq!(reader.list_in("n").len(), 3);
    assert_eq!(keys(&reader, &Query::all().in_namespace("n").index("spec.v", "x")), ["n/1", "n/3"]);
}

/// Bug row 28a: readers that list all the time do not hold up the writer, nor the writer them, and each list is of one
/// instant. Bounded by counts on both sides, so that whoever is held up fails the test instead of hanging it.
#[test]
fn k28a_readers_see_whole_batches_while_the_writer_goes_on() {
    const READERS: usize = 3;
    /// What each side must get done while the other goes on.
    const LISTS: u64 = 20;
    const BATCHES: u64 = 60;
    /// When each side gives up: far above what it takes, as no clock is looked at.
    const LISTS_MAX: u64 = 100_000;
    const BATCHES_MAX: u64 = 20_000;
    let (mut writer, reader) = store();
    let batch = |version: u64| -> Vec<Change<Item>> {
        (0..300).map(|n| Change::Upsert(item(&format!("a/{n}"), version, "", &[]))).collect()
    };
    writer.apply(batch(1));
    // Relaxed: counts, of which each side only looks whether the other goes on.
    let lists: [AtomicU64; READERS] = Default::default();
    let listed = || lists.each_ref().map(|lists| lists.load(Ordering::Relaxed));
    std::thread::scope(|scope| {
        for lists in &lists {
            let reader = &reader;
            scope.spawn(move || {
                while !reader.is_closed() && lists.load(Ordering::Relaxed) < LISTS_MAX {
                    let versions: Vec<_> = reader.list().iter().map(|o| o.0.version).collect();
                    assert!(versions.iter().all(|version| *version == versions[0]), "torn list");
                    assert_eq!(versions.len(), 300);
                    lists.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut version = 1;
        while version < BATCHES || (listed().iter().any(|n| *n < LISTS) && version < BATCHES_MAX) {
            version += 1;
            writer.apply(batch(version));
        }
        let listed = listed();
        assert!(listed.iter().all(|n| *n >= LISTS), "{listed:?} lists in {version} batches");
        assert!(listed.iter().any(|n| *n < LISTS_MAX), "no batch got between {listed:?} lists");
        drop(writer);
    });
    reader.check();
}

#[test]
fn waiting_is_bounded_and_typed() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let (_writer, reader) = filled();
    let stale = WaitError::Stale { have: 9.into(), want: 10.into() };
    assert_eq!(reader.check_at_least(&10.into()).unwrap_err(), stale);
    let waited = runtime.block_on(reader.wait_at_least(10.into(), Duration::from_secs(3)));
    assert_eq!(waited.unwrap_err(), stale);
    assert!(stale.is_stale());
    assert!(matches!(reader.check_at_least(&"seven".into()), Err(WaitError::NotComparable(_))));
}
