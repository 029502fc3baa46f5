//! Structural schemas of custom resources: what is pruned, defaulted and refused.
//!
//! Types, required fields, enumerations, bounds and lengths are checked. Patterns, formats, list types and CEL rules are not.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::Cause;

/// How deep a schema is followed; what is below is taken as it is.
const DEPTH_MAX: usize = 64;

/// One node of `openAPIV3Schema`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Schema {
    r#type: String,
    properties: BTreeMap<String, Self>,
    additional_properties: Option<Additional>,
    items: Option<Box<Self>>,
    required: Vec<String>,
    r#enum: Vec<Value>,
    default: Option<Value>,
    nullable: bool,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    preserve: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    int_or_string: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    embedded: bool,
}

/// `additionalProperties` is a schema or a flag.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Additional {
    Flag(bool),
    Schema(Box<Schema>),
}

impl Schema {
    /// A schema from a definition; `None` where it cannot be understood, and nothing is pruned or refused.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    /// Prunes and defaults an object, all but its type and metadata, and tells what of it is not allowed.
    pub(crate) fn admit(&self, object: &mut Map<String, Value>) -> Vec<Cause> {
        self.prune(object, true, DEPTH_MAX);
        self.fill(object, DEPTH_MAX);
        let mut causes = Vec::new();
        self.check_fields(object, "", &mut causes, DEPTH_MAX);
        causes
    }

    /// Drops the fields that nobody has specified.
    fn prune(&self, object: &mut Map<String, Value>, root: bool, depth: usize) {
        if depth == 0 {
            return;
        }
        let kept = |field: &str| {
            (root || self.embedded) && matches!(field, "metadata" | "kind" | "apiVersion")
        };
        object.retain(|field, _| {
            self.preserve || kept(field) || self.child(field).is_some() || self.takes_any_field()
        });
        for (field, value) in object.iter_mut() {
            if !kept(field)
                && let Some(schema) = self.child(field)
            {
                schema.prune_value(value, depth - 1);
            }
        }
    }

    fn prune_value(&self, value: &mut Value, depth: usize) {
        match value {
            Value::Object(object) => self.prune(object, false, depth),
            Value::Array(list) => {
                if let Some(items) = &self.items {
                    list.iter_mut().for_each(|value| items.prune_value(value, depth));
                }
            }
            _ => {}
        }
    }

    fn child(&self, field: &str) -> Option<&Self> {
        match (self.properties.get(field), &self.additional_properties) {
            (Some(schema), _) => Some(schema),
            (None, Some(Additional::Schema(schema))) => Some(schema),
            (None, _) => None,
        }
    }

    fn takes_any_field(&self) -> bool {
        matches!(self.additional_properties, Some(Additional::Flag(true)))
    }

    /// Sets what is absent, or null where null is not allowed, and has a default.
    fn fill(&self, object: &mut Map<String, Value>, depth: usize) {
        if depth == 0 {
            return;
        }
        for (field, schema) in &self.properties {
            let absent = match object.get(field) {
                None => true,
                Some(value) => value.is_null() && !schema.nullable,
            };
            match &schema.default {
                Some(default) if absent => {
                    object.insert(field.clone(), default.clone());
                }
                // A null that is not allowed is as good as nothing, where nothing is asked.
                None if absent => {
                    object.remove(field);
                }
                _ => {}
            }
        }
        for (field, value) in object.iter_mut() {
            if let Some(schema) = self.child(field) {
                schema.fill_value(value, depth - 1);
            }
        }
    }

    fn fill_value(&self, value: &mut Value, depth: usize) {
        match value {
            Value::Object(object) => self.fill(object, depth),
            Value::Array(list) => {
                if let Some(items) = &self.items {
                    list.iter_mut().for_each(|value| items.fill_value(value, depth));
                }
            }
            _ => {}
        }
    }

    fn check_fields(
        &self,
        object: &Map<String, Value>,
        path: &str,
        causes: &mut Vec<Cause>,
        depth: usize,
    ) {
        let below = |field: &str| {
            if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
        };
        for field in self.required.iter().filter(|field| !object.contains_key(*field)) {
            causes.push(Cause::required(&below(field), ""));
        }
        if depth == 0 {
            return;
        }
        for (field, value) in object {
            if path.is_empty() && matches!(field.as_str(), "metadata" | "kind" | "apiVersion") {
                continue;
            }
            if let Some(schema) = self.child(field) {
                schema.check(value, &below(field), causes, depth - 1);
            }
        }
    }

    fn check(&self, value: &Value, path: &str, causes: &mut Vec<Cause>, depth: usize) {
        if value.is_null() && self.nullable {
            return;
        }
        if !self.has_type(value) {
            let shown = format!("{:?}", type_of(value));
            let detail = format!("{path} in body must be of type {}: {shown}", self.r#type);
            causes.push(Cause {
                reason: "FieldValueTypeInvalid",
                ..Cause::invalid(path, &shown, &detail)
            });
            return;
        }
        if !self.r#enum.is_empty() && !self.r#enum.contains(value) {
            let supported: Vec<String> = self.r#enum.iter().map(Value::to_string).collect();
            let supported = supported.join(", ");
            causes.push(Cause::unsupported_value(path, &value.to_string(), &supported));
        }
        self.check_bounds(value, path, causes);
        match value {
            Value::Object(object) => self.check_fields(object, path, causes, depth),
            Value::Array(list) if depth > 0 => {
                for (index, value) in list.iter().enumerate() {
                    if let Some(items) = &self.items {
                        items.check(value, &format!("{path}[{index}]"), causes, depth - 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn has_type(&self, value: &Value) -> bool {
        if self.int_or_string {
            return value.is_string() || value.is_i64() || value.is_u64();
        }
        match self.r#type.as_str() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => {
                value.is_i64()
                    || value.is_u64()
                    || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => true,
        }
    }

    fn check_bounds(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let mut refuse = |shown: &str, detail: String| {
            causes.push(Cause::invalid(path, shown, &format!("{path} in body {detail}")));
        };
        if let Some(number) = value.as_f64() {
            let shown = value.to_string();
            if let Some(minimum) = self.minimum.filter(|minimum| number < *minimum) {
                refuse(&shown, format!("should be greater than or equal to {minimum}"));
            }
            if let Some(maximum) = self.maximum.filter(|maximum| number > *maximum) {
                refuse(&shown, format!("should be less than or equal to {maximum}"));
            }
        }
        if let Some(text) = value.as_str() {
            let length = text.chars().count();
            let shown = value.to_string();
            if let Some(minimum) = self.min_length.filter(|minimum| length < *minimum) {
                refuse(&shown, format!("should be at least {minimum} chars long"));
            }
            if let Some(maximum) = self.max_length.filter(|maximum| length > *maximum) {
                refuse(&shown, format!("should be at most {maximum} chars long"));
            }
        }
        if let Some(list) = value.as_array() {
            let shown = list.len().to_string();
            if let Some(minimum) = self.min_items.filter(|minimum| list.len() < *minimum) {
                refuse(&shown, format!("should have at least {minimum} items"));
            }
            if let Some(maximum) = self.max_items.filter(|maximum| list.len() > *maximum) {
                refuse(&shown, format!("should have at most {maximum} items"));
            }
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
