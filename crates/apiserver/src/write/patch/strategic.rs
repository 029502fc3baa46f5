//! Strategic merge patch: lists of built-in kinds are merged as the tags of `k8s.io/api` say (`patchStrategy` and
//! `patchMergeKey`), after client-go's `strategicpatch` with `MergeParallelList` and `IgnoreUnmatchedNulls`.

use kubestrata_codec::schema::Message;
use serde_json::Value;

use super::order::{self, same_order};
use crate::failure::{Failure, Outcome, bad_request, rejected_patch, unclassified};
use crate::write::Object;

/// In an object or an element of a list: what to do with it.
const DIRECTIVE: &str = "$patch";
/// The only fields that may stay.
const RETAIN_KEYS: &str = "$retainKeys";
/// Before the name of a list of plain values: what to take out of it.
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";
/// Before the name of a list: the order that its elements shall have.
const ORDER_PREFIX: &str = "$setElementOrder/";

/// What is known of the fields of an object.
#[derive(Clone, Copy)]
enum Fields {
    Of(&'static Message),
    /// The keys of a map, or the fields of free JSON.
    Unknown,
}

/// How a field is merged.
struct Rule {
    /// Objects are replaced and not merged.
    replaces: bool,
    /// Lists are merged and not replaced.
    merges: bool,
    /// What tells the elements of a list apart; empty for plain values.
    key: &'static str,
    /// The fields of the object, or of the elements of the list.
    fields: Fields,
}

impl Fields {
    /// The rule of a field that both the object and the patch have, as an object or as a list.
    fn rule(self, name: &str) -> Outcome<Rule> {
        let Self::Of(message) = self else {
            return Err(unclassified(
                "merging an object in json but data type is not struct, instead is: map",
            ));
        };
        let field = message.by_name(name).ok_or_else(|| {
            let go_name = message.name().rsplit('.').next().unwrap_or_default();
            unclassified(format!(
                "unable to find api field in struct {go_name} for the json field {name:?}"
            ))
        })?;
        let merge = field.merge();
        let has = |wanted| merge.strategy.split(',').any(|strategy| strategy == wanted);
        let fields = match field.message() {
            Some(message) if !field.is_map() => Self::Of(message),
            _ => Self::Unknown,
        };
        Ok(Rule { replaces: has("replace"), merges: has("merge"), key: merge.key, fields })
    }
}

/// Merges a patch into an object of a kind.
pub(crate) fn merge(target: &mut Value, patch: &Value, kind: &'static Message) -> Outcome<()> {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            merge_map(target, patch.clone(), Fields::Of(kind))
        }
        _ => Err(rejected_patch()),
    }
}

fn merge_map(target: &mut Object, mut patch: Object, fields: Fields) -> Outcome<()> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                *target = patch;
            }
            Some("delete") => target.clear(),
            _ => return Err(unknown_directive(&directive.clone(), &Value::Object(patch))),
        }
        return Ok(());
    }
    retain_keys(target, &mut patch)?;
    merge_ordered(target, &mut patch, fields)?;
    for (field, value) in patch {
        match field.strip_prefix(DELETE_PREFIX) {
            Some(list) => delete_values(target, list, &value),
            None => merge_field(target, field, value, fields)?,
        }
    }
    Ok(())
}

fn merge_field(target: &mut Object, field: String, value: Value, fields: Fields) -> Outcome<()> {
    match (target.get_mut(&field), value) {
        (_, Value::Null) => {
            target.remove(&field);
        }
        (Some(Value::Object(old)), Value::Object(new)) => {
            let rule = fields.rule(&field)?;
            if rule.replaces {
                *old = new;
            } else {
                merge_map(old, new, rule.fields)?;
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            merge_list(old, new, &fields.rule(&field)?)?;
        }
        (_, value) => match bare(value) {
            Some(value) => {
                target.insert(field, value);
            }
            None => {
                target.remove(&field);
            }
        },
    }
    Ok(())
}

/// A value that is new, without directives and nulls. `None` if it is itself a directive.
fn bare(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => return None,
        Value::Object(object) => {
            let fields = object.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.filter_map(|(field, value)| Some((field, bare(value)?))).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().filter_map(bare).collect()),
        value => value,
    })
}

fn merge_list(list: &mut Vec<Value>, patch: Vec<Value>, rule: &Rule) -> Outcome<()> {
    if !rule.merges {
        *list = patch;
        return Ok(());
    }
    let Some(first) = list.iter().chain(&patch).next() else { return Ok(()) };
    if first.is_array() {
        return Err(rejected_patch());
    }
    let is_objects = first.is_object();
    let kind = std::mem::discriminant(first);
    if list.iter().chain(&patch).any(|value| std::mem::discriminant(value) != kind) {
        return Err(unclassified("list element types are not identical"));
    }
    if is_objects { merge_elements(list, patch, rule) } else { merge_values(list, &patch) }
}

/// Merges a list of objects by key.
fn merge_elements(list: &mut Vec<Value>, patch: Vec<Value>, rule: &Rule) -> Outcome<()> {
    let key = rule.key;
    if key.is_empty() {
        return Err(unclassified("cannot merge lists without merge key for struct"));
    }
    let mut is_replaced = false;
    let mut named = Vec::new();
    for element in patch {
        let directive = element.get(DIRECTIVE);
        match directive.map(|directive| directive.as_str().unwrap_or_default()) {
            None => named.push(element),
            Some("delete") => {
                let id = id_of(&element, key)?;
                list.retain(|existing| existing.get(key) != Some(id));
            }
            Some("replace") => is_replaced = true,
            Some("merge") => {
                return Err(unclassified("merging lists cannot yet be specified in the patch"));
            }
            Some(_) => return Err(unknown_directive(&element[DIRECTIVE], &element)),
        }
    }
    if is_replaced {
        *list = named;
        return Ok(());
    }
    let before = list.clone();
    for element in &named {
        let id = id_of(element, key)?;
        let found = list.iter_mut().find(|existing| existing.get(key) == Some(id));
        match (found, element) {
            (Some(Value::Object(existing)), Value::Object(element)) => {
                merge_map(existing, element.clone(), rule.fields)?;
            }
            _ => list.push(element.clone()),
        }
    }
    order::restore(list, &before, &named, key);
    Ok(())
}

/// Merges a list of plain values as a set.
fn merge_values(list: &mut Vec<Value>, patch: &[Value]) -> Outcome<()> {
    let before = list.clone();
    for value in patch {
        if !list.contains(value) {
            list.push(value.clone());
        }
    }
    order::restore(list, &before, patch, "");
    Ok(())
}

/// Merges the lists whose order the patch gives, and takes them out of the patch.
fn merge_ordered(target: &mut Object, patch: &mut Object, fields: Fields) -> Outcome<()> {
    let ordered = |field: &String| field.strip_prefix(ORDER_PREFIX).map(str::to_owned);
    let lists: Vec<String> = patch.keys().filter_map(ordered).collect();
    for field in lists {
        let order = list_of(patch.remove(&format!("{ORDER_PREFIX}{field}")))?.unwrap_or_default();
        let old = list_of(target.remove(&field))?;
        let change = list_of(patch.remove(&field))?;
        let rule = fields.rule(&field)?;
        if let Some(change) = &change {
            check_order(change, &order, rule.key)?;
        }
        let before = old.clone().unwrap_or_default();
        let mut merged = match (old, change) {
            (Some(mut list), Some(change)) => {
                merge_list(&mut list, change, &rule)?;
                list
            }
            (None, Some(change)) => change.into_iter().filter_map(bare).collect(),
            (Some(list), None) => list,
            (None, None) => continue,
        };
        order::restore(&mut merged, &before, &order, rule.key);
        target.insert(field, Value::Array(merged));
    }
    Ok(())
}

fn list_of(value: Option<Value>) -> Outcome<Option<Vec<Value>>> {
    match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(_) => Err(unclassified("expected a []interface {}, but received something else")),
    }
}

/// The elements of a patch must come in the order that the patch asks for.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Outcome<()> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let patch: Vec<&Value> = patch.iter().filter(|value| value.get(DIRECTIVE).is_none()).collect();
    if !key.is_empty() {
        patch.iter().copied().chain(order).try_for_each(|value| id_of(value, key).map(drop))?;
    }
    if same_order(&patch, order, key) {
        return Ok(());
    }
    let patch: Vec<String> = patch.into_iter().map(go_text).collect();
    let order: Vec<String> = order.iter().map(go_text).collect();
    Err(unclassified(format!(
        "The order in patch list:\n[{}]\n doesn't match $setElementOrder list:\n[{}]\n",
        patch.join(" "),
        order.join(" ")
    )))
}

/// What tells an element of a patch from others.
fn id_of<'a>(element: &'a Value, key: &str) -> Outcome<&'a Value> {
    element.get(key).ok_or_else(|| {
        let shown = go_text(element);
        unclassified(format!("map: {shown} does not contain declared merge key: {key}"))
    })
}

fn delete_values(target: &mut Object, field: &str, values: &Value) {
    match (target.get_mut(field), values) {
        (Some(Value::Array(list)), Value::Array(values)) => {
            list.retain(|value| !values.contains(value));
        }
        (_, Value::Null) => {
            target.remove(field);
        }
        _ => {}
    }
}

/// Takes away all fields but those that the patch lists. It must list all that it sets.
fn retain_keys(target: &mut Object, patch: &mut Object) -> Outcome<()> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || bad_request("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(malformed)?;
    let is_kept = |field: &str| keys.iter().any(|key| key.as_str() == Some(field));
    let is_covered = |(field, value): (&String, &Value)| {
        let directive = field.starts_with(DELETE_PREFIX) || field.starts_with(ORDER_PREFIX);
        value.is_null() || directive || is_kept(field)
    };
    if !patch.iter().all(is_covered) {
        return Err(malformed());
    }
    target.retain(|field, _| is_kept(field));
    Ok(())
}

fn unknown_directive(directive: &Value, object: &Value) -> Failure {
    let (directive, object) = (go_text(directive), go_text(object));
    unclassified(format!("unknown patch type: {directive} in map: {object}"))
}

/// A value as `%v` of Go shows it.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(go_text).collect::<Vec<_>>().join(" "))
        }
        Value::Object(object) => {
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_by_key(|(field, _)| *field);
            let shown = fields.iter().map(|(field, value)| format!("{field}:{}", go_text(value)));
            format!("map[{}]", shown.collect::<Vec<_>>().join(" "))
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
