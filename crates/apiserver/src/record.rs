//! An object as it is stored and served: encoded once, shared by storage, cache, history and answers.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kubestrata_api_types::{LabelSelector, ObjectKey, ResourceType};
use kubestrata_codec::schema::Message;
use kubestrata_codec::{proto, transcode};
use serde_json::{Map, Value};

use crate::catalog::Resource;
use crate::failure::{Outcome, bad_request};
use crate::selectable::{FieldTest, Place};

/// One version of one object. A clone is a reference count.
#[derive(Debug, Clone)]
pub(crate) struct Item(Arc<Record>);

/// What is behind an [`Item`].
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) key: ObjectKey,
    pub(crate) revision: u64,
    shape: Arc<Shape>,
    /// The object as JSON without `kind` and `apiVersion`, starting with `{"metadata":{`.
    ///
    /// The type is left out so that one encoding serves lists, whose items carry none, and every version of a custom kind.
    json: Bytes,
    /// Where the digits of the resource version are in `json`.
    version: Range<usize>,
    /// The message without envelope, made when it is first asked for; `None` inside if it cannot be made.
    protobuf: OnceLock<Option<Bytes>>,
}

/// What does not change when an object is given another version.
#[derive(Debug)]
struct Shape {
    labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the fields that a selector may name, in the order of the resource's `Selectable`.
    fields: Box<[Box<str>]>,
    /// Length of `{"metadata":{...}` without the digits of the version.
    metadata_len: usize,
}

impl Deref for Item {
    type Target = Record;
    fn deref(&self) -> &Record {
        &self.0
    }
}

impl kubestrata_storage::Value for Item {
    fn size(&self) -> usize {
        self.heap_bytes()
    }
}

impl kubestrata_watch_cache::Item for Item {
    fn size(&self) -> usize {
        self.heap_bytes()
    }
}

impl Record {
    fn heap_bytes(&self) -> usize {
        let protobuf = self.protobuf.get().and_then(Option::as_ref).map_or(0, Bytes::len);
        size_of::<Self>() + self.json.len() + protobuf
    }

    /// The object as JSON without its type: `{"metadata":{...},...}`.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }

    /// `{"metadata":{...}`, still open.
    pub(crate) fn metadata_json(&self) -> &[u8] {
        &self.json[..self.shape.metadata_len + self.version.len()]
    }

    /// The message without envelope; `None` if the object does not fit its schema, which a write does not let happen.
    pub(crate) fn protobuf(&self, message: &'static Message) -> Option<&Bytes> {
        let make = || {
            let mut out = Vec::new();
            transcode::to_protobuf(&self.json, message, &mut out).ok()?;
            out.shrink_to_fit();
            Some(Bytes::from(out))
        };
        self.protobuf.get_or_init(make).as_ref()
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let at = self.shape.labels.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        Some(&self.shape.labels[at].1)
    }

    pub(crate) fn matches_labels(&self, selector: &LabelSelector) -> bool {
        selector.matches(|key| self.label(key))
    }

    pub(crate) fn matches_fields(&self, tests: &[FieldTest]) -> bool {
        tests.iter().all(|test| {
            let value = match test.place {
                Place::Name => self.key.name(),
                Place::Namespace => self.key.namespace().unwrap_or_default(),
                Place::Value(index) => self.shape.fields.get(index).map_or("", |value| value),
            };
            (value == test.value) == test.equal
        })
    }

    /// The object as a value, without `kind` and `apiVersion`.
    pub(crate) fn value(&self) -> Map<String, Value> {
        // What is stored was written by this crate.
        serde_json::from_slice(&self.json).expect("a stored object is a JSON object")
    }

    /// The same content with another version.
    pub(crate) fn at(&self, revision: u64) -> Item {
        let (head, tail) = (&self.json[..self.version.start], &self.json[self.version.end..]);
        Item::assemble(self.key.clone(), revision, self.shape.clone(), head, tail)
    }

    /// Whether the content is the same, whatever the versions.
    pub(crate) fn same_content(&self, draft: &Draft) -> bool {
        self.json[..self.version.start] == *draft.head
            && self.json[self.version.end..] == *draft.tail
    }
}

impl Item {
    fn assemble(
        key: ObjectKey,
        revision: u64,
        shape: Arc<Shape>,
        head: &[u8],
        tail: &[u8],
    ) -> Self {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(revision).as_bytes();
        Self::with_digits(key, revision, shape, head, digits, tail)
    }

    fn with_digits(
        key: ObjectKey,
        revision: u64,
        shape: Arc<Shape>,
        head: &[u8],
        digits: &[u8],
        tail: &[u8],
    ) -> Self {
        let mut json = Vec::with_capacity(head.len() + digits.len() + tail.len());
        json.extend_from_slice(head);
        json.extend_from_slice(digits);
        let version = head.len()..json.len();
        json.extend_from_slice(tail);
        let protobuf = OnceLock::new();
        Self(Arc::new(Record { key, revision, shape, json: json.into(), version, protobuf }))
    }
}

/// An object that is ready to be written, but for its version.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) key: ObjectKey,
    shape: Arc<Shape>,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Draft {
    /// Encodes an object. Its type and its version are left out; `metadata` must be there and have a name.
    ///
    /// An object of a built-in kind takes the way through its schema: fields that the schema lacks are dropped, and the
    /// rest is written in Go's order and forms.
    ///
    /// # Errors
    ///
    /// 400 if the object does not fit its schema.
    pub(crate) fn new(object: &Map<String, Value>, resource: &Resource) -> Outcome<Self> {
        let empty = Map::new();
        let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        let text = |field: &str| metadata.get(field).and_then(Value::as_str);
        let key = ObjectKey::new(text("namespace"), text("name").unwrap_or_default());
        let labels = metadata.get("labels").and_then(Value::as_object);
        let labels = labels
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()));
        let mut labels: Vec<(Box<str>, Box<str>)> = labels.collect();
        // A search for a label wants them in order, whatever the order of the map.
        labels.sort_unstable();
        let fields = resource.info.selectable.values(object);
        let text = match resource.message {
            Some(message) => typed(object, message, &resource.ty)?,
            None => untyped(object, metadata),
        };
        let Text { head, tail, metadata_len } = text;
        let shape = Arc::new(Shape { labels: labels.into(), fields, metadata_len });
        Ok(Self { key, shape, head, tail })
    }

    /// The object without a version, as a dry run answers with it.
    pub(crate) fn unversioned(&self) -> Item {
        let (key, shape) = (self.key.clone(), self.shape.clone());
        Item::with_digits(key, 0, shape, &self.head, b"", &self.tail)
    }

    /// The object at a version.
    pub(crate) fn at(&self, revision: u64) -> Item {
        Item::assemble(self.key.clone(), revision, self.shape.clone(), &self.head, &self.tail)
    }
}

/// An object's JSON in two parts: up to the digits of its version, and after them.
struct Text {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Length of `{"metadata":{...}` without the digits.
    metadata_len: usize,
}

const VERSION: &str = "\"resourceVersion\":\"";

/// The text of an object with a schema.
fn typed(
    object: &Map<String, Value>,
    message: &'static Message,
    ty: &ResourceType,
) -> Outcome<Text> {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), "0".into());
    }
    let json = Value::Object(object).to_string();
    let refuse = |problem: &dyn std::fmt::Display| {
        let (kind, version) = (&ty.kind, &ty.version);
        bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {problem}"
        ))
    };
    let mut bytes = Vec::new();
    transcode::to_protobuf(json.as_bytes(), message, &mut bytes).map_err(|error| refuse(&error))?;
    let mut text = Vec::with_capacity(json.len());
    transcode::to_json(&bytes, message, &proto::Options::default(), &mut text)
        .map_err(|error| refuse(&error))?;
    // What stands before the version is `{"metadata":{` and strings, in which a quote is escaped: the first place that
    // looks like the version is the version.
    let at = memchr::memmem::find(&text, VERSION.as_bytes())
        .ok_or_else(|| refuse(&"the kind has no metadata"))?;
    let tail = text.split_off(at + VERSION.len() + 1);
    text.truncate(at + VERSION.len());
    // The metadata ends where its brace closes, two deep, at this point.
    let rest = closing(&tail, 1).ok_or_else(|| refuse(&"the metadata does not end"))?;
    let metadata_len = text.len() + rest;
    Ok(Text { head: text, tail, metadata_len })
}

/// Length of the text up to and with the brace that closes `depth` open ones; the text starts within a string.
fn closing(text: &[u8], mut depth: usize) -> Option<usize> {
    let (mut in_string, mut escaped) = (true, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The object as its schema has it: in the forms in which it will be stored.
pub(crate) fn canonical(
    object: &Map<String, Value>,
    resource: &Resource,
) -> Outcome<Map<String, Value>> {
    let Some(message) = resource.message else { return Ok(object.clone()) };
    let Text { head, tail, .. } = typed(object, message, &resource.ty)?;
    // The version's digits are left out: an empty version is as good.
    Ok(serde_json::from_slice(&[head, tail].concat()).expect("the transcoder writes JSON objects"))
}

/// The text of an object without a schema.
fn untyped(object: &Map<String, Value>, metadata: &Map<String, Value>) -> Text {
    let mut head = b"{\"metadata\":{".to_vec();
    let mut tail = Vec::new();
    // Go writes untyped objects with sorted keys, but for the type, which stands before all.
    let mut fields: Vec<(&String, &Value)> = metadata.iter().collect();
    fields.sort_unstable_by_key(|(field, _)| *field);
    let (before, after): (Vec<_>, Vec<_>) =
        fields.into_iter().partition(|(field, _)| field.as_str() < "resourceVersion");
    for (field, value) in before {
        write_field(&mut head, field, value);
    }
    separate(&mut head);
    head.extend_from_slice(VERSION.as_bytes());
    tail.push(b'"');
    for (field, value) in after.into_iter().filter(|(field, _)| *field != "resourceVersion") {
        write_field(&mut tail, field, value);
    }
    tail.push(b'}');
    let metadata_len = head.len() + tail.len();
    for (field, value) in object {
        if !matches!(field.as_str(), "metadata" | "kind" | "apiVersion") {
            write_field(&mut tail, field, value);
        }
    }
    tail.push(b'}');
    Text { head, tail, metadata_len }
}

/// A comma, unless this is the first field.
fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{') | None) {
        out.push(b',');
    }
}

fn write_field(out: &mut Vec<u8>, field: &str, value: &Value) {
    separate(out);
    serde_json::to_writer(&mut *out, field).expect("a string is written to memory");
    out.push(b':');
    serde_json::to_writer(out, value).expect("a JSON value is written to memory");
}
