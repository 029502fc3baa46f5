//! Strategic merge patch: lists of built-in kinds are merged by the key of their elements.

use serde_json::{Map, Value};

/// Fields whose lists are merged, with the key of their elements (the `patchMergeKey` tags of k8s.io/api).
/// A field of this name is merged by the same key in every kind that has it.
const MERGE_KEYS: &[(&str, &str)] = &[
    ("addresses", "type"),
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("matchImageVolumes", "name"),
    ("ownerReferences", "uid"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("secrets", "name"),
    ("taints", "key"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
    ("volumesAttached", "name"),
];

/// Lists of plain values that are merged as sets.
const MERGE_SETS: &[&str] = &["finalizers", "podCIDRs", "hostIPs", "podIPs"];

/// Container lists, within which `ports` goes by `containerPort`; elsewhere it goes by `port`.
const CONTAINERS: &[&str] = &["containers", "initContainers", "ephemeralContainers"];

fn merge_key(field: &str, in_container: bool) -> Option<&'static str> {
    if field == "ports" {
        return Some(if in_container { "containerPort" } else { "port" });
    }
    let row = MERGE_KEYS.iter().find(|(name, _)| *name == field);
    row.map(|(_, key)| *key)
}

/// Merges a patch into an object. The error says what of the patch cannot be understood.
pub(crate) fn merge(target: &mut Value, patch: &Value) -> Result<(), String> {
    merge_value(target, patch, false)
}

fn merge_value(target: &mut Value, patch: &Value, in_container: bool) -> Result<(), String> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            let kept = patch.iter().filter(|(field, _)| *field != "$patch");
            *target =
                Value::Object(kept.map(|(field, value)| (field.clone(), value.clone())).collect());
            return Ok(());
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => return Err(format!("unknown patch type found: {other}")),
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return Ok(()) };
    for (field, value) in patch {
        if let Some(list) = field.strip_prefix("$deleteFromPrimitiveList/") {
            delete_values(target, list, value);
        } else if field == "$retainKeys" {
            retain_keys(target, value);
        } else if field.starts_with('$') {
            // The order of elements is a wish that a merge may leave aside.
        } else if value.is_null() {
            target.remove(field);
        } else {
            merge_field(target, field, value, in_container)?;
        }
    }
    Ok(())
}

fn merge_field(
    target: &mut Map<String, Value>,
    field: &str,
    value: &Value,
    in_container: bool,
) -> Result<(), String> {
    let slot = target.entry(field).or_insert(Value::Null);
    match value {
        Value::Array(patch) => {
            let key = merge_key(field, in_container);
            let objects = patch.iter().all(Value::is_object);
            match key {
                Some(key) if objects => {
                    merge_list(slot, patch, key, CONTAINERS.contains(&field))?;
                }
                _ if MERGE_SETS.contains(&field) && !objects => merge_set(slot, patch),
                _ => *slot = value.clone(),
            }
            Ok(())
        }
        // What is below a container's own fields is no container.
        value => merge_value(slot, value, false),
    }
}

/// Merges a list of objects by key.
fn merge_list(
    slot: &mut Value,
    patch: &[Value],
    key: &str,
    in_container: bool,
) -> Result<(), String> {
    let mut list = match slot.take() {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    let directive =
        |element: &Value| element.get("$patch").and_then(Value::as_str).map(str::to_owned);
    if patch.iter().any(|element| directive(element).as_deref() == Some("replace")) {
        let kept = patch.iter().filter(|element| directive(element).is_none());
        *slot = Value::Array(kept.cloned().collect());
        return Ok(());
    }
    let before = list.clone();
    let mut named = Vec::new();
    for element in patch {
        let Some(id) = element.get(key) else {
            return Err(format!("map: does not contain declared merge key: {key}"));
        };
        named.push(id);
        let at = list.iter().position(|existing| existing.get(key) == Some(id));
        match (at, directive(element).as_deref()) {
            (Some(at), Some("delete")) => {
                list.remove(at);
            }
            (None, Some("delete")) => {}
            (Some(at), _) => merge_value(&mut list[at], element, in_container)?,
            (None, _) => {
                let mut new = Value::Object(Map::new());
                merge_value(&mut new, element, in_container)?;
                list.push(new);
            }
        }
    }
    let id = |element: &Value| element.get(key).cloned().unwrap_or_default();
    *slot = Value::Array(ordered(list, &before, &named, id));
    Ok(())
}

/// The order of Go's `mergeSortedSlice`: what the patch names in its order, what only the server has in the old order;
/// between the two the old order decides, and what is new comes first.
fn ordered(
    list: Vec<Value>,
    before: &[Value],
    named: &[&Value],
    id: impl Fn(&Value) -> Value,
) -> Vec<Value> {
    let place = |value: &Value| before.iter().position(|old| id(old) == id(value));
    let by_patch = |value: &Value| named.iter().position(|name| **name == id(value));
    let (mut patched, kept): (Vec<Value>, Vec<Value>) =
        list.into_iter().partition(|value| by_patch(value).is_some());
    patched.sort_by_key(by_patch);
    let mut kept = kept.into_iter().peekable();
    let mut merged = Vec::new();
    for value in patched {
        while let (Some(own), Some(next)) = (place(&value), kept.peek())
            && place(next).is_some_and(|other| other < own)
        {
            merged.extend(kept.next());
        }
        merged.push(value);
    }
    merged.extend(kept);
    merged
}

fn merge_set(slot: &mut Value, patch: &[Value]) {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    if let Value::Array(list) = slot {
        let before = list.clone();
        for value in patch {
            if !list.contains(value) {
                list.push(value.clone());
            }
        }
        let named: Vec<&Value> = patch.iter().collect();
        *list = ordered(std::mem::take(list), &before, &named, Value::clone);
    }
}

fn delete_values(target: &mut Map<String, Value>, field: &str, values: &Value) {
    if let (Some(Value::Array(list)), Value::Array(values)) = (target.get_mut(field), values) {
        list.retain(|value| !values.contains(value));
    }
}

fn retain_keys(target: &mut Map<String, Value>, keys: &Value) {
    if let Value::Array(keys) = keys {
        target.retain(|field, _| keys.iter().any(|key| key.as_str() == Some(field)));
    }
}
