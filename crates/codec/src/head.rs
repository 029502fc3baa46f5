//! The head of an object: what `Object` returns, as positions in the object's own bytes.

mod json;
mod protobuf;

use std::borrow::Cow;
use std::ops::Range;

use kubestrata_api_types::{
    Format, ObjectKey, OwnerRef, ResourceType, ResourceVersion, Timestamp, Unreadable,
};

use crate::json::ScanError;

/// Fills `builder` from an object's bytes. On an error it holds what was found before it.
pub(crate) fn scan<'a>(
    resource: &ResourceType,
    format: Format,
    bytes: &'a [u8],
    depth_max: usize,
    builder: &mut HeadBuilder<'a>,
) -> Result<(), ScanError> {
    match format {
        Format::Json => json::scan(bytes, depth_max, builder),
        Format::Protobuf => protobuf::scan(resource, bytes, builder),
    }
}

/// A string of the head: a position in the object's bytes, or, for a JSON string with escapes, in [`Head::extra`].
///
/// Eight bytes instead of a shared pointer's sixteen, and no allocation for any string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    /// Offset; the highest bit says that it is one in `extra`.
    at: u32,
    length: u32,
}

const IN_EXTRA: u32 = 1 << 31;

/// Objects of this size and more are refused: the highest bit of an offset is taken.
pub(crate) const OBJECT_BYTES_MAX: usize = IN_EXTRA as usize - 1;

/// How many texts an owner takes: apiVersion, kind, name, uid, and one whose length says whether it is the controller.
const OWNER_TEXTS: usize = 5;

/// The parsed head.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) key: ObjectKey,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) generation: Option<i64>,
    pub(crate) deletion_timestamp: Option<Timestamp>,
    uid: Option<Text>,
    /// Keys and values of the labels, sorted by key, then the owners.
    texts: Box<[Text]>,
    /// How many of `texts` belong to labels.
    label_texts: u32,
    /// Strings that are not in the bytes as they read.
    extra: Box<str>,
    /// Where the metadata is in the bytes: the JSON object, or the protobuf message without tag and length.
    pub(crate) metadata: Range<u32>,
}

impl Head {
    /// Bytes on the heap.
    pub(crate) fn size(&self) -> usize {
        // A key is one allocation with two counters in front.
        self.key.as_str().len() + 16 + size_of_val(&*self.texts) + self.extra.len()
    }

    /// Adapts the positions to bytes from which `cut`, a part of the metadata, was taken out, and in which the metadata
    /// itself starts `before` bytes earlier.
    pub(crate) fn cut(&mut self, cut: &Range<usize>, before: usize) {
        let (end, length, before) = (offset(cut.end), offset(cut.len()), offset(before));
        let start = self.metadata.start;
        self.metadata.start -= before;
        self.metadata.end -= length + before;
        for text in self.texts.iter_mut().chain(self.uid.as_mut()) {
            // An empty text and an owner's flag stand nowhere in the metadata.
            if text.at & IN_EXTRA == 0 && text.at >= start {
                text.at -= before + if text.at >= end { length } else { 0 };
            }
        }
    }

    fn text<'a>(&'a self, bytes: &'a [u8], text: Text) -> &'a str {
        let range = |at: u32| at as usize..at as usize + text.length as usize;
        if text.at & IN_EXTRA == 0 {
            std::str::from_utf8(&bytes[range(text.at)])
                .expect("the head scan has checked each text")
        } else {
            &self.extra[range(text.at & !IN_EXTRA)]
        }
    }

    /// The same without the check for UTF-8, for comparisons.
    fn raw<'a>(&'a self, bytes: &'a [u8], text: Text) -> &'a [u8] {
        let range = |at: u32| at as usize..at as usize + text.length as usize;
        if text.at & IN_EXTRA == 0 {
            &bytes[range(text.at)]
        } else {
            &self.extra.as_bytes()[range(text.at & !IN_EXTRA)]
        }
    }

    pub(crate) fn uid<'a>(&'a self, bytes: &'a [u8]) -> Option<&'a str> {
        self.uid.map(|uid| self.text(bytes, uid))
    }

    fn labels(&self) -> impl Iterator<Item = (Text, Text)> {
        self.texts[..self.label_texts as usize].chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }

    pub(crate) fn label<'a>(&'a self, bytes: &'a [u8], key: &str) -> Option<&'a str> {
        let (_, value) =
            self.labels().find(|(name, _)| self.raw(bytes, *name) == key.as_bytes())?;
        Some(self.text(bytes, value))
    }

    pub(crate) fn for_each_label(&self, bytes: &[u8], f: &mut dyn FnMut(&str, &str)) {
        for (key, value) in self.labels() {
            f(self.text(bytes, key), self.text(bytes, value));
        }
    }

    pub(crate) fn for_each_owner(&self, bytes: &[u8], f: &mut dyn FnMut(OwnerRef<'_>)) {
        for owner in self.texts[self.label_texts as usize..].chunks_exact(OWNER_TEXTS) {
            let text = |index: usize| self.text(bytes, owner[index]);
            f(OwnerRef::new(text(0), text(1), text(2), text(3), owner[4].length != 0));
        }
    }
}

/// What an object says that it is, where it does. In protobuf the message says nothing: its envelope does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SelfType<'a> {
    pub(crate) api_version: Option<Cow<'a, str>>,
    pub(crate) kind: Option<Cow<'a, str>>,
}

/// What a scan has found so far.
///
/// Both scanners fill it; a later value of a field replaces an earlier one, as every decoder does it.
#[derive(Debug, Default)]
pub(crate) struct HeadBuilder<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) namespace: Cow<'a, str>,
    pub(crate) uid: Option<Text>,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) generation: Option<i64>,
    pub(crate) deletion_timestamp: Option<Timestamp>,
    pub(crate) labels: Vec<(Text, Text)>,
    pub(crate) owners: Vec<[Text; OWNER_TEXTS]>,
    pub(crate) extra: String,
    pub(crate) metadata: Range<u32>,
    /// Where the tag of the metadata stands, in protobuf.
    pub(crate) metadata_field: usize,
    /// What the object says of itself.
    pub(crate) own: SelfType<'a>,
    /// Where `metadata.managedFields` is: in JSON with one comma beside it, in protobuf all its entries.
    pub(crate) managed_fields: Option<Range<usize>>,
    /// It is there more than once, or not in one piece.
    pub(crate) managed_fields_twice: bool,
}

impl HeadBuilder<'_> {
    /// A text that stands in the bytes.
    pub(crate) fn in_bytes(start: usize, end: usize) -> Text {
        Text { at: offset(start), length: offset(end - start) }
    }

    /// A text that does not.
    pub(crate) fn in_extra(&mut self, text: &str) -> Text {
        let at = offset(self.extra.len()) | IN_EXTRA;
        self.extra.push_str(text);
        Text { at, length: offset(text.len()) }
    }

    /// A text that is empty.
    pub(crate) fn empty() -> Text {
        Text { at: 0, length: 0 }
    }

    /// The marker for the fifth text of an owner.
    pub(crate) fn flag(on: bool) -> Text {
        Text { at: 0, length: on.into() }
    }

    /// The object's key, where the name is known.
    pub(crate) fn key(&self) -> Option<ObjectKey> {
        (!self.name.is_empty()).then(|| ObjectKey::new(Some(&self.namespace), &self.name))
    }

    /// Bytes of the longest string found, or of all the metadata: all that is asked is whether it is beyond a limit, and
    /// metadata rarely is.
    pub(crate) fn longest_text(&self, limit: usize) -> usize {
        if self.metadata.len() <= limit {
            return self.metadata.len();
        }
        let labels = self.labels.iter().flat_map(|(key, value)| [key, value]);
        let texts = labels.chain(self.owners.iter().flatten()).chain(self.uid.iter());
        let longest = texts.map(|text| text.length as usize).max().unwrap_or_default();
        longest.max(self.name.len()).max(self.namespace.len())
    }

    /// The report on an object whose scan has failed here.
    pub(crate) fn unreadable(&self, problem: impl Into<String>) -> Unreadable {
        Unreadable {
            key: self.key(),
            resource_version: self.resource_version.clone(),
            problem: problem.into(),
        }
    }

    /// The head. `bytes` are those that were scanned.
    pub(crate) fn build(mut self, bytes: &[u8]) -> Head {
        self.sort_labels(bytes);
        let label_texts = self.labels.len() * 2;
        let mut texts = Vec::with_capacity(label_texts + self.owners.len() * OWNER_TEXTS);
        texts.extend(self.labels.iter().flat_map(|(key, value)| [*key, *value]));
        texts.extend(self.owners.iter().flatten());
        Head {
            key: ObjectKey::new(Some(&self.namespace), &self.name),
            resource_version: self.resource_version,
            generation: self.generation,
            deletion_timestamp: self.deletion_timestamp,
            uid: self.uid.filter(|uid| uid.length > 0),
            texts: texts.into(),
            label_texts: offset(label_texts),
            extra: self.extra.into(),
            metadata: self.metadata,
        }
    }

    /// Sorts by key, and of equal keys keeps the last. Servers send them sorted, so this mostly only looks.
    fn sort_labels(&mut self, bytes: &[u8]) {
        let raw = |text: Text| {
            let range = |at: u32| at as usize..at as usize + text.length as usize;
            if text.at & IN_EXTRA == 0 {
                &bytes[range(text.at)]
            } else {
                &self.extra.as_bytes()[range(text.at & !IN_EXTRA)]
            }
        };
        if self.labels.is_sorted_by(|a, b| raw(a.0) < raw(b.0)) {
            return;
        }
        self.labels.sort_by(|a, b| raw(a.0).cmp(raw(b.0)));
        // The sort is stable: from behind, the first of equal keys is the one that was last.
        self.labels.reverse();
        self.labels.dedup_by(|a, b| raw(a.0) == raw(b.0));
        self.labels.reverse();
    }
}

/// An offset as the head keeps it.
pub(crate) fn offset(offset: usize) -> u32 {
    u32::try_from(offset).expect("objects of 2 GiB are refused before their head is scanned")
}
