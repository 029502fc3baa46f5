//! One object at a time.

use kubestrata_api_types::{
    Accept, Collection, DeleteOptions, Operation, PatchKind, Preconditions, WriteOptions,
};
use libtest_mimic::Trial;
use serde_json::json;

use crate::bed::{Bed, scenarios, status};
use crate::kinds::Sample;

pub(crate) fn trials() -> Vec<Trial> {
    scenarios![
        an_object_lives_and_dies,
        a_name_is_taken_once,
        a_name_can_be_made_up,
        a_stale_update_is_a_conflict,
        an_update_without_change_changes_nothing,
        status_and_spec_are_apart,
        patches_change_what_they_say,
        a_finalizer_holds_an_object,
        preconditions_guard_a_delete,
        a_dry_run_stores_nothing,
        refusals_say_why,
    ]
    .collect()
}

async fn an_object_lives_and_dies<K: Sample>(bed: Bed<K>) {
    let created = bed.create(&bed.sample("one", &[("app", "a")])).await.unwrap();
    assert_eq!(created.key(), bed.key("one"));
    assert!(created.uid().is_some_and(|uid| uid.len() == 36), "{:?}", created.uid());
    assert!(created.resource_version().as_u64().is_some());
    assert_eq!(created.generation(), Some(1));
    assert_eq!(created.label("app"), Some("a"));
    assert_eq!(created.replicas(), 1);

    let mut object = bed.get("one").await.unwrap();
    assert_eq!(object, created);

    object.set_replicas(3);
    let updated = bed.update(&object).await.unwrap();
    assert_eq!(updated.replicas(), 3);
    assert_eq!(updated.generation(), Some(2), "the wish changed");
    assert_eq!(updated.uid(), created.uid());
    assert_eq!(
        updated.resource_version().is_at_least(&created.resource_version()),
        Some(true),
        "versions grow"
    );
    assert_ne!(updated.resource_version(), created.resource_version());
    assert_eq!(bed.get("one").await.unwrap(), updated);

    bed.delete("one").await.unwrap();
    assert!(status(&bed.get("one").await.unwrap_err()).is_not_found());
    assert!(status(&bed.delete("one").await.unwrap_err()).is_not_found());

    let again = bed.create(&bed.sample("one", &[])).await.unwrap();
    assert_ne!(again.uid(), created.uid(), "another life, another identity");
}

async fn a_name_is_taken_once<K: Sample>(bed: Bed<K>) {
    let first = bed.create(&bed.sample("one", &[])).await.unwrap();
    let error = bed.create(&bed.sample("one", &[])).await.unwrap_err();
    let refused = status(&error);
    assert!(refused.is_already_exists(), "{refused:?}");
    assert_eq!(refused.code, 409);
    assert_eq!(refused.details.as_ref().unwrap().name, "one");
    assert_eq!(bed.get("one").await.unwrap(), first);
}

async fn a_name_can_be_made_up<K: Sample>(bed: Bed<K>) {
    let mut object = bed.sample("", &[]);
    object.meta().name = None;
    object.meta().generate_name = Some("made-".to_owned());
    let (a, b) = (bed.create(&object).await.unwrap(), bed.create(&object).await.unwrap());
    for made in [&a, &b] {
        assert!(made.name().starts_with("made-"), "{}", made.name());
        assert_eq!(made.name().len(), "made-".len() + 5);
    }
    assert_ne!(a.name(), b.name());
}

async fn a_stale_update_is_a_conflict<K: Sample>(bed: Bed<K>) {
    let old = bed.create(&bed.sample("one", &[])).await.unwrap();
    let mut newer = old.clone();
    newer.set_replicas(2);
    let newer = bed.update(&newer).await.unwrap();
    let mut stale = old;
    stale.set_replicas(9);
    let error = bed.update(&stale).await.unwrap_err();
    let refused = status(&error);
    assert!(refused.is_conflict() && refused.code == 409, "{refused:?}");
    assert_eq!(bed.get("one").await.unwrap(), newer, "the first write stays");
}

async fn an_update_without_change_changes_nothing<K: Sample>(bed: Bed<K>) {
    let object = bed.create(&bed.sample("one", &[])).await.unwrap();
    let same = bed.update(&object).await.unwrap();
    assert_eq!(same.resource_version(), object.resource_version());
}

async fn status_and_spec_are_apart<K: Sample>(bed: Bed<K>) {
    let mut object = bed.create(&bed.sample("one", &[])).await.unwrap();
    object.set_replicas(5);
    object.set_observed(4);
    let written = bed.update_status(&object).await.unwrap();
    assert_eq!((written.replicas(), written.observed()), (1, 4), "a status write leaves the spec");
    assert_eq!(written.generation(), Some(1), "a status is no wish");

    let mut object = written;
    object.set_replicas(5);
    object.set_observed(7);
    let written = bed.update(&object).await.unwrap();
    assert_eq!((written.replicas(), written.observed()), (5, 4), "a spec write leaves the status");
    assert_eq!(written.generation(), Some(2));

    let patch = json!({"status": {"replicas": 5}});
    let patched = bed.patch("one", PatchKind::Merge, patch, Some("status")).await.unwrap();
    assert_eq!((patched.replicas(), patched.observed()), (5, 5));
}

async fn patches_change_what_they_say<K: Sample>(bed: Bed<K>) {
    bed.create(&bed.sample("one", &[("keep", "1"), ("drop", "1")])).await.unwrap();
    let merge =
        json!({"metadata": {"labels": {"drop": null, "new": "2"}}, "spec": {"replicas": 2}});
    let object = bed.patch("one", PatchKind::Merge, merge, None).await.unwrap();
    assert_eq!(object.replicas(), 2);
    assert_eq!(
        (object.label("keep"), object.label("drop"), object.label("new")),
        (Some("1"), None, Some("2"))
    );

    let steps = json!([
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/replicas", "value": 3},
        {"op": "remove", "path": "/metadata/labels/new"},
    ]);
    let object = bed.patch("one", PatchKind::Json, steps.clone(), None).await.unwrap();
    assert_eq!((object.replicas(), object.label("new")), (3, None));

    // The same steps again: their test does not hold any more.
    let error = bed.patch("one", PatchKind::Json, steps, None).await.unwrap_err();
    assert_eq!(status(&error).code, 422, "{error:?}");
    assert_eq!(bed.get("one").await.unwrap().replicas(), 3);
}

async fn a_finalizer_holds_an_object<K: Sample>(bed: Bed<K>) {
    let mut object = bed.sample("held", &[]);
    object.meta().finalizers = Some(vec!["it.kubestrata.example/hold".to_owned()]);
    bed.create(&object).await.unwrap();
    bed.delete("held").await.unwrap();
    let mut held = bed.get("held").await.unwrap();
    assert!(held.deletion_timestamp().is_some());
    held.meta().finalizers = None;
    bed.update(&held).await.unwrap();
    assert!(status(&bed.get("held").await.unwrap_err()).is_not_found());
}

async fn preconditions_guard_a_delete<K: Sample>(bed: Bed<K>) {
    let object = bed.create(&bed.sample("one", &[])).await.unwrap();
    let only = |uid: &str| DeleteOptions {
        preconditions: Preconditions { uid: Some(uid.to_owned()), resource_version: None },
        ..DeleteOptions::default()
    };
    let other = "00000000-0000-4000-8000-000000000000";
    let error = bed.delete_with("one", only(other)).await.unwrap_err();
    assert!(status(&error).is_conflict(), "{error:?}");
    bed.delete_with("one", only(object.uid().unwrap())).await.unwrap();
    assert!(status(&bed.get("one").await.unwrap_err()).is_not_found());
}

async fn a_dry_run_stores_nothing<K: Sample>(bed: Bed<K>) {
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let made = bed.create_with(&bed.sample("one", &[]), dry).await.unwrap();
    assert_eq!(made.name(), "one");
    assert!(status(&bed.get("one").await.unwrap_err()).is_not_found());
}

async fn refusals_say_why<K: Sample>(bed: Bed<K>) {
    let error = bed.create(&bed.sample("No_Good", &[])).await.unwrap_err();
    let refused = status(&error);
    assert!(refused.is_invalid(), "{refused:?}");
    let causes = &refused.details.as_ref().unwrap().causes;
    assert!(causes.iter().any(|cause| cause.field == "metadata.name"), "{causes:?}");

    let body = kubestrata_codec::encode(
        &K::sample("nowhere", "one", &[]),
        K::resource(),
        bed.form.format(),
    )
    .unwrap();
    let nowhere = Collection::new(bed.resource())
        .in_namespace("nowhere")
        .accept(Accept::Only(bed.form.format()));
    let create = Operation::Create { name: None, body, options: WriteOptions::default() };
    let error = bed.call_on(nowhere, create, None).await.unwrap_err();
    assert!(status(&error).is_not_found(), "there is no such namespace: {error:?}");
}
