//! Create, update, patch and delete.

mod body;
mod change;
mod create;
mod delete;
pub(crate) mod metadata;
mod names;
mod patch;
mod subresource;
mod update;

use serde_json::{Map, Value};

use crate::answer::{self, Answer};
use crate::body::Body;
use crate::dispatch::Call;
use crate::failure::{Cause, Outcome, bad_request, invalid};
use crate::record::Item;

pub(crate) use self::change::Subject;
pub(crate) use self::create::{create, insert};
pub(crate) use self::delete::{Options as DeleteOptions, delete, delete_collection, remove};
pub(crate) use self::patch::patch;
pub(crate) use self::subresource::{create_subresource, get_scale};
pub(crate) use self::update::update;

/// An object as it is worked on.
pub(crate) type Object = Map<String, Value>;

/// One object as an answer.
pub(crate) fn answer_object(call: &Call<'_>, item: &Item, code: u16) -> Answer {
    let renderer = call.renderer();
    answer::with(code, renderer.content_type(), Body::whole(renderer.object(item)))
}

/// Whether the request is to be done but not kept. `kind` is the kind of the options object.
fn dry_run(call: &Call<'_>, kind: &str) -> Outcome<bool> {
    match call.query.get("dryRun") {
        None | Some("") => Ok(false),
        Some("All") => Ok(true),
        Some(other) => {
            let shown = format!("[{other:?}]");
            let cause = Cause::unsupported_value("dryRun", &shown, "\"All\"");
            Err(invalid("meta.k8s.io", kind, "", &[cause]))
        }
    }
}

/// The object's metadata; an error if it is no object.
pub(crate) fn metadata_mut(object: &mut Object) -> Outcome<&mut Object> {
    match object.entry("metadata").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(metadata) => Ok(metadata),
        _ => Err(bad_request("the object's metadata is no object")),
    }
}

/// A text field of the object's metadata; empty if it is not there.
fn meta_text<'a>(object: &'a Object, field: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(field)?.as_str()).unwrap_or_default()
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Object) -> Vec<&str> {
    let finalizers = object.get("metadata").and_then(|metadata| metadata.get("finalizers"));
    let finalizers = finalizers.and_then(Value::as_array).into_iter().flatten();
    finalizers.filter_map(Value::as_str).collect()
}

/// Whether an object waits for its finalizers.
pub(crate) fn is_terminating(object: &Object) -> bool {
    !meta_text(object, "deletionTimestamp").is_empty()
}
