//! What is served, told in both forms: legacy lists, and the aggregated `apidiscovery.k8s.io/v2`.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};

use crate::answer::{self, Answer};
use crate::body::Body;
use crate::catalog::Resource;
use crate::failure::{Failure, Outcome};
use crate::media::{self, Offer, Shape};
use crate::server::Core;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The version of Kubernetes whose behaviour is served.
pub(crate) fn version() -> Answer {
    answer::json(
        200,
        &json!({
            "major": "1",
            "minor": "37",
            "emulationMajor": "1",
            "emulationMinor": "37",
            "minCompatibilityMajor": "1",
            "minCompatibilityMinor": "36",
            "gitVersion": "v1.37.2+kubestrata",
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "rustc",
            "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        }),
    )
}

fn offer() -> Offer {
    Offer { protobuf: false, metadata: false, aggregated: true }
}

/// `/api`
pub(crate) fn api(core: &Core, headers: &HeaderMap) -> Outcome<Answer> {
    match media::negotiate(headers, offer())?.shape {
        Shape::Aggregated => Ok(aggregated(core, headers, |group| group.is_empty())),
        _ => Ok(answer::json(
            200,
            &json!({
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
            }),
        )),
    }
}

/// `/apis`
pub(crate) fn apis(core: &Core, headers: &HeaderMap) -> Outcome<Answer> {
    if media::negotiate(headers, offer())?.shape == Shape::Aggregated {
        return Ok(aggregated(core, headers, |group| !group.is_empty()));
    }
    let groups = groups(core);
    let groups = groups.iter().filter(|group| !group.name.is_empty()).map(Group::legacy);
    let groups: Vec<Value> = groups.collect();
    Ok(answer::json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
}

/// `/apis/GROUP`
pub(crate) fn group(core: &Core, name: &str) -> Outcome<Answer> {
    let groups = groups(core);
    let group = groups.iter().find(|group| group.name == name && !name.is_empty());
    let mut value = group.ok_or_else(Failure::no_path)?.legacy();
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Ok(answer::json(200, &value))
}

/// `/api/v1`, `/apis/GROUP/VERSION`
pub(crate) fn group_version(core: &Core, group: &str, version: &str) -> Outcome<Answer> {
    let all = core.catalog.all();
    let served =
        all.iter().filter(|served| served.ty.group == group && served.ty.version == version);
    let resources: Vec<Value> = served.flat_map(|resource| legacy_resources(resource)).collect();
    if resources.is_empty() {
        return Err(Failure::no_path());
    }
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(answer::json(
        200,
        &json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": resources,
        }),
    ))
}

/// Whether anything of a group is served.
pub(crate) fn has_group(core: &Core, group: &str) -> bool {
    core.catalog.all().iter().any(|served| served.ty.group == group)
}

/// Resources of one group, by version.
struct Group {
    name: String,
    /// The preferred version first.
    versions: Vec<(String, Vec<Arc<Resource>>)>,
}

impl Group {
    fn legacy(&self) -> Value {
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|(version, _)| {
                json!({"groupVersion": format!("{}/{version}", self.name), "version": version})
            })
            .collect();
        json!({"name": self.name, "versions": versions, "preferredVersion": versions[0]})
    }
}

/// All groups in the order of the catalogue, each with its versions by apimachinery's order of preference.
fn groups(core: &Core) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for resource in core.catalog.all() {
        let (name, version) = (&*resource.ty.group, &*resource.ty.version);
        let at = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
            groups.push(Group { name: name.to_owned(), versions: Vec::new() });
            groups.len() - 1
        });
        let versions = &mut groups[at].versions;
        match versions.iter_mut().find(|(other, _)| other == version) {
            Some((_, resources)) => resources.push(resource),
            None => versions.push((version.to_owned(), vec![resource])),
        }
    }
    for group in &mut groups {
        group.versions.sort_by_key(|(version, _)| std::cmp::Reverse(preference(version)));
    }
    groups
}

/// GA before beta before alpha, higher numbers first, anything else last (apimachinery `version.CompareKubeAwareVersionStrings`).
pub(crate) fn preference(version: &str) -> (u8, u64, u64) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let (stage, minor) = match &rest[digits..] {
            "" => (3, "0"),
            rest => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
                (Some(minor), _) => (2, minor),
                (_, Some(minor)) => (1, minor),
                _ => return None,
            },
        };
        Some((stage, major, minor.parse().ok()?))
    };
    parse().unwrap_or((0, 0, 0))
}

fn legacy_resources(resource: &Resource) -> Vec<Value> {
    let (ty, info) = (&resource.ty, &resource.info);
    let mut value = json!({
        "name": ty.plural,
        "singularName": info.singular,
        "namespaced": ty.is_namespaced(),
        "kind": ty.kind,
        "verbs": info.verbs,
    });
    if !info.short_names.is_empty() {
        value["shortNames"] = json!(info.short_names);
    }
    if !info.categories.is_empty() {
        value["categories"] = json!(info.categories);
    }
    if !info.builtin || resource.store.is_some() {
        value["storageVersionHash"] = storage_hash(resource).into();
    }
    let mut out = vec![value];
    for subresource in &info.subresources {
        let mut value = json!({
            "name": format!("{}/{}", ty.plural, subresource.name),
            "singularName": "",
            "namespaced": ty.is_namespaced(),
            "kind": subresource.kind,
            "verbs": subresource.verbs,
        });
        if !subresource.version.is_empty() && (subresource.group != ty.group) {
            value["group"] = subresource.group.as_str().into();
            value["version"] = subresource.version.as_str().into();
        }
        out.push(value);
    }
    out
}

/// An opaque value that changes with the storage version; ours are all distinct and stable.
fn storage_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    let text = format!("{}/{}/{}", resource.ty.group, resource.ty.version, resource.ty.kind);
    base64::engine::general_purpose::STANDARD.encode(fnv(text.as_bytes()).to_be_bytes())
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn aggregated(core: &Core, headers: &HeaderMap, which: impl Fn(&str) -> bool) -> Answer {
    let items: Vec<Value> = groups(core)
        .iter()
        .filter(|group| which(&group.name))
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|(version, resources)| {
                    let resources: Vec<Value> =
                        resources.iter().map(|resource| aggregated_resource(resource)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.name.is_empty() {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": group.name, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let value = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let mut text = value.to_string();
    text.push('\n');
    let tag = format!("\"{:016X}\"", fnv(text.as_bytes()));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut answer = if known == Some(tag.as_str()) {
        answer::with(304, AGGREGATED, Body::whole(bytes::Bytes::new()))
    } else {
        answer::with(200, AGGREGATED, Body::whole(text))
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    answer
}

fn aggregated_resource(resource: &Resource) -> Value {
    let (ty, info) = (&resource.ty, &resource.info);
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut value = json!({
        "resource": ty.plural,
        "responseKind": kind(&ty.group, &ty.version, &ty.kind),
        "scope": if ty.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": info.singular,
        "verbs": info.verbs,
    });
    if !info.short_names.is_empty() {
        value["shortNames"] = json!(info.short_names);
    }
    if !info.categories.is_empty() {
        value["categories"] = json!(info.categories);
    }
    if !info.subresources.is_empty() {
        let subresources = info.subresources.iter().map(|sub| {
            let (group, version) = if sub.version.is_empty() {
                (&*ty.group, &*ty.version)
            } else {
                (sub.group.as_str(), sub.version.as_str())
            };
            json!({
                "subresource": sub.name,
                "responseKind": kind(group, version, &sub.kind),
                "verbs": sub.verbs,
            })
        });
        value["subresources"] = subresources.collect();
    }
    value
}
