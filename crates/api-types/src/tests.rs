//! Tests of the vocabulary.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::{
    FieldPath, FieldSelector, KeyRef, LabelSelector, ObjectKey, ResourceVersion, Status,
    StatusCause, StatusDetails,
};

/// Borrowed keys must do in every respect as the keys do that they stand for, whatever is in the parts.
#[test]
fn borrowed_keys_are_as_the_keys() {
    let hash = |key: KeyRef<'_>| {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish()
    };
    let parts = ["", "a", "b", "a-b", "a/b", "b/c", "/", "a0"];
    let namespaces = parts.map(Some).into_iter().chain([None]);
    let all: Vec<(Option<&str>, &str)> =
        namespaces.flat_map(|namespace| parts.map(|name| (namespace, name))).collect();
    for (namespace, name) in &all {
        let (one, key) = (KeyRef::new(*namespace, name), ObjectKey::new(*namespace, name));
        assert_eq!((one.to_key(), one.to_string()), (key.clone(), key.to_string()));
        for (namespace, name) in &all {
            let (two, other) = (KeyRef::new(*namespace, name), ObjectKey::new(*namespace, name));
            assert_eq!(one.cmp(&two), key.cmp(&other), "{one} {two}");
            assert_eq!((one == two, one == other.borrowed()), (key == other, key == other));
            if one == two {
                assert_eq!(hash(one), hash(two));
                assert_eq!(hash(one), hash(other.borrowed()));
            }
        }
    }
}

#[test]
fn keys_split_and_join() {
    let key = ObjectKey::namespaced("a", "b");
    assert_eq!((key.namespace(), key.name(), key.as_str()), (Some("a"), "b", "a/b"));
    assert_eq!(ObjectKey::new(Some(""), "b"), ObjectKey::cluster("b"));
    for bad in ["", "/", "a/", "/b", "a/b/c"] {
        assert!(bad.parse::<ObjectKey>().is_err(), "{bad}");
    }
}

#[test]
fn versions_compare_by_length_then_text() {
    let version = ResourceVersion::new;
    assert_eq!(version("9").compare(&version("10")), Ok(Ordering::Less));
    let (a, b) = ("340282366920938463463374607431768211455", "18446744073709551615");
    assert_eq!(version(a).compare(&version(b)), Ok(Ordering::Greater));
    for bad in ["", "0", "007", "-1", "1a"] {
        assert!(version(bad).compare(&version("1")).is_err(), "{bad}");
        assert_eq!(version(bad).to_string(), bad);
    }
    assert_ne!(version("007"), version("7"));
}

#[test]
fn field_paths_round_trip() {
    for text in
        ["spec.nodeName", "spec.containers[*].image", "metadata.labels['a.b/c']", "status[*]"]
    {
        assert_eq!(text.parse::<FieldPath>().map(|path| path.to_string()).as_deref(), Ok(text));
    }
    for bad in ["", ".a", "a.", "a..b", "a[1]", "a['b"] {
        assert!(bad.parse::<FieldPath>().is_err(), "{bad}");
    }
}

#[test]
fn label_selectors_match_as_upstream_documents() {
    let labels = |key: &str| match key {
        "app" => Some("web"),
        "n" => Some("5"),
        "empty" => Some(""),
        _ => None,
    };
    for (text, expected) in [
        ("", true),
        ("app=web", true),
        ("app==web,n=5", true),
        ("app!=web", false),
        ("other!=web", true),
        ("app in (web, db)", true),
        ("app notin (web)", false),
        ("other notin (web)", true),
        ("app", true),
        ("!app", false),
        ("!other", true),
        ("n>4", true),
        ("n<5", false),
        ("app>4", false),
        ("empty=", true),
        ("in in (in)", false),
    ] {
        let selector: LabelSelector = text.parse().unwrap();
        assert_eq!(selector.matches(labels), expected, "{text}");
        assert_eq!(selector.to_string().parse::<LabelSelector>().as_ref(), Ok(&selector), "{text}");
    }
}

/// The message is what kube-apiserver 1.37 answered to `labelSelector=a b`.
#[test]
fn label_selector_errors_are_the_servers() {
    let error = "a b".parse::<LabelSelector>().unwrap_err().to_string();
    assert_eq!(
        error,
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
    );
    for bad in ["a,", ",a", "a in b", "a in (b", "a=b c", "a>b", "-a", "a=-b", "!", "a in (b c)"] {
        assert!(bad.parse::<LabelSelector>().is_err(), "{bad}");
    }
}

#[test]
fn field_selectors_parse_escape_and_match() {
    let selector: FieldSelector = r"a=1,b!=2,c==x\,y\=z\\".parse().unwrap();
    assert_eq!(selector.to_string(), r"a=1,b!=2,c=x\,y\=z\\");
    assert!(selector.matches(|field| match field {
        "a" => Some("1"),
        "c" => Some(r"x,y=z\"),
        _ => None,
    }));
    let error = "abc".parse::<FieldSelector>().unwrap_err().to_string();
    assert_eq!(error, "invalid selector: 'abc'; can't understand 'abc'");
}

/// client-go `isTooLargeResourceVersionError`: k/k#94315, #94316, #92537.
#[test]
fn too_large_resource_version_in_three_shapes() {
    let with_cause = |cause| Status {
        details: Some(StatusDetails { causes: vec![cause], ..StatusDetails::default() }),
        ..Status::failure(504, "Timeout", "Timeout: wait")
    };
    let by_reason =
        StatusCause { reason: "ResourceVersionTooLarge".into(), ..StatusCause::default() };
    let by_message =
        StatusCause { message: "Too large resource version".into(), ..StatusCause::default() };
    assert!(with_cause(by_reason).is_too_large_resource_version());
    assert!(with_cause(by_message).is_too_large_resource_version());
    assert!(
        Status::failure(504, "Timeout", "Too large resource version: 5, current: 3")
            .is_too_large_resource_version()
    );
    assert!(!Status::failure(504, "Timeout", "other").is_too_large_resource_version());
}

#[test]
fn metadata_weighs_its_strings() {
    use crate::{ObjectMeta, PartialObjectMetadata, Weigh};
    let mut object = PartialObjectMetadata {
        metadata: ObjectMeta { name: Some("a".repeat(100)), ..ObjectMeta::default() },
        ..PartialObjectMetadata::default()
    };
    let plain = object.weight();
    assert_eq!((plain.head, plain.body), (100, 0));
    object.metadata.labels.insert("k".into(), "v".repeat(50));
    object.metadata.annotations.insert("k".into(), "v".repeat(70));
    let (head, body) = (object.weight().head - plain.head, object.weight().body);
    assert!((51..150).contains(&head) && (71..150).contains(&body), "{head} {body}");
}

/// The parts of a collection are disjoint and together everything, at the bounds too; the hash is FNV-1a's.
#[test]
fn shards_cover_everything_once() {
    use crate::{ObjectMeta, PartialObjectMetadata, ShardField, ShardSelector};
    // Published vectors of the 64-bit FNV-1a.
    for (text, hash) in [
        ("", 0xcbf2_9ce4_8422_2325),
        ("a", 0xaf63_dc4c_8601_ec8c),
        ("foobar", 0x8594_4171_f739_67e8),
    ] {
        assert_eq!(ShardSelector::hash(text), hash, "{text}");
    }
    for count in [1, 2, 3, 7, 1000] {
        let parts: Vec<_> = (0..count)
            .map(|index| ShardSelector::part(ShardField::Uid, index, count).unwrap())
            .collect();
        for uid in 0..200 {
            let object = PartialObjectMetadata {
                metadata: ObjectMeta { uid: Some(format!("u{uid}")), ..ObjectMeta::default() },
                ..PartialObjectMetadata::default()
            };
            assert_eq!(parts.iter().filter(|part| part.matches(&object)).count(), 1);
        }
        for pair in parts.windows(2) {
            let text = |part: &ShardSelector| part.to_string();
            let end = text(&pair[0]).rsplit_once(", ").unwrap().1.to_owned();
            assert!(text(&pair[1]).contains(&format!(", {}", end.trim_end_matches(')'))));
        }
    }
    assert!(ShardSelector::part(ShardField::Uid, 2, 2).is_err());
    assert!(ShardSelector::part(ShardField::Uid, 0, 0).is_err());
}

#[test]
fn shard_selectors_are_read_and_written_as_the_server_does() {
    use crate::{ShardField, ShardSelector};
    let namespace = ShardSelector::part(ShardField::Namespace, 0, 4).unwrap();
    let both = namespace.or(u64::MAX - 1..=u64::MAX).unwrap();
    let text = "shardRange(object.metadata.namespace, '0x0000000000000000', '0x4000000000000000') || \
                shardRange(object.metadata.namespace, '0xfffffffffffffffe', '0x10000000000000000')";
    assert_eq!(both.to_string(), text);
    assert_eq!(text.replace(' ', "").parse(), Ok(both));
    for wrong in [
        "",
        "object.metadata.uid",
        "shardRange(object.metadata.uid, '0x0', '0x8')",
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000000')",
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000001')",
        "shardRange(object.metadata.uid, '0x800000000000000G', '0x10000000000000000')",
        "shardRange(object.metadata.uid, 0x8000000000000000, 0x10000000000000000)",
        "shardRange(metadata.uid, '0x8000000000000000', '0x10000000000000000')",
        "shardRange(object.metadata.uid, '0x8000000000000000')",
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000000')",
        "shardRange(object.metadata.uid, '0x10000000000000000', '0x10000000000000000')",
    ] {
        assert!(wrong.parse::<ShardSelector>().is_err(), "{wrong}");
    }
}

#[test]
fn a_cause_is_found_boxed_or_not() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Box<Status>);
    let status = Status::failure(410, "Expired", "too old");
    let outer = Outer(Box::new(status.clone()));
    assert_eq!(crate::cause_ref::<Status>(&outer), Some(&status));
    assert_eq!(crate::cause_ref::<Status>(&status), Some(&status));
    assert!(crate::cause_ref::<Outer>(&status).is_none());
}

#[cfg(feature = "k8s-openapi")]
#[test]
fn every_k8s_openapi_type_is_an_object_and_a_kind() {
    use crate::{Kind, Object, Scope};
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use k8s_openapi::api::core::v1::Node;
    let mut set = ReplicaSet::default();
    set.metadata.name = Some("a".into());
    set.metadata.resource_version = Some("7".into());
    assert_eq!((set.name(), set.resource_version()), ("a", ResourceVersion::new("7")));
    let resource = ReplicaSet::resource();
    assert_eq!(
        (resource.to_string().as_str(), resource.scope),
        ("replicasets.apps", Scope::Namespaced)
    );
    assert_eq!(resource.api_version(), "apps/v1");
    assert_eq!(Node::resource().scope, Scope::Cluster);
}
