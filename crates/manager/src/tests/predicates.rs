//! Predicates and mappers, each on one change.

use std::sync::Arc;

use kubestrata_api_types::{Kind as _, Object as _, ObjectKey};
use kubestrata_codec::{Decoded, Encoded};
use kubestrata_testkit::Thing;

use super::server::{Host, Member, Set, encode};
use crate::Inspect;
use crate::mapper::{Itself, Mapper, Owner};
use crate::predicate::{
    Change, Predicate, annotation_changed, generation_changed, label_changed, label_selector,
    label_selector_or_left, on_change, on_object, resource_version_changed,
};

fn object(text: &str) -> Encoded {
    let thing: Thing = text.parse().unwrap();
    encode(&thing, &Arc::new(Member::resource().clone()))
}

/// Whether an update passes; for both representations.
fn updated(predicate: &impl Predicate, old: &str, new: &str) -> bool {
    let (old, new) = (object(old), object(new));
    let passes = predicate.passes(&Change::Updated { old: &old, new: &new });
    let (old, new) = (Decoded::<Member>::decode(&old), Decoded::<Member>::decode(&new));
    assert_eq!(passes, predicate.passes(&Change::Updated { old: &old, new: &new }));
    passes
}

fn created(predicate: &impl Predicate, text: &str) -> bool {
    predicate.passes(&Change::Created { object: &object(text), initial: false })
}

fn deleted(predicate: &impl Predicate, text: &str) -> bool {
    predicate.passes(&Change::Deleted { last: &object(text), final_state_known: true })
}

#[test]
fn changed_predicates_look_at_updates_alone() {
    let version = resource_version_changed();
    assert!(updated(&version, "a@1", "a@2") && !updated(&version, "a@1", "a@1"));
    let generation = generation_changed();
    assert!(updated(&generation, "a@1{.gen=1}", "a@2{.gen=2}"));
    assert!(!updated(&generation, "a@1{.gen=1}", "a@2{.gen=1,k=v}"));
    assert!(!updated(&generation, "a@1", "a@2"), "a kind without generation never passes");
    let label = label_changed();
    assert!(updated(&label, "a@1{k=v}", "a@2{k=w}") && !updated(&label, "a@1{k=v}", "a@2{k=v}"));
    let annotation = annotation_changed();
    assert!(updated(&annotation, "a@1", "a@2{.note=x}"));
    assert!(!updated(&annotation, "a@1{.note=x}", "a@2{.note=x,k=v}"));
    assert!(created(&version, "a@1") && created(&generation, "a@1") && created(&label, "a@1"));
    assert!(deleted(&version, "a@1") && deleted(&generation, "a@1") && deleted(&annotation, "a@1"));
}

#[test]
fn a_label_selector_looks_at_the_new_state_and_its_brother_at_both() {
    let selector = || "k=v".parse().unwrap();
    let (new, both) = (label_selector(selector()), label_selector_or_left(selector()));
    for (old, next, want_new, want_both) in [
        ("a@1{k=v}", "a@2{k=v}", true, true),
        ("a@1", "a@2{k=v}", true, true),
        ("a@1{k=v}", "a@2", false, true),
        ("a@1", "a@2", false, false),
    ] {
        assert_eq!(updated(&new, old, next), want_new, "{old} {next}");
        assert_eq!(updated(&both, old, next), want_both, "{old} {next}");
    }
    assert!(created(&new, "a@1{k=v}") && !created(&both, "a@1"));
    assert!(deleted(&both, "a@1{k=v}") && !deleted(&new, "a@1"));
}

#[test]
fn predicates_combine() {
    let named = |name: &'static str| on_object(move |object| object.name() == name);
    let updates = || on_change(|change| matches!(change, Change::Updated { .. }));
    assert!(updated(&named("a").and(updates()), "a@1", "a@2"));
    assert!(!created(&named("a").and(updates()), "a@1"));
    assert!(created(&named("a").or(updates()), "a@1"));
    assert!(!created(&named("b").or(updates()), "a@1"));
    assert!(created(&named("b").negate(), "a@1"));
    // Short-circuit, as in controller-runtime.
    let never = || on_object(|_| panic!("is not asked"));
    assert!(!created(&named("b").and(never()), "a@1"));
    assert!(created(&named("a").or(never()), "a@1"));
}

#[test]
fn routine_changes_are_the_first_state_and_unchanged_objects() {
    let (a1, a2) = (object("a@1"), object("a@2"));
    assert!(Change::Created { object: &a1, initial: true }.is_routine());
    assert!(!Change::Created { object: &a1, initial: false }.is_routine());
    assert!(Change::Updated { old: &a1, new: &a1 }.is_routine());
    assert!(!Change::Updated { old: &a1, new: &a2 }.is_routine());
    assert!(!Change::Deleted { last: &a1, final_state_known: false }.is_routine());
}

fn keys(mapper: &impl Mapper, object: &dyn Inspect) -> Vec<String> {
    let mut keys = Vec::new();
    mapper.keys(object, &mut |key| keys.push(key.to_string()));
    keys
}

#[test]
fn mappers_find_itself_and_owners() {
    let owned = object("n/a@1{.owner=Set:s}");
    assert_eq!(owned.key(), ObjectKey::namespaced("n", "a"));
    assert_eq!(keys(&Itself, &owned), ["n/a"]);
    // The version of the owner's type does not count: the object says v9.
    assert_eq!(keys(&Owner::of::<Set>(), &owned), ["n/s"]);
    assert_eq!(keys(&Owner::of::<Member>(), &owned), [""; 0]);
    let loose = object("n/a@1{.owner=Set:s,.loose=1}");
    assert_eq!(keys(&Owner::of::<Set>(), &loose), [""; 0]);
    assert_eq!(keys(&Owner::of::<Set>().any(), &loose), ["n/s"]);
    let on_host = object("n/a@1{.owner=Host:h}");
    assert_eq!(keys(&Owner::of::<Host>(), &on_host), ["h"], "a cluster-scoped owner");
}
