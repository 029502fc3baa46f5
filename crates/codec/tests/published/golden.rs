//! The golden files: every conversion, for every object of every release.

use std::collections::BTreeSet;

use kubestrata_codec::{envelope, proto, transcode};
use serde_json::Value;

use crate::files::{Golden, goldens};
use crate::tally::{Tally, text, value};
use crate::typed::{self, Typed};

/// What the golden files are: folder, objects, and those whose kind the release of the table has no more.
const RELEASES: [(&str, usize, usize); 5] = [
    ("HEAD", 193, 0),
    ("v1.33.0", 182, 9),
    ("v1.34.0", 184, 4),
    ("v1.35.0", 204, 4),
    ("v1.36.0", 190, 2),
];

/// Kinds that Kubernetes has removed. The Go module has their files still, and no type for them.
const GONE: &[&str] = &[
    "autoscaling.v2beta1.HorizontalPodAutoscaler",
    "autoscaling.v2beta2.HorizontalPodAutoscaler",
    "certificates.k8s.io.v1alpha1.PodCertificateRequest",
    "networking.k8s.io.v1alpha1.IPAddress",
    "networking.k8s.io.v1alpha1.ServiceCIDR",
    "resource.k8s.io.v1alpha3.DeviceClass",
    "resource.k8s.io.v1alpha3.ResourceClaim",
    "resource.k8s.io.v1alpha3.ResourceClaimTemplate",
    "resource.k8s.io.v1alpha3.ResourceSlice",
    "scheduling.k8s.io.v1alpha1.PriorityClass",
    "scheduling.k8s.io.v1alpha1.Workload",
    "scheduling.k8s.io.v1alpha2.PodGroup",
    "scheduling.k8s.io.v1alpha2.Workload",
];

/// Objects of [`RELEASES`] whose kind the table has.
const ALL: usize = 934;
/// Objects in this repository.
const OWN: usize = 15;

/// Compares each object whose kind the table has. All must agree but the exceptions, which count if all objects are there.
fn compare(what: &str, exceptions: &[&str], check: impl Fn(&Golden) -> Option<String>) {
    let (releases, all) = goldens();
    let mut tally = Tally::default();
    for golden in releases.values().flatten().filter(|golden| golden.open().is_some()) {
        tally.add(&golden.name, check(golden));
    }
    if all {
        tally.assert(what, ALL - exceptions.len(), exceptions);
    } else {
        tally.assert(what, OWN, &[]);
    }
}

#[test]
fn every_release_is_there() {
    let (releases, all) = goldens();
    if !all {
        assert_eq!(releases.values().map(Vec::len).sum::<usize>(), OWN);
        return;
    }
    let mut gone = BTreeSet::new();
    let mut counts = Vec::new();
    for (release, goldens) in &releases {
        let before = goldens.iter().filter(|golden| golden.open().is_none());
        counts.push((release.as_str(), goldens.len(), before.clone().count()));
        gone.extend(before.map(Golden::kind));
    }
    assert_eq!(counts, RELEASES);
    assert_eq!(gone.into_iter().collect::<Vec<_>>(), GONE);
    let rest: usize = RELEASES.iter().map(|(_, objects, gone)| objects - gone).sum();
    assert_eq!(rest, ALL);
}

#[test]
fn protobuf_becomes_the_json_of_go() {
    compare("protobuf to JSON text", &[], |golden| {
        let (message, options, bytes) = golden.open()?;
        let mut json = Vec::new();
        let lost = transcode::to_json(bytes, message, &options, &mut json).unwrap();
        assert!(!lost.is_partial() || golden.is_changed_by_go(), "{}: {lost:?}", golden.name);
        text(&json, &golden.expected_json())
    });
}

#[test]
fn protobuf_decodes_to_what_the_json_says() {
    // An absent list that is not `omitempty` is null in Go's JSON; serde sees no field, which is the same to every type.
    let null = ["v1.35.0/certificates.k8s.io.v1beta1.PodCertificateRequest"];
    compare("protobuf to a value", &null, |golden| {
        let (message, options, bytes) = golden.open()?;
        let found: Value = proto::from_slice(bytes, message, &options).unwrap();
        value(&found, &golden.expected_value())
    });
}

/// JSON text to protobuf, and that to JSON text again.
fn there_and_back(golden: &Golden, json: &[u8]) -> Option<String> {
    let (message, options, _) = golden.open()?;
    let mut bytes = Vec::new();
    let notes = transcode::to_protobuf(json, message, &mut bytes).unwrap();
    assert!(notes.unknown.is_empty() || golden.is_changed_by_go(), "{}: {notes:?}", golden.name);
    assert!(notes.duplicate.is_empty(), "{}: {notes:?}", golden.name);
    assert_eq!(notes.kind.as_deref(), options.kind);
    let mut again = Vec::new();
    transcode::to_json(&bytes, message, &options, &mut again).unwrap();
    text(&bytes, golden.expected_message()).or_else(|| text(&again, &golden.expected_json()))
}

#[test]
fn json_becomes_the_protobuf_of_go_and_json_again() {
    compare("JSON to protobuf to JSON", &[], |golden| there_and_back(golden, &golden.json));
}

#[test]
fn yaml_is_the_same_object() {
    compare("YAML to protobuf to JSON", &[], |golden| {
        let yaml: Value = serde_saphyr::from_str(&golden.yaml).unwrap();
        let json: Value = serde_json::from_slice(&golden.json).unwrap();
        let text = serde_json::to_vec(&yaml).unwrap();
        value(&yaml, &json).or_else(|| there_and_back(golden, &text))
    });
}

#[test]
fn envelopes_are_closed_as_go_does() {
    compare("envelopes", &[], |golden| {
        let outer = envelope::open(&golden.envelope).unwrap();
        let again = envelope::close(outer.api_version, outer.kind, outer.message);
        text(&again, &golden.envelope)
    });
}

/// Through the Rust type. `by_value` gathers those whose bytes differ in nothing but the text of JSON inside them.
fn through_type(golden: &Golden, typed: &Typed, by_value: &mut Vec<String>) -> Option<String> {
    let (message, options, bytes) = golden.open()?;
    let (again, lost) = match (typed.through)(bytes, message, &options) {
        Ok(found) => found,
        Err(error) => return Some(error.to_string()),
    };
    if lost.is_partial() && !golden.is_changed_by_go() {
        return Some(format!("{lost:?}"));
    }
    let expected = golden.expected_message();
    let difference = text(&again, expected)?;
    let show = |bytes: &[u8]| {
        let mut shown = Vec::new();
        transcode::to_json(bytes, message, &options, &mut shown).unwrap();
        serde_json::from_slice::<Value>(&shown).unwrap()
    };
    if show(&again) == show(expected) {
        by_value.push(golden.name.clone());
        None
    } else {
        Some(difference)
    }
}

/// What Rust types cannot hold: a map's time that is null, and bytes that are absent where the type wants some.
const NOT_IN_TYPES: &[&str] = &[
    "HEAD/policy.v1.PodDisruptionBudget",
    "v1.33.0/policy.v1.PodDisruptionBudget",
    "v1.34.0/policy.v1.PodDisruptionBudget",
    "v1.35.0/certificates.k8s.io.v1beta1.PodCertificateRequest",
    "v1.35.0/policy.v1.PodDisruptionBudget",
    "v1.36.0/policy.v1.PodDisruptionBudget",
];

/// Kinds with a type and without a golden file: those outside of `k8s.io/api`. The corpus has them.
const NO_FILE: &[&str] = &[
    "apiextensions.k8s.io/v1 CustomResourceDefinition",
    "apiregistration.k8s.io/v1 APIService",
    "v1 APIGroupList",
    "v1 APIResourceList",
];

#[test]
fn rust_types_lose_nothing_on_the_way() {
    let (releases, all) = goldens();
    let (mut tally, mut by_value, mut untyped) = (Tally::default(), Vec::new(), BTreeSet::new());
    let mut seen = BTreeSet::new();
    for golden in releases.values().flatten() {
        let Some((_, options, _)) = golden.open() else { continue };
        let api_version = options.api_version.unwrap_or_default();
        let Some(typed) = typed::of(api_version, options.kind.unwrap_or_default()) else {
            untyped.insert(golden.kind());
            continue;
        };
        seen.insert((typed.api_version, typed.kind));
        tally.add(&golden.name, through_type(golden, typed, &mut by_value));
    }
    assert_eq!(by_value, [""; 0]);
    if !all {
        tally.assert("through Rust types", 13, &["own/policy.v1.PodDisruptionBudget"]);
        return;
    }
    let kinds = typed::KINDS.iter().map(|typed| (typed.api_version, typed.kind));
    let no_file: Vec<String> = kinds
        .filter(|kind| !seen.contains(kind))
        .map(|(api_version, kind)| format!("{api_version} {kind}"))
        .collect();
    assert_eq!(no_file, NO_FILE);
    assert_eq!((typed::KINDS.len(), seen.len(), untyped.len()), (109, 105, 88), "{untyped:?}");
    tally.assert("through Rust types", 471, NOT_IN_TYPES);
}
