//! An object as it is stored and served: encoded once, shared by storage, cache, history and answers.

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::Bytes;
use kubestrata_api_types::{LabelSelector, ObjectKey};
use serde_json::{Map, Value};

use crate::selectable::{FieldTest, Place, Selectable};

/// Fields of `metadata` in the order in which Go writes them.
const METADATA_ORDER: [&str; 14] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

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
}

/// What does not change when an object is given another version.
#[derive(Debug)]
struct Shape {
    labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the fields that a selector may name, in the order of [`Selectable`].
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
        size_of::<Self>() + self.json.len()
    }

    /// The object as JSON without its type: `{"metadata":{...},...}`.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }

    /// `{"metadata":{...}`, still open.
    pub(crate) fn metadata_json(&self) -> &[u8] {
        &self.json[..self.shape.metadata_len + self.version.len()]
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
        Self(Arc::new(Record { key, revision, shape, json: json.into(), version }))
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
    pub(crate) fn new(object: &Map<String, Value>, selectable: &Selectable) -> Self {
        let empty = Map::new();
        let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        let text = |field: &str| metadata.get(field).and_then(Value::as_str);
        let key = ObjectKey::new(text("namespace"), text("name").unwrap_or_default());
        let labels = metadata.get("labels").and_then(Value::as_object);
        let labels = labels
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()));
        // The map is sorted by key, as the search in the labels wants it.
        let mut labels: Vec<(Box<str>, Box<str>)> = labels.collect();
        labels.sort_unstable();

        let mut head = b"{\"metadata\":{".to_vec();
        let mut tail = Vec::new();
        let mut out = &mut head;
        for field in METADATA_ORDER {
            if field == "resourceVersion" {
                separate(out);
                out.extend_from_slice(b"\"resourceVersion\":\"");
                out = &mut tail;
                out.push(b'"');
            } else if let Some(value) = metadata.get(field) {
                write_field(out, field, value);
            }
        }
        for (field, value) in metadata {
            if !METADATA_ORDER.contains(&field.as_str()) {
                write_field(out, field, value);
            }
        }
        tail.push(b'}');
        let metadata_len = head.len() + tail.len();
        for (field, value) in object {
            if !matches!(field.as_str(), "metadata" | "kind" | "apiVersion") {
                write_field(&mut tail, field, value);
            }
        }
        tail.push(b'}');
        let fields = selectable.values(object);
        let shape = Arc::new(Shape { labels: labels.into(), fields, metadata_len });
        Self { key, shape, head, tail }
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
