//! The derives, used as users do.

use kubestrata_api_types::{Kind as _, Object as _, ObjectKey, ObjectMeta, OwnerReference, Scope};
use kubestrata_derive::{Kind, Object};

#[derive(Object, Kind)]
#[kubestrata(group = "example.com", version = "v1alpha1", plural = "widgets", scope = "Namespaced")]
struct Widget {
    metadata: ObjectMeta,
}

/// Another name than its kind, another metadata type, generic, and the traits under another path.
#[derive(Object, Kind)]
#[kubestrata(group = "", version = "v1", kind = "Gadget", plural = "gadgets", scope = "Cluster")]
#[kubestrata(crate = "words")]
struct MyGadget<S: Send + Sync + 'static> {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    #[expect(dead_code, reason = "the derive does not read it")]
    spec: S,
}

use kubestrata_api_types as words;

fn widget() -> Widget {
    let owner = OwnerReference { kind: "Owner".to_owned(), ..OwnerReference::default() };
    Widget {
        metadata: ObjectMeta {
            name: Some("a".to_owned()),
            namespace: Some("ns".to_owned()),
            uid: Some("u".to_owned()),
            resource_version: Some("7".into()),
            generation: Some(3),
            deletion_timestamp: "2026-01-02T03:04:05Z".parse().ok(),
            labels: [("k".to_owned(), "v".to_owned())].into(),
            owner_references: vec![owner],
            ..ObjectMeta::default()
        },
    }
}

#[test]
fn an_object_gives_its_metadata() {
    let widget = widget();
    assert_eq!(widget.key(), ObjectKey::namespaced("ns", "a"));
    assert_eq!((widget.uid(), widget.resource_version()), (Some("u"), "7".into()));
    assert_eq!((widget.generation(), widget.label("k")), (Some(3), Some("v")));
    assert!(widget.deletion_timestamp().is_some());
    let mut seen = Vec::new();
    widget.for_each_label(&mut |key, value| seen.push(format!("{key}={value}")));
    widget.for_each_owner(&mut |owner| seen.push(owner.kind.to_owned()));
    assert_eq!(seen, ["k=v", "Owner"]);
}

#[test]
fn a_kind_gives_its_resource_type() {
    let resource = Widget::resource();
    assert_eq!(resource.to_string(), "widgets.example.com");
    assert_eq!((&*resource.kind, &*resource.version), ("Widget", "v1alpha1"));
    assert_eq!(resource.scope, Scope::Namespaced);
    assert!(std::ptr::eq(resource, Widget::resource()));
}

#[test]
fn other_metadata_types_names_and_paths_work() {
    let mut gadget = MyGadget { metadata: Default::default(), spec: 1 };
    gadget.metadata.name = Some("g".to_owned());
    assert_eq!(gadget.key(), ObjectKey::cluster("g"));
    let resource = MyGadget::<u8>::resource();
    assert_eq!((&*resource.kind, resource.scope), ("Gadget", Scope::Cluster));
    assert_eq!(resource.api_version(), "v1");
}
